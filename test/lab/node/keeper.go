package node

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// keeper starts services and starts them again when they end. As process 1 it
// also buries every orphan of the node, which is why it does not use the wait
// of os/exec: that would compete for the same deaths.
type keeper struct {
	logs string
	mu   sync.Mutex
	died map[int]chan unix.WaitStatus
}

func newKeeper(logs string) *keeper {
	return &keeper{logs: logs, died: map[int]chan unix.WaitStatus{}}
}

// keep runs a service for the rest of the node's life, two seconds between a
// death and the next start.
func (k *keeper) keep(name string, argv ...string) {
	go func() {
		for {
			status, err := k.once(name, argv)
			k.note(name, fmt.Sprintf("[%s ended: %v %v]\n", name, status, err))
			time.Sleep(2 * time.Second)
		}
	}()
}

func (k *keeper) once(name string, argv []string) (string, error) {
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return "", err
	}
	log, err := os.OpenFile(filepath.Join(k.logs, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return "", err
	}
	defer func() { _ = log.Close() }()
	k.mu.Lock()
	p, err := os.StartProcess(path, argv, &os.ProcAttr{
		Dir: "/", Env: os.Environ(), Files: []*os.File{nil, log, log}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		k.mu.Unlock()
		return "", err
	}
	gone := make(chan unix.WaitStatus, 1)
	k.died[p.Pid] = gone
	k.mu.Unlock()
	status := <-gone
	return fmt.Sprintf("exit %d, signal %v", status.ExitStatus(), status.Signal()), nil
}

func (k *keeper) note(name, line string) {
	f, err := os.OpenFile(filepath.Join(k.logs, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return
	}
	_, _ = f.WriteString(time.Now().UTC().Format(time.RFC3339) + " " + line)
	_ = f.Close()
}

// reap waits for every child there is, for ever.
func (k *keeper) reap() error {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ECHILD):
			time.Sleep(50 * time.Millisecond)
			continue
		case err != nil:
			return err
		}
		// Taken under the lock, so that a service is entered before its death is.
		k.mu.Lock()
		if gone := k.died[pid]; gone != nil {
			delete(k.died, pid)
			gone <- status
		}
		k.mu.Unlock()
	}
}
