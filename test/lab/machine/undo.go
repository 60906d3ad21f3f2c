package machine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Undo ends and removes all that the ledger holds, latest first, and puts the
// settings back last, when nothing is left that could change them again. The
// ledger is closed if everything went. Settings that the kernel does not let
// go back are no reason to keep it: they are returned in words.
func Undo(ctx context.Context, l *Ledger) (lost []string, err error) {
	entries, err := l.Entries()
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	var errs []error
	for _, kind := range []Kind{Process, Cgroup, Netns, Mount, Sysctl} {
		for _, e := range entries {
			key := string(e.Kind) + " " + e.Name
			if e.Kind != kind || (kind != Process && seen[key]) {
				continue
			}
			seen[key] = true
			switch err := e.undo(ctx); {
			case err != nil && kind == Sysctl:
				lost = append(lost, err.Error())
			case err != nil:
				errs = append(errs, err)
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return lost, err
	}
	return lost, l.Close()
}

func (e Entry) undo(ctx context.Context) error {
	switch e.Kind {
	case Process:
		return e.end()
	case Cgroup:
		return endCgroup(e.Name)
	case Netns:
		if _, err := os.Stat(filepath.Join("/run/netns", e.Name)); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		_, err := Run(ctx, "ip", "netns", "del", e.Name)
		return err
	case Mount:
		// Others may have come to use it meanwhile.
		if left, err := os.ReadDir(e.Name); err != nil || len(left) > 0 {
			return nil
		}
		if err := unix.Unmount(e.Name, 0); err != nil && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
		return nil
	case Sysctl:
		return e.putBack()
	}
	return fmt.Errorf("%s %s: not known how to undo", e.Kind, e.Name)
}

// MountsUnder lists what is mounted below a folder of the host: nothing, as
// the lab mounts in namespaces of its own, but a folder is only wiped when
// that was looked at.
func MountsUnder(dir string) ([]string, error) {
	var out []string
	all, err := mountPoints()
	for _, p := range all {
		if strings.HasPrefix(p, dir+"/") {
			out = append(out, p)
		}
	}
	return out, err
}

func mountPoints() ([]string, error) {
	info, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var out []string
	for line := range strings.Lines(string(info)) {
		if fields := strings.Fields(line); len(fields) > 4 {
			out = append(out, fields[4])
		}
	}
	return out, nil
}

// Wipe removes a folder, refusing where anything is mounted below.
func Wipe(dir string) error {
	mounts, err := MountsUnder(dir)
	if err != nil {
		return err
	}
	for _, m := range mounts {
		if err := unix.Unmount(m, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("%s: still mounted: %w", m, err)
		}
	}
	return os.RemoveAll(dir)
}
