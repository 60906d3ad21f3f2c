package residue

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/internal/netfilter"
	"github.com/kubectl-kpr/kubectl-kpr/internal/plan"
)

// device is the one that kube-proxy's IPVS mode keeps Service addresses on.
const device = "kube-ipvs0"

// kernelServers prints the kernel's table of virtual servers, nothing where the
// kernel has no IPVS.
const kernelServers = `[ ! -e /proc/net/ip_vs ] || cat /proc/net/ip_vs`

// IPVS is what kube-proxy's IPVS mode has.
type IPVS struct {
	Device bool `json:"device"`
	// Addresses are those of the device: "10.96.0.1/32".
	Addresses []string `json:"addresses,omitempty"`
	// Sets are its IP sets, as ipset saves them, one after the other.
	Sets []string `json:"sets,omitempty"`
	// Servers are rows of ipvsadm-save of virtual servers on the device's
	// addresses: "-A -t 10.96.0.1:443 -s rr", "-a -t 10.96.0.1:443 -r …".
	Servers []string `json:"servers,omitempty"`
}

// Empty holds where there is nothing.
func (i IPVS) Empty() bool { return !i.Device && len(i.Sets) == 0 && len(i.Servers) == 0 }

// Same holds where two are the same.
func (i IPVS) Same(o IPVS) bool {
	same := func(a, b []string) bool {
		return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
	}
	return i.Device == o.Device && same(i.Addresses, o.Addresses) && same(i.Sets, o.Sets) && same(i.Servers, o.Servers)
}

// ipvs reads it. Virtual servers can be anybody's: kube-proxy's are those on
// an address of its device, and those on an address of the node whose port is
// in one of its sets of NodePorts.
func (h *Holding) ipvs(ctx context.Context, sh Shell) error {
	links, err := output(ctx, sh, "ip", "-o", "address", "show")
	if err != nil {
		return err
	}
	h.IPVS.Addresses = addressesOf(links)
	names, err := output(ctx, sh, "ip", "-o", "link", "show")
	if err != nil {
		return err
	}
	h.IPVS.Device = strings.Contains(string(names), ": "+device+":")
	list, err := run(ctx, sh, []string{"ipset", "save"}, nil)
	if err != nil {
		return err
	}
	if list.Code == 0 {
		saved, err := whole("ipset save", list)
		if err != nil {
			return err
		}
		h.IPVS.Sets = proxySets(saved)
	} else if h.IPVS.Device {
		return fmt.Errorf("ipset save: exit code %d: %s: %w", list.Code, words(list.Stderr), plan.ErrUnverified)
	}
	if !h.IPVS.Device && len(h.IPVS.Sets) == 0 {
		return nil // whatever virtual servers there are, nothing says that they are kube-proxy's
	}
	servers, err := run(ctx, sh, slices.Concat(onHost, []string{"ipvsadm-save", "-n"}), nil)
	if err != nil {
		return err
	}
	if servers.Code == 127 || servers.Code == 126 {
		table, err := output(ctx, sh, "sh", "-c", kernelServers)
		if err != nil {
			return err
		}
		left, err := netfilter.DecodeIPVS(table)
		if err != nil || len(left) > 0 {
			return fmt.Errorf("IPVS has %d virtual servers and the host has no ipvsadm to remove them: install it, or reboot the node: %w", len(left), plan.ErrRefused)
		}
		return nil
	}
	rows, err := whole("ipvsadm-save", servers)
	if err != nil {
		return err
	}
	h.IPVS.Servers = h.IPVS.own(rows)
	return nil
}

// addressesOf are the addresses of the device in `ip -o address show`.
func addressesOf(out []byte) []string {
	var all []string
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) > 3 && f[1] == device && (f[2] == "inet" || f[2] == "inet6") && !strings.HasPrefix(f[3], "fe80:") {
			all = append(all, f[3])
		}
	}
	return all
}

// proxySets are the rows of `ipset save` about kube-proxy's sets.
func proxySets(out []byte) []string {
	var all []string
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) > 2 && (f[0] == "create" || f[0] == "add") && netfilter.ProxySet(f[1]) {
			all = append(all, strings.Join(f, " "))
		}
	}
	return all
}

// setNames are the sets of rows.
func setNames(rows []string) []string {
	var names []string
	for _, r := range rows {
		if f := strings.Fields(r); f[0] == "create" {
			names = append(names, f[1])
		}
	}
	return names
}

// own are the rows of ipvsadm-save that are kube-proxy's.
func (i IPVS) own(out []byte) []string {
	held := map[netip.Addr]bool{}
	for _, a := range i.Addresses {
		if p, err := netip.ParsePrefix(a); err == nil {
			held[p.Addr()] = true
		}
	}
	ports := map[string]bool{}
	for _, r := range i.Sets {
		f := strings.Fields(r)
		if f[0] == "add" && strings.Contains(f[1], "NODE-PORT-") {
			port := f[2][strings.LastIndexAny(f[2], ",:")+1:] // "30080", "10.0.0.1,tcp:30080"
			ports[port] = true
		}
	}
	var all []string
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) < 3 || f[0] != "-A" && f[0] != "-a" {
			continue
		}
		at, err := netip.ParseAddrPort(f[2])
		if err == nil && (held[at.Addr()] || ports[fmt.Sprint(at.Port())]) {
			all = append(all, strings.Join(f, " "))
		}
	}
	return all
}
