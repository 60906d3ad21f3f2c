// Package machine is all that the lab takes from the machine it runs on:
// network namespaces, control groups, processes and kernel settings. Whatever
// it makes is written to a ledger first, so that a run that was killed at any
// point can be cleaned up by the next one.
package machine

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// Ledger is the list of what was made, in the order of making, one JSON
// object a line in a file of the state folder.
type Ledger struct {
	mu   sync.Mutex
	path string
}

// Kind is a kind of thing that outlives the process that made it.
type Kind string

// The kinds of things in a ledger.
const (
	Netns   Kind = "netns"   // Name is its name under /run/netns
	Cgroup  Kind = "cgroup"  // Name is its path, with everything below
	Process Kind = "process" // Name is what it is, PID and Start tell it from a later one
	Mount   Kind = "mount"   // Name is where; nothing may be below it any more
	Sysctl  Kind = "sysctl"  // Name is the setting, Value what it was before
)

// Entry is one thing made or changed.
type Entry struct {
	Kind  Kind   `json:"kind"`
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
	PID   int    `json:"pid,omitempty"`
	Start string `json:"start,omitempty"` // jiffies after boot, from /proc/PID/stat
}

// OpenLedger uses the file of that name, which need not be there yet.
func OpenLedger(path string) *Ledger { return &Ledger{path: path} }

// Add appends an entry and waits until it is on disk.
func (l *Ledger) Add(e Entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := os.MkdirAll(filepath.Dir(l.path), 0o755); err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	line, err := json.Marshal(e)
	if err == nil {
		_, err = f.Write(append(line, '\n'))
	}
	return errors.Join(err, f.Sync(), f.Close())
}

// Entries reads the ledger, latest first. A line that was cut by a crash is
// left out: its thing was not made yet. No file means nothing was made.
func (l *Ledger) Entries() ([]Entry, error) {
	f, err := os.Open(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	defer func() { _ = f.Close() }()
	var all []Entry
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var e Entry
		if json.Unmarshal(lines.Bytes(), &e) == nil {
			all = append(all, e)
		}
	}
	slices.Reverse(all)
	return all, lines.Err()
}

// Close ends the book: everything in it is gone.
func (l *Ledger) Close() error {
	err := os.Remove(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
