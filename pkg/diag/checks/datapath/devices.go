package datapath

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-kpr/kubectl-kpr/internal/netfilter"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
)

// devices is the rule about the devices that an agent serves Services on.
var devices = &diag.Rule{
	Name: "devices", Severity: diag.Warning,
	Title: "the agent serves NodePorts on the wrong devices",
	Doc: `With the replacement on, an agent attaches its programs to a list of network devices, chosen by itself or by the setting
devices. NodePorts, externalIPs and LoadBalancer addresses answer only where packets come in by one of them, and one
device, marked "Direct Routing", is used to reach other nodes and to answer in DSR mode. The mark says nothing of
how pods are routed: it is printed over a tunnel too.

Cilium's own cilium_host in the list is an error: packets that Cilium forwards meet its programs a second time. A node
address that lies on a device outside the list is a warning, since NodePorts do not answer there. A direct routing device
without a usable address is a warning. VPN devices in the list and a list without any mark are only told.`,
	Proof: []string{
		"kubectl kpr exec NODE -- cilium-dbg status --verbose",
		"kubectl kpr exec NODE -- ip -br addr",
	},
	Remedy: `Name the devices in the Helm value devices (a "+" at the end of a name matches all that begin so), or per node in a
CiliumNodeConfig, and set nodePort.directRoutingDevice where the agent marks the wrong one. Agents read both at their start.`,
	Sources: []string{"cilium/cilium#16019", "cilium/cilium#21471", "cilium/cilium#33527", "cilium/cilium#37427"},
}

// Devices checks what devices each agent serves Services on.
func Devices() *diag.Check {
	return &diag.Check{
		Name:  devices.Name,
		Doc:   "devices that the agent serves NodePorts on, against the node's addresses",
		Scope: diag.OfNode,
		Rules: []*diag.Rule{devices},
		Needs: []fact.Named{fact.Status},
		Wants: []fact.Named{fact.Nodes, fact.Links, fact.AgentOf},
		Applies: func(v *fact.View) string {
			if a, err := fact.AgentOf.From(v); err == nil && a.Life == fact.Unwanted {
				return a.Reason
			}
			if st, err := fact.Status.From(v); err == nil && len(st.Devices) == 0 {
				return "the agent serves NodePorts on no device"
			}
			return ""
		},
		Run: judgeDevices,
	}
}

func judgeDevices(p *diag.Pass) error {
	st, _ := fact.Status.From(p.View())
	find := func(severity diag.Severity, about, format string, args ...any) {
		p.Find(devices, diag.Report{Subject: "node/" + p.Node(), Address: about, Severity: severity, Message: fmt.Sprintf(format, args...), Proof: []fact.Named{fact.Status}})
	}
	marked, told := false, false
	for _, d := range st.Devices {
		direct := d.Direct || d.Name == st.DirectRouting && d.Name != ""
		marked, told = marked || direct, told || len(d.Addresses) > 0
		switch {
		case ownDevice(d.Name):
			as := ""
			if direct {
				as = ", as the direct routing device"
			}
			find(diag.Error, d.Name, "Cilium's own %s is in the device list%s: what Cilium forwards meets its programs a second time, and replies may leave by it", d.Name, as)
		case vpnDevice(d.Name):
			find(diag.Info, d.Name, "%s looks like a VPN device and is in the device list: Services are served to whoever comes in by it", d.Name)
		case direct && len(d.Addresses) > 0 && !slices.ContainsFunc(d.Addresses, usable):
			find(diag.Warning, d.Name, "the direct routing device %s has no address that another node could reach (%s)", d.Name, addresses(d.Addresses))
		}
	}
	if !marked {
		find(diag.Info, "", "no device is marked Direct Routing (the list is %s): that is where nodes forward NodePort traffic to each other and answer in DSR mode", names(st.Devices))
	}
	if told {
		outside(p, st, find)
	}
	return nil
}

// outside finds node addresses on devices that are not in the list. An address
// on no device at all is the work of a cloud's NAT.
func outside(p *diag.Pass, st *agent.Status, find func(diag.Severity, string, string, ...any)) {
	links, err := fact.Links.From(p.View())
	nodes, nodesErr := fact.Nodes.From(p.View())
	if err != nil || nodesErr != nil {
		return
	}
	i := slices.IndexFunc(nodes, func(n corev1.Node) bool { return n.Name == p.Node() })
	if i < 0 {
		return
	}
	for _, a := range nodes[i].Status.Addresses {
		ip, err := netip.ParseAddr(a.Address)
		if err != nil || slices.ContainsFunc(st.Devices, func(d agent.Device) bool { return slices.Contains(d.Addresses, ip.Unmap()) }) {
			continue
		}
		l := slices.IndexFunc(links, func(l netfilter.Link) bool {
			return slices.ContainsFunc(l.Addrs, func(p netip.Prefix) bool { return p.Addr() == ip.Unmap() })
		})
		if l < 0 || ownDevice(links[l].Name) || slices.ContainsFunc(st.Devices, func(d agent.Device) bool { return d.Name == links[l].Name }) {
			continue // an older agent lists one address of a device only
		}
		find(diag.Warning, ip.String(), "node address %s (%s) is on no device of the list %s: NodePorts do not answer there", ip, links[l].Name, names(st.Devices))
	}
}

func ownDevice(name string) bool {
	return strings.HasPrefix(name, "cilium_") || strings.HasPrefix(name, "lxc") || name == "kube-ipvs0"
}

func vpnDevice(name string) bool {
	for _, prefix := range []string{"tailscale", "wg", "zt", "tun", "nebula", "netbird", "wt", "ppp"} {
		if rest, ok := strings.CutPrefix(name, prefix); ok && (len(rest) == 0 || prefix == "zt" || rest[0] >= '0' && rest[0] <= '9') {
			return true
		}
	}
	return false
}

func usable(ip netip.Addr) bool {
	return ip.IsValid() && !ip.IsLinkLocalUnicast() && !ip.IsLoopback() && !ip.IsUnspecified()
}

func names(ds []agent.Device) string {
	var out []string
	for _, d := range ds {
		out = append(out, d.Name)
	}
	return "[" + strings.Join(out, " ") + "]"
}

func addresses(ips []netip.Addr) string {
	var out []string
	for _, ip := range ips {
		out = append(out, ip.String())
	}
	return strings.Join(out, ", ")
}
