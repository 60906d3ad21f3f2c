package recipe

import (
	"bufio"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// basePackages are the Debian packages of this machine whose programs the
// images of Cilium and kube-proxy hold. Taking them from the machine costs a
// second; a debootstrap of the same costs minutes and the network.
func basePackages() []string {
	return []string{"base-files", "bash", "dash", "coreutils", "grep", "sed", "gawk", "mawk", "findutils", "hostname", "tar", "gzip", "util-linux", "mount", "procps",
		"iproute2", "iptables", "nftables", "ipset", "kmod", "bpftool", "conntrack", "jq", "libc-bin"}
}

// base is the root file system of the images: programs, what they load, and
// the few files that a C library wants.
func base() (*layer, error) {
	l := newLayer()
	for _, link := range []string{"bin", "sbin", "lib", "lib64"} {
		l.put(link, file{link: "usr/" + link})
	}
	for _, dir := range []string{"tmp", "run", "proc", "sys", "dev", "root", "var/lib", "var/log", "etc", "host"} {
		l.put(dir, file{dir: true, mode: 0o755})
	}
	l.put("var/run", file{link: "/run"})
	l.put("tmp", file{dir: true, mode: 0o1777})
	l.put("etc/passwd", file{data: "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/:/bin/false\n", mode: 0o644})
	l.put("etc/group", file{data: "root:x:0:\nnogroup:x:65534:\n", mode: 0o644})
	l.put("etc/nsswitch.conf", file{data: "hosts: files dns\n", mode: 0o644})
	for _, p := range basePackages() {
		if err := l.addPackage(p); err != nil {
			return nil, err
		}
	}
	// Debian's alternatives choose the nft back end, and so does this.
	for _, name := range []string{"iptables", "ip6tables"} {
		for _, suffix := range []string{"", "-save", "-restore"} {
			l.put("usr/sbin/"+name+suffix, file{link: "xtables-nft-multi"})
		}
	}
	l.put("usr/bin/awk", file{link: "mawk"})
	l.put("usr/bin/sh", file{link: "dash"})
	return l, l.addLibraries(nil)
}

// addPackage takes the programs and plugins of an installed package; those
// that are not installed are left out, doctor has said which matter.
func (l *layer) addPackage(name string) error {
	lists, _ := filepath.Glob("/var/lib/dpkg/info/" + name + ".list")
	more, _ := filepath.Glob("/var/lib/dpkg/info/" + name + ":*.list")
	for _, list := range append(lists, more...) {
		f, err := os.Open(list)
		if err != nil {
			return err
		}
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			err = errors.Join(err, l.addSystemFile(lines.Text()))
		}
		_ = f.Close()
		if err != nil {
			return fmt.Errorf("package %s: %w", name, err)
		}
	}
	return nil
}

func (l *layer) addSystemFile(p string) error {
	// Packages of before the merge of /bin into /usr/bin still list /bin.
	for _, merged := range []string{"/bin/", "/sbin/", "/lib/", "/lib64/"} {
		if strings.HasPrefix(p, merged) {
			p = "/usr" + p
		}
	}
	wanted := false
	for _, dir := range []string{"/usr/bin/", "/usr/sbin/", "/usr/lib/x86_64-linux-gnu/xtables/", "/etc/iproute2/"} {
		wanted = wanted || strings.HasPrefix(p, dir)
	}
	info, err := os.Lstat(p)
	if !wanted || err != nil || info.IsDir() {
		return nil
	}
	return l.copy(p, p)
}

const libraries = "/usr/lib/x86_64-linux-gnu/"

// addLibraries takes every shared library that the layer's programs load and
// that neither it nor the layer below holds yet.
func (l *layer) addLibraries(below *layer) error {
	l.put("usr/lib64/ld-linux-x86-64.so.2", file{link: "../lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"})
	var todo []string
	for _, f := range l.files {
		if f.from != "" {
			todo = append(todo, f.from)
		}
	}
	todo = append(todo, libraries+"ld-linux-x86-64.so.2", libraries+"libnss_files.so.2", libraries+"libnss_dns.so.2")
	seen := map[string]bool{}
	for len(todo) > 0 {
		p := todo[0]
		todo = todo[1:]
		real, err := filepath.EvalSymlinks(p)
		if err != nil || seen[p] {
			continue
		}
		seen[p] = true
		if strings.HasPrefix(p, libraries) && !l.holds(p) && !below.holds(p) {
			l.put(p, file{from: real, mode: 0o755})
		}
		binary, err := elf.Open(real)
		if err != nil {
			continue // a script or a data file
		}
		needed, err := binary.ImportedLibraries()
		_ = binary.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		for _, name := range needed {
			todo = append(todo, libraries+name)
		}
	}
	return nil
}

func (l *layer) holds(p string) bool {
	if l == nil {
		return false
	}
	_, ok := l.files[strings.TrimPrefix(p, "/")]
	return ok
}
