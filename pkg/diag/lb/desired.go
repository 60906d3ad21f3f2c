package lb

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Desired is what the node should hold: a row for each frontend of each
// Service and host port, with the backends that must and those that may be
// behind it. It reads no clock and asks nobody; the same Index and arguments
// give the same Table.
func (x *Index) Desired(n NodeView, c Capabilities) Table {
	w := writer{node: n, can: c, table: Table{Layer: Desired, expanded: n.Exact, pods: x.allPods, prefixes: x.prefixes}}
	w.table.Rows = make([]Row, 0, 2*len(x.services))
	for _, s := range x.services {
		w.service(s)
	}
	for _, h := range x.hostPorts[n.Name] {
		w.hostPort(h)
	}
	w.table.Rows = settle(w.table.Rows)
	slices.SortFunc(w.table.health, Address.Compare)
	return w.table
}

// writer collects the rows of one node.
type writer struct {
	node  NodeView
	can   Capabilities
	table Table
}

func (w *writer) absent(s Name, typ string, c Cause, format string, args ...any) {
	w.table.Absent = append(w.table.Absent, Absence{Service: s, Type: typ, Cause: c, Reason: fmt.Sprintf(format, args...)})
}

func (w *writer) service(s *service) {
	maybe, ok := w.admit(s)
	if !ok {
		return
	}
	only := s.annotations["service.cilium.io/type"]
	exposed := func(typ string) (string, bool) {
		if w.can.Exposure == No || only == "" || only == typ || !slices.Contains([]string{"ClusterIP", "NodePort", "LoadBalancer"}, only) {
			return maybe, true
		}
		if w.can.Exposure == Unknown {
			return "service.cilium.io/type is " + only, true
		}
		w.absent(s.name, typ, TypeAnnotation, "annotation service.cilium.io/type is %s", only)
		return "", false
	}
	if opt, ok := exposed("ClusterIP"); ok {
		for _, bad := range s.unreadable {
			w.absent(s.name, "ClusterIP", Unreadable, "clusterIP %q is no address", bad)
		}
		w.frontends(s, "ClusterIP", s.clusterIPs, opt)
	}
	typ := s.spec.Type
	if typ == corev1.ServiceTypeNodePort || typ == corev1.ServiceTypeLoadBalancer {
		if opt, ok := exposed("NodePort"); ok {
			w.frontends(s, "NodePort", surrogates(s.families), opt)
		}
	}
	if typ == corev1.ServiceTypeLoadBalancer {
		if opt, ok := exposed("LoadBalancer"); ok {
			w.ingress(s, opt)
		}
	}
	var ips []netip.Addr
	for _, e := range s.spec.ExternalIPs {
		ip, err := netip.ParseAddr(e)
		if err != nil {
			w.absent(s.name, "ExternalIPs", Unreadable, "externalIP %q is no address", e)
			continue
		}
		ips = append(ips, ip.Unmap())
	}
	w.frontends(s, "ExternalIPs", ips, maybe)
}

func surrogates(fs []family) []netip.Addr {
	var as []netip.Addr
	for _, f := range fs {
		if f == v4 {
			as = append(as, netip.IPv4Unspecified())
		} else {
			as = append(as, netip.IPv6Unspecified())
		}
	}
	return as
}

// ingress writes the rows of a balancer's addresses. An address in mode Proxy
// is answered by the balancer; recent agents leave it alone.
func (w *writer) ingress(s *service, maybe string) {
	var vips, proxied []netip.Addr
	for _, in := range s.ingress {
		ip, err := netip.ParseAddr(in.IP)
		switch {
		case err != nil && in.IP != "":
			w.absent(s.name, "LoadBalancer", Unreadable, "ingress address %q is none", in.IP)
		case err != nil:
		case in.IPMode != nil && *in.IPMode == corev1.LoadBalancerIPModeProxy:
			proxied = append(proxied, ip.Unmap())
		default:
			vips = append(vips, ip.Unmap())
		}
	}
	if len(vips)+len(proxied) == 0 {
		class := ""
		if c := s.spec.LoadBalancerClass; c != nil {
			class = " from loadBalancerClass " + *c
		}
		w.absent(s.name, "LoadBalancer", NoIngress, "it has no ingress address%s", class)
	}
	w.frontends(s, "LoadBalancer", vips, maybe)
	w.frontends(s, "LoadBalancer", proxied, "the ingress address is in mode Proxy: the balancer answers it")
	// The agent may answer healthCheckNodePort on the Service's own address.
	if number := s.spec.HealthCheckNodePort; number > 0 && number <= 65535 {
		for _, ip := range vips {
			w.table.health = append(w.table.health, Address{IP: ip, Port: uint16(number), Protocol: TCP})
		}
	}
}

// frontends writes a kind of frontend for all ports, in one or two scopes.
func (w *writer) frontends(s *service, typ string, ips []netip.Addr, maybe string) {
	if len(ips) == 0 {
		return
	}
	switch w.node.serves(typ) {
	case No:
		// With the replacement off, agents from 1.18 on keep LoadBalancer
		// rows to themselves, and all versions may hold externalIPs for pods.
		if typ == "NodePort" {
			w.absent(s.name, typ, FeatureOff, "Cilium does not serve NodePorts on this node")
			return
		}
		maybe = "Cilium does not serve " + typ + " on this node"
	case Unknown:
		if maybe == "" {
			maybe = "whether Cilium serves " + typ + " on this node is not known"
		}
	}
	for _, ip := range ips {
		f := familyOf(ip)
		if w.node.family(f) == No {
			w.absent(s.name, typ, FamilyOff, "%s is switched off in the agent", f)
			continue
		}
		for i := range s.ports {
			p := &s.ports[i]
			a := Address{IP: ip, Port: p.number, Protocol: p.protocol}
			if typ == "NodePort" {
				if p.nodePort == 0 {
					continue
				}
				a.Port = p.nodePort
			}
			w.scopes(s, p, typ, a, maybe)
		}
	}
}

// scopes: where one of the two policies is Local and the other is not, the
// external row and the internal row differ. ClusterIPs know the internal
// policy only and have one row; so have externalIPs from 1.18 on.
func (w *writer) scopes(s *service, p *port, typ string, a Address, maybe string) {
	internal := s.internal
	if w.can.InternalPolicy == No {
		internal = Cluster
	}
	if typ == "ClusterIP" {
		w.row(s, p, typ, a, internal, "internalTrafficPolicy", maybe)
		return
	}
	w.row(s, p, typ, a, s.external, "externalTrafficPolicy", maybe)
	if (s.external == Local) == (internal == Local) {
		return
	}
	a.Scope = Internal
	if typ == "ExternalIPs" && maybe == "" {
		maybe = "recent versions have no internal row for externalIPs"
	}
	w.row(s, p, typ, a, internal, "internalTrafficPolicy", maybe)
}

func (w *writer) row(s *service, p *port, typ string, a Address, local Policy, policy, maybe string) {
	f := familyOf(a.IP)
	h := p.behind[f].on(w.node, local, policy, s.spread)
	if w.can.Terminating == No {
		h.entries = withoutDraining(h.entries)
	}
	r := Row{
		Address: a, Type: typ, Service: s.name, PortName: p.name, Counts: Counts{-1, -1}, Entries: h.entries,
		Flags: w.flags(s, typ, f), Global: s.global, Optional: maybe, Cause: h.cause, Reason: h.reason,
	}
	if h.cause == Placeholder {
		r.Redirect = L7Redirect
	}
	w.expand(r)
}

// expand adds a row and, for a surrogate, those of the node's addresses.
func (w *writer) expand(r Row) {
	w.table.Rows = append(w.table.Rows, r)
	if !r.Address.Surrogate() {
		return
	}
	w.table.Rows = appendExpansions(w.table.Rows, r, w.node)
}

func appendExpansions(rows []Row, r Row, n NodeView) []Row {
	f := familyOf(r.Address.IP)
	r.Expansion = true
	for _, ip := range n.Addresses {
		if familyOf(ip) == f {
			r.Address.IP = ip
			rows = append(rows, r)
		}
	}
	if r.Optional == "" {
		r.Optional = "the node may answer NodePorts on this address"
	}
	for _, ip := range n.Others {
		if familyOf(ip) == f {
			r.Address.IP = ip
			rows = append(rows, r)
		}
	}
	return rows
}

func (w *writer) flags(s *service, typ string, f family) Flags {
	g := Flags{Affinity: AnswerOf(s.affinity > 0), AffinityTimeout: s.affinity, External: s.external, Internal: s.internal}
	if w.can.InternalPolicy == No {
		g.Internal = ""
	}
	if typ == "ClusterIP" {
		// It has no external policy; versions differ in what they print.
		g.External = ""
	}
	switch {
	case len(s.ranges) == 0:
		g.SourceCheck = No
	case typ == "LoadBalancer":
		// Ranges of the other family alone still set the flag: nothing of
		// this family may pass then.
		g.SourceCheck, g.RangesTold = Yes, true
		for _, p := range s.ranges {
			if familyOf(p.Addr()) == f {
				g.Ranges = append(g.Ranges, p)
			}
		}
	}
	return g
}
