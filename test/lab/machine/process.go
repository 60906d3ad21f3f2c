package machine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Started is when a process began, in jiffies after boot: with the PID it
// names a process for good. It is "" where there is none.
func Started(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	// The name, in parentheses, may hold anything.
	_, rest, ok := strings.Cut(string(stat), ") ")
	if i := strings.LastIndex(string(stat), ") "); ok {
		rest = string(stat)[i+2:]
	}
	fields := strings.Fields(rest)
	if len(fields) < 20 {
		return ""
	}
	return fields[19]
}

// Alive tells whether the process of an entry still runs.
func (e Entry) Alive() bool {
	return e.Kind == Process && e.PID > 0 && e.Start != "" && Started(e.PID) == e.Start
}

// Born writes a process that was just started into the ledger.
func (l *Ledger) Born(name string, pid int) error {
	return l.Add(Entry{Kind: Process, Name: name, PID: pid, Start: Started(pid)})
}

// end kills a process and waits until it is gone.
func (e Entry) end() error {
	if !e.Alive() {
		return nil
	}
	if err := unix.Kill(e.PID, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("%s, process %d: %w", e.Name, e.PID, err)
	}
	for range 100 {
		if !e.Alive() || zombie(e.PID) {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("%s, process %d: still there 5 s after SIGKILL", e.Name, e.PID)
}

func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

// members lists the processes in a control group and those below it.
func members(dir string) []int {
	var pids []int
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil
		}
		data, _ := os.ReadFile(filepath.Join(path, "cgroup.procs"))
		for _, line := range strings.Fields(string(data)) {
			if pid, err := strconv.Atoi(line); err == nil && pid > 0 {
				pids = append(pids, pid)
			}
		}
		return nil
	})
	return pids
}
