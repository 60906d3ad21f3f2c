package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Hierarchy is one mounted tree of control groups.
type Hierarchy struct {
	Mount   string // where the host has it
	Options string // how to mount it again: "memory", "none,name=systemd"; "" for version 2
}

// Hierarchies lists the machine's trees of control groups, from
// /proc/self/mountinfo. The lab wants version 1 controllers beside a version 2
// tree, which is where socket load balancing attaches.
func Hierarchies() ([]Hierarchy, error) {
	info, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	return hierarchies(string(info)), nil
}

func hierarchies(mountinfo string) []Hierarchy {
	var all []Hierarchy
	for line := range strings.Lines(mountinfo) {
		head, tail, ok := strings.Cut(strings.TrimSpace(line), " - ")
		before, after := strings.Fields(head), strings.Fields(tail)
		if !ok || len(before) < 5 || len(after) < 3 {
			continue
		}
		// A process inside a cgroup namespace sees the root above its own as /..
		if root := before[3]; root != "/" && !strings.HasPrefix(root, "/..") {
			continue
		}
		h := Hierarchy{Mount: before[4]}
		switch after[0] {
		case "cgroup2":
		case "cgroup":
			var options []string
			for _, o := range strings.Split(after[2], ",") {
				if o != "rw" && o != "ro" {
					options = append(options, o)
				}
			}
			if len(options) == 1 && strings.HasPrefix(options[0], "name=") {
				options = append([]string{"none"}, options...)
			}
			h.Options = strings.Join(options, ",")
		default:
			continue
		}
		if !slices.ContainsFunc(all, func(o Hierarchy) bool { return o.Options == h.Options }) {
			all = append(all, h)
		}
	}
	return all
}

// MakeCgroups makes the group of that name in every hierarchy, and its
// parents. New cpuset groups allow nothing until they are told otherwise.
func MakeCgroups(l *Ledger, hs []Hierarchy, root, name string) error {
	for _, h := range hs {
		top, dir := filepath.Join(h.Mount, root), filepath.Join(h.Mount, root, name)
		if err := l.Add(Entry{Kind: Cgroup, Name: top}); err != nil {
			return err
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("control group %s: %w", dir, err)
		}
		if h.Options != "cpuset" {
			continue
		}
		for _, setting := range []string{"cpuset.cpus", "cpuset.mems"} {
			value, err := os.ReadFile(filepath.Join(h.Mount, setting))
			for _, d := range []string{top, dir} {
				err = errors.Join(err, os.WriteFile(filepath.Join(d, setting), value, 0o644))
			}
			if err != nil {
				return fmt.Errorf("control group %s: %w", dir, err)
			}
		}
	}
	return nil
}

// JoinCgroups moves this process into the group of that name in every
// hierarchy.
func JoinCgroups(hs []Hierarchy, root, name string) error {
	pid := []byte(strconv.Itoa(os.Getpid()))
	for _, h := range hs {
		f := filepath.Join(h.Mount, root, name, "cgroup.procs")
		if err := os.WriteFile(f, pid, 0o644); err != nil {
			return fmt.Errorf("control group %s: %w", filepath.Dir(f), err)
		}
	}
	return nil
}

// endCgroup kills what runs in a control group and removes it. Whatever is in
// it was put there by the lab or started by something that was.
func endCgroup(dir string) error {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var last error
	for range 100 {
		for _, pid := range members(dir) {
			if pid != os.Getpid() {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
		if last = removeTree(dir); last == nil {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("control group %s: %w", dir, last)
}

// removeTree removes directories from the leaves up. The files in them are the
// kernel's and go with them.
func removeTree(dir string) error {
	var dirs []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return nil
	})
	slices.Reverse(dirs)
	for _, d := range dirs {
		if e := unix.Rmdir(d); e != nil && !errors.Is(e, unix.ENOENT) {
			err = errors.Join(err, fmt.Errorf("%s: %w", d, e))
		}
	}
	return err
}
