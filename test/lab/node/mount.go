package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/kubectl-kpr/kubectl-kpr/test/lab/machine"
	"github.com/kubectl-kpr/kubectl-kpr/test/lab/place"
)

// disks are the folders of a node that hold much or must be seen from outside:
// they lie in the state folder. Everything else a node writes goes to memory.
func disks() map[string]string {
	return map[string]string{
		"containerd": "/var/lib/containerd",
		"kubelet":    "/var/lib/kubelet",
		"pods":       "/var/log/pods",
		"log":        "/var/log/lab",
		"etcd":       "/var/lib/etcd",
	}
}

// enter builds the node's own root and moves into it: the machine's file
// system below, a layer of memory above, so that no program of a node can
// write to the machine. Overlayfs refuses an upper layer that lies inside the
// lower one; memory is another file system and does not count as inside.
func enter(d place.Dirs, name string, hs []machine.Hierarchy) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("mounts made private: %w", err)
	}
	base := d.Node(name, "root")
	if err := os.MkdirAll(base, 0o755); err != nil {
		return err
	}
	if err := mount("tmpfs", base, "tmpfs", 0, "mode=755"); err != nil {
		return err
	}
	upper, work, root := filepath.Join(base, "upper"), filepath.Join(base, "work"), filepath.Join(base, "merged")
	for _, p := range []string{upper, work, root} {
		if err := os.Mkdir(p, 0o755); err != nil {
			return err
		}
	}
	if err := mount("overlay", root, "overlay", 0, "lowerdir=/,upperdir="+upper+",workdir="+work); err != nil {
		return err
	}
	steps := []func() error{
		func() error { return system(root) },
		func() error { return shield(base, root) },
		func() error { return cgroups(root, hs) },
		func() error { return binds(d, name, root) },
		func() error { return pivot(root) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// system mounts what the kernel shows of itself. /sys is a fresh one, for it
// shows the network namespace it was mounted in.
func system(root string) error {
	at := func(p string) string { return filepath.Join(root, p) }
	return errors.Join(
		mount("proc", at("/proc"), "proc", 0, ""),
		mount("sysfs", at("/sys"), "sysfs", 0, ""),
		bind("/dev", at("/dev")),
		mount("devpts", at("/dev/pts"), "devpts", 0, "mode=600,ptmxmode=666,newinstance"),
		mount("tmpfs", at("/dev/shm"), "tmpfs", 0, ""),
		mount("bpf", at("/sys/fs/bpf"), "bpf", 0, ""),
		mount("tmpfs", at("/run"), "tmpfs", 0, "mode=755"),
		mount("tmpfs", at("/tmp"), "tmpfs", 0, "mode=1777"),
		os.MkdirAll(at("/run/lock"), 0o755),
		os.MkdirAll(at("/run/netns"), 0o755),
	)
}

// shield puts a file in the place of every setting of the kernel that belongs
// to no namespace. The kubelet and the agent, which reach them through the
// node's /proc, write their wishes there and read them back.
func shield(base, root string) error {
	for _, name := range machine.Settings() {
		value, err := os.ReadFile(machine.SettingFile(name))
		if err != nil {
			continue // this kernel, or this network namespace, does not show it
		}
		file := filepath.Join(base, name)
		if err := os.WriteFile(file, value, 0o644); err != nil {
			return err
		}
		if err := bind(file, filepath.Join(root, machine.SettingFile(name))); err != nil {
			return err
		}
	}
	return nil
}

// cgroups mounts every tree of control groups again: inside the node's cgroup
// namespace its root is the node's own group. An agent attaches socket load
// balancing to the root it sees, so on a shared one the nodes would overlap.
func cgroups(root string, hs []machine.Hierarchy) error {
	top := filepath.Join(root, "/sys/fs/cgroup")
	if err := mount("tmpfs", top, "tmpfs", 0, "mode=755"); err != nil {
		return err
	}
	for _, h := range hs {
		at := filepath.Join(root, h.Mount)
		if err := os.MkdirAll(at, 0o755); err != nil {
			return err
		}
		kind := "cgroup"
		if h.Options == "" {
			kind = "cgroup2"
		}
		if err := mount(kind, at, kind, 0, h.Options); err != nil {
			return err
		}
	}
	return nil
}

// binds shows the node the state folder, the cache, and its disks.
func binds(d place.Dirs, name, root string) error {
	for _, p := range []string{d.State, d.Cache} {
		if err := os.MkdirAll(filepath.Join(root, p), 0o755); err != nil {
			return err
		}
		if err := bind(p, filepath.Join(root, p)); err != nil {
			return err
		}
	}
	for from, to := range disks() {
		if err := errors.Join(os.MkdirAll(d.Node(name, from), 0o755), os.MkdirAll(filepath.Join(root, to), 0o755)); err != nil {
			return err
		}
		if err := bind(d.Node(name, from), filepath.Join(root, to)); err != nil {
			return err
		}
	}
	for _, p := range []string{"/etc/cni/net.d", "/opt/cni/bin", "/etc/kubernetes", "/var/lib/cilium", "/etc/sysctl.d", "/lib/modules"} {
		if err := os.MkdirAll(filepath.Join(root, p), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// pivot makes root the root, shared as the kubelet wants it for mounts that
// containers hand on.
func pivot(root string) error {
	if err := os.Chdir(root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot_root %s: %w", root, err)
	}
	// The old root is now on top of the new one at the same place.
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("the machine's root: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	return unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, "")
}

func mount(source, target, kind string, flags uintptr, data string) error {
	if err := unix.Mount(source, target, kind, flags, data); err != nil {
		return fmt.Errorf("mount %s on %s (%s): %w", kind, target, strings.TrimSpace(data), err)
	}
	return nil
}

func bind(from, to string) error { return mount(from, to, "", unix.MS_BIND, "") }
