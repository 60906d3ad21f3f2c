package machine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Settings lists the kernel settings that belong to no namespace and that the
// lab's programs may change: the kubelet's own list, what kube-proxy and the
// agent set, and what containers with privileges can reach. Nodes see files in
// the place of most of them (node.shield). One cannot be put back before the
// next boot: kernel.unprivileged_bpf_disabled, once 1, stays 1.
func Settings() []string {
	return []string{
		"vm.overcommit_memory", "vm.panic_on_oom", "vm.max_map_count",
		"kernel.panic", "kernel.panic_on_oops", "kernel.keys.root_maxkeys", "kernel.keys.root_maxbytes",
		"kernel.timer_migration", "kernel.unprivileged_bpf_disabled", "kernel.pid_max",
		"fs.inotify.max_user_watches", "fs.inotify.max_user_instances", "fs.nr_open", "fs.file-max",
		"net.core.bpf_jit_enable", "net.core.bpf_jit_harden", "net.core.bpf_jit_kallsyms", "net.core.bpf_jit_limit",
		"net.core.fb_tunnels_only_for_init_net", "net.core.devconf_inherit_init_net", "net.core.default_qdisc",
		"net.netfilter.nf_conntrack_max",
	}
}

// SettingFile is where the kernel shows a setting.
func SettingFile(name string) string {
	return filepath.Join("/proc/sys", strings.ReplaceAll(name, ".", "/"))
}

// SaveSettings writes the present value of each setting into the ledger.
// Those that this kernel lacks are left out.
func SaveSettings(l *Ledger) error {
	for _, name := range Settings() {
		value, err := os.ReadFile(SettingFile(name))
		if err != nil {
			continue
		}
		if err := l.Add(Entry{Kind: Sysctl, Name: name, Value: strings.TrimSpace(string(value))}); err != nil {
			return err
		}
	}
	return nil
}

// putBack restores a setting if it has changed.
func (e Entry) putBack() error {
	now, err := os.ReadFile(SettingFile(e.Name))
	if err != nil {
		return fmt.Errorf("%s: %w", e.Name, err)
	}
	if strings.TrimSpace(string(now)) == e.Value {
		return nil
	}
	if err := os.WriteFile(SettingFile(e.Name), []byte(e.Value), 0o644); err != nil {
		return fmt.Errorf("%s is %s, was %s before the lab: %w", e.Name, strings.TrimSpace(string(now)), e.Value, err)
	}
	return nil
}

// Changed lists the settings that differ from what the ledger holds.
func Changed(l *Ledger) ([]string, error) {
	entries, err := l.Entries()
	var out []string
	for _, e := range entries {
		if e.Kind != Sysctl {
			continue
		}
		now, e2 := os.ReadFile(SettingFile(e.Name))
		err = errors.Join(err, e2)
		if v := strings.TrimSpace(string(now)); v != e.Value {
			out = append(out, fmt.Sprintf("%s %s -> %s", e.Name, e.Value, v))
		}
	}
	return out, err
}
