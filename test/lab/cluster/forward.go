package cluster

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/kubectl-kpr/kubectl-kpr/test/lab/machine"
	"github.com/kubectl-kpr/kubectl-kpr/test/lab/place"
)

// Forwarder is the word that makes this program the forwarder.
const Forwarder = "forwarder"

// forward opens a port on the host's loopback that leads to the API server,
// and returns its URL. The port is the one asked for if it is free. The
// process that carries the bytes lives in the API server's network namespace
// and accepts on a socket that it inherits from here.
func forward(d place.Dirs, l *machine.Ledger, port int) (string, error) {
	listener, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		if listener, err = net.Listen("tcp4", "127.0.0.1:0"); err != nil {
			return "", err
		}
	}
	defer func() { _ = listener.Close() }()
	socket, err := listener.(*net.TCPListener).File()
	if err != nil {
		return "", err
	}
	log, err := os.Create(d.Under("forwarder.log"))
	if err != nil {
		return "", err
	}
	defer func() { _ = errors.Join(socket.Close(), log.Close()) }()
	cmd := exec.Command("/proc/self/exe", Forwarder)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = log, log, []*os.File{socket}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := startIn(place.Nodes()[0].Name, cmd); err != nil {
		return "", fmt.Errorf("port on loopback: %w", err)
	}
	return "https://" + listener.Addr().String(), l.Born("forwarder", cmd.Process.Pid)
}

// startIn starts a command in a network namespace. The thread that did so is
// given up, as it cannot be trusted to be back where it was.
func startIn(netns string, cmd *exec.Cmd) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		ns, err := os.Open(filepath.Join("/run/netns", netns))
		if err == nil {
			err = unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET)
		}
		if err == nil {
			err = cmd.Start()
		}
		started <- err
	}()
	return <-started
}

// Forward is the life of the forwarder.
func Forward() error {
	listener, err := net.FileListener(os.NewFile(3, "listener"))
	if err != nil {
		return err
	}
	for {
		c, err := listener.Accept()
		if err != nil {
			return err
		}
		go carry(c.(*net.TCPConn))
	}
}

func carry(client *net.TCPConn) {
	defer func() { _ = client.Close() }()
	c, err := net.Dial("tcp4", net.JoinHostPort(place.APIHost, place.APIPort))
	if err != nil {
		return
	}
	server := c.(*net.TCPConn)
	defer func() { _ = server.Close() }()
	done := make(chan struct{}, 2)
	pump := func(to, from *net.TCPConn) {
		_, _ = io.Copy(to, from)
		_ = to.CloseWrite()
		done <- struct{}{}
	}
	go pump(server, client)
	go pump(client, server)
	<-done
	<-done
}
