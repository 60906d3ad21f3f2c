package machine

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// Packages are the Debian packages the lab needs: programs its nodes run and
// parts of the images it makes.
func Packages() []string {
	return []string{"clang-19", "llvm-19", "containerd", "runc", "iptables", "nftables", "ipset", "bpftool", "conntrack", "iproute2", "kmod", "jq", "procps", "util-linux"}
}

// Missing says, one line each, why this machine cannot run the lab.
func Missing() []string {
	var out []string
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		out = append(out, fmt.Sprintf("linux/amd64 is needed, this is %s/%s", runtime.GOOS, runtime.GOARCH))
	}
	if os.Geteuid() != 0 {
		out = append(out, "root is needed: the lab makes namespaces, mounts and control groups")
	}
	var absent []string
	for _, p := range Packages() {
		if installed, _ := filepath.Glob("/var/lib/dpkg/info/" + p + "*.list"); len(installed) == 0 {
			absent = append(absent, p)
		}
	}
	if len(absent) > 0 {
		out = append(out, "Debian packages are missing: apt-get install --no-install-recommends "+strings.Join(absent, " "))
	}
	if _, err := exec.LookPath("go"); err != nil {
		out = append(out, "go is not in PATH")
	}
	return append(append(out, cgroupsMissing()...), kernelMissing()...)
}

func cgroupsMissing() []string {
	hs, err := Hierarchies()
	if err != nil {
		return []string{err.Error()}
	}
	have := map[string]bool{}
	for _, h := range hs {
		have[h.Options] = true
	}
	var out []string
	for _, want := range []string{"", "cpu", "memory", "pids"} {
		if have[want] {
			continue
		}
		if want == "" {
			out = append(out, "no cgroup2 tree is mounted: socket load balancing attaches to it")
			continue
		}
		found := false
		for options := range have {
			found = found || strings.Contains(","+options+",", ","+want+",")
		}
		if !found {
			out = append(out, "no version 1 control group tree for "+want+"; a machine with version 2 alone was never tried")
		}
	}
	return out
}

func kernelMissing() []string {
	var out []string
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		var major, minor int
		release := unix.ByteSliceToString(u.Release[:])
		if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err == nil && (major < 5 || major == 5 && minor < 10) {
			out = append(out, "kernel "+release+": Cilium wants 5.10 or later")
		}
	}
	types, _ := os.ReadFile("/proc/filesystems")
	for _, fs := range []string{"overlay", "bpf", "cgroup2", "tmpfs"} {
		if !strings.Contains(string(types), "\t"+fs+"\n") {
			out = append(out, "the kernel has no file system "+fs)
		}
	}
	for _, ns := range []string{"net", "mnt", "pid", "uts", "ipc", "cgroup"} {
		if _, err := os.Stat("/proc/self/ns/" + ns); err != nil {
			out = append(out, "the kernel has no "+ns+" namespaces")
		}
	}
	if _, err := os.Stat("/sys/kernel/btf/vmlinux"); err != nil {
		out = append(out, "the kernel has no BTF (/sys/kernel/btf/vmlinux)")
	}
	return out
}
