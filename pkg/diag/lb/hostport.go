package lb

import (
	"cmp"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// hostPort is a port of a pod that its node answers on.
type hostPort struct {
	pod      Name
	port     uint16
	protocol Protocol
	hostIP   netip.Addr // invalid: every address of the node
	unusable string     // why it has no frontend, or ""
	maybe    string     // why it may have none, or ""
	entries  [2][]Entry
}

func (h hostPort) compare(o hostPort) int {
	return cmp.Or(cmp.Compare(h.pod.Namespace, o.pod.Namespace), cmp.Compare(h.pod.Name, o.pod.Name),
		cmp.Compare(h.port, o.port), cmp.Compare(h.protocol, o.protocol), h.hostIP.Compare(o.hostIP))
}

// addHostPorts passes over pods that have left the node, and those in its
// network namespace, whose ports need no frontend.
func (x *Index) addHostPorts(p *corev1.Pod) {
	if p.Spec.NodeName == "" || p.Spec.HostNetwork || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return
	}
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		for _, cp := range c.Ports {
			protocol, err := ParseProtocol(cmp.Or(string(cp.Protocol), "TCP"))
			if cp.HostPort <= 0 || cp.HostPort > 65535 || cp.ContainerPort <= 0 || cp.ContainerPort > 65535 || err != nil {
				continue
			}
			h := hostPort{pod: Name{p.Namespace, p.Name}, port: uint16(cp.HostPort), protocol: protocol}
			if cp.HostIP != "" {
				ip, err := netip.ParseAddr(cp.HostIP)
				switch {
				case err != nil:
					h.unusable = "hostIP " + cp.HostIP + " is no address"
				case ip.IsLoopback():
					// Given a recent kernel, recent agents keep it at 0.0.0.0
					// or [::], for the node itself alone.
					h.hostIP = surrogateOf(Address{IP: ip.Unmap()}).IP
					h.maybe = "hostIP " + cp.HostIP + " is a loopback address, which not every agent serves"
				case !ip.IsUnspecified():
					h.hostIP = ip.Unmap()
				}
			}
			for _, ip := range podIPs(p) {
				h.entries[familyOf(ip)] = append(h.entries[familyOf(ip)], Entry{Backend: Backend{
					Address: Address{IP: ip, Port: uint16(cp.ContainerPort), Protocol: protocol}, State: Active,
				}})
			}
			x.hostPorts[p.Spec.NodeName] = append(x.hostPorts[p.Spec.NodeName], h)
		}
	}
}

func podIPs(p *corev1.Pod) []netip.Addr {
	ips := p.Status.PodIPs
	if len(ips) == 0 && p.Status.PodIP != "" {
		ips = []corev1.PodIP{{IP: p.Status.PodIP}}
	}
	var as []netip.Addr
	for _, ip := range ips {
		if a, err := netip.ParseAddr(ip.IP); err == nil {
			as = append(as, a.Unmap())
		}
	}
	return as
}

func (w *writer) hostPort(h hostPort) {
	n := w.node
	switch {
	case h.unusable != "":
		w.absent(h.pod, "HostPort", Unreadable, "%s", h.unusable)
		return
	case n.nodePort(h.port):
		w.absent(h.pod, "HostPort", PortReserved, "hostPort %d is in the NodePort range", h.port)
		return
	}
	maybe := h.maybe
	switch n.HostPort {
	case No:
		maybe = "Cilium does not serve HostPort on this node"
	case Unknown:
		maybe = "whether Cilium serves HostPort on this node is not known"
	}
	ips := []netip.Addr{h.hostIP}
	if !h.hostIP.IsValid() {
		ips = surrogates([]family{v4, v6})
	}
	for _, ip := range ips {
		f := familyOf(ip)
		if !h.hostIP.IsValid() && len(h.entries[f]) == 0 || n.family(f) == No {
			continue
		}
		w.expand(Row{
			Address: Address{IP: ip, Port: h.port, Protocol: h.protocol}, Type: "HostPort", Service: h.pod,
			Counts: Counts{-1, -1}, Entries: h.entries[f], Optional: maybe,
		})
	}
}
