package node

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kubectl-kpr/kubectl-kpr/test/lab/machine"
	"github.com/kubectl-kpr/kubectl-kpr/test/lab/place"
)

// Words that make this program one of a node's two processes.
const (
	Outer = "node-outer"
	Inner = "node-inner"
)

// Start starts a node's outer process and returns when process 1 runs.
func Start(ctx context.Context, d place.Dirs, l *machine.Ledger, name, bin string) error {
	if err := os.MkdirAll(d.Node(name, "log"), 0o755); err != nil {
		return err
	}
	_ = os.Remove(d.Node(name, "pid"))
	log, err := os.OpenFile(d.Node(name, "log", "node.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command("/proc/self/exe", Outer, name, bin)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = environment(d)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("node %s: %w", name, err)
	}
	if err := l.Born("node "+name, cmd.Process.Pid); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case err := <-ended:
			said, _ := os.ReadFile(log.Name())
			return fmt.Errorf("node %s: ended at once: %w: %s", name, err, said)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
			if _, err := PID(d, name); err == nil {
				return nil
			}
		}
	}
}

func environment(d place.Dirs) []string {
	return []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"KPR_LAB_STATE=" + d.State, "KPR_LAB_CACHE=" + d.Cache, "KPR_LAB_SOURCE=" + d.Source,
		"HOME=/root", "GOMAXPROCS=" + strconv.Itoa(runtime.NumCPU()),
	}
}

// PID is the node's process 1 as the host sees it.
func PID(d place.Dirs, name string) (int, error) {
	data, err := os.ReadFile(d.Node(name, "pid"))
	if err != nil {
		return 0, fmt.Errorf("node %s: does not run", name)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || machine.Started(pid) == "" {
		return 0, fmt.Errorf("node %s: process %s is gone", name, strings.TrimSpace(string(data)))
	}
	return pid, nil
}

// RunOuter is the life of the outer process.
func RunOuter(d place.Dirs, name, bin string) error {
	hs, err := machine.Hierarchies()
	if err != nil {
		return err
	}
	if err := machine.JoinCgroups(hs, place.CgroupRoot, name); err != nil {
		return err
	}
	// The child is born in the network namespace of the thread that starts it.
	runtime.LockOSThread()
	ns, err := os.Open(filepath.Join("/run/netns", name))
	if err != nil {
		return err
	}
	if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("network namespace %s: %w", name, err)
	}
	cmd := exec.Command("/proc/self/exe", Inner, name, bin)
	cmd.Stdout, cmd.Stderr, cmd.Env = os.Stdout, os.Stderr, os.Environ()
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setsid:     true,
		Pdeathsig:  syscall.SIGKILL,
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWPID | unix.CLONE_NEWCGROUP,
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	pid := filepath.Join(d.Node(name), "pid")
	if err := os.WriteFile(pid, []byte(strconv.Itoa(cmd.Process.Pid)), 0o644); err != nil {
		return err
	}
	return cmd.Wait()
}

// Exec replaces this process by a command run inside a node, in its
// namespaces and its control groups. A path in argv is one of the node.
func Exec(d place.Dirs, name string, argv []string) error {
	pid, err := PID(d, name)
	if err != nil {
		return err
	}
	hs, err := machine.Hierarchies()
	if err != nil {
		return err
	}
	if err := machine.JoinCgroups(hs, place.CgroupRoot, name); err != nil {
		return err
	}
	nsenter, err := exec.LookPath("nsenter")
	if err != nil {
		return err
	}
	args := append([]string{"nsenter", "--target", strconv.Itoa(pid), "--net", "--mount", "--uts", "--ipc", "--pid", "--cgroup", "--"}, argv...)
	return unix.Exec(nsenter, args, os.Environ())
}

// Run runs a command inside a node and returns its output.
func Run(ctx context.Context, name string, argv ...string) (string, error) {
	return machine.Run(ctx, append([]string{"/proc/self/exe", "in", name, "--"}, argv...)...)
}
