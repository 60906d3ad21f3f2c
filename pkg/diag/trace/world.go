package trace

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// world is what is known, made ready for questions about one target.
type world struct {
	services    map[lb.Name]*corev1.Service
	servicesErr error
	slices      []discoveryv1.EndpointSlice
	pods        map[netip.Addr]pod // by address, not those of the host network
	byName      map[lb.Name]pod
	nodes       []*node
	nodeOf      map[netip.Addr]string
	endpoints   map[netip.AddrPort][]string // the Services that have an endpoint
}

// pod is a pod as far as it is known: from its object, or from the slices that
// refer to it.
type pod struct {
	name lb.Name
	node string
	host bool // in the network namespace of its node
}

// node is one node with its three layers.
type node struct {
	*world
	name                   string
	desired, agent, kernel lb.Table
	// Why a layer was not read, nil if it was.
	desiredErr, agentErr, kernelErr error

	behind, unwritten map[netip.AddrPort][]lb.Delta
	failed            map[lb.Address]string // frontends that could not be written
	stiff             map[lb.Address]bool   // non-routable, as far as the map tells

	status *agent.Status
	life   fact.AgentState
	proxy  fact.Proxy
	view   lb.NodeView
	config map[string]string
	wanted agent.Mode // by the configuration, "" where it was not read
}

func newWorld(v *fact.View) *world {
	w := &world{services: map[lb.Name]*corev1.Service{}, pods: map[netip.Addr]pod{}, byName: map[lb.Name]pod{}, nodeOf: map[netip.Addr]string{}, endpoints: map[netip.AddrPort][]string{}}
	services, err := fact.Services.From(v)
	w.servicesErr = err
	for i := range services {
		w.services[lb.Name{Namespace: services[i].Namespace, Name: services[i].Name}] = &services[i]
	}
	w.slices, _ = fact.EndpointSlices.From(v)
	objects, _ := fact.Nodes.From(v)
	for _, n := range objects {
		for _, a := range n.Status.Addresses {
			if ip, err := netip.ParseAddr(a.Address); err == nil {
				w.nodeOf[ip.Unmap()] = n.Name
			}
		}
	}
	for _, n := range v.Nodes() {
		one := newNode(v.On(n.Name))
		one.world = w
		w.nodes = append(w.nodes, one)
		for _, ip := range slices.Concat(one.view.Addresses, one.view.Others) {
			w.nodeOf[ip] = cmp.Or(w.nodeOf[ip], n.Name)
		}
	}
	w.addPods(v)
	w.addEndpoints()
	return w
}

func (w *world) addEndpoints() {
	for i := range w.slices {
		owner := w.sliceOwner(i).name.String()
		for _, p := range w.slices[i].Ports {
			if p.Port == nil || *p.Port <= 0 || *p.Port > 65535 {
				continue
			}
			for _, e := range w.slices[i].Endpoints {
				for _, s := range e.Addresses {
					if ip, err := netip.ParseAddr(s); err == nil {
						at := netip.AddrPortFrom(ip.Unmap(), uint16(*p.Port))
						w.endpoints[at] = uniq(append(w.endpoints[at], owner))
					}
				}
			}
		}
	}
}

func (w *world) addPods(v *fact.View) {
	add := func(p pod, ips ...string) {
		if _, ok := w.byName[p.name]; ok && p.name != (lb.Name{}) {
			p = w.byName[p.name]
		}
		for _, s := range ips {
			ip, err := netip.ParseAddr(s)
			if err != nil {
				continue
			}
			if _, ok := w.nodeOf[ip.Unmap()]; ok {
				p.host = true
				continue
			}
			w.pods[ip.Unmap()] = p
		}
		w.byName[p.name] = p
	}
	objects, _ := fact.Pods.From(v)
	for i := range objects {
		o := &objects[i]
		if o.Status.Phase == corev1.PodSucceeded || o.Status.Phase == corev1.PodFailed {
			continue
		}
		p := pod{lb.Name{Namespace: o.Namespace, Name: o.Name}, o.Spec.NodeName, o.Spec.HostNetwork}
		if p.host {
			w.byName[p.name] = p
			continue
		}
		ips := []string{o.Status.PodIP}
		for _, ip := range o.Status.PodIPs {
			ips = append(ips, ip.IP)
		}
		add(p, ips...)
	}
	for i := range w.slices {
		for _, e := range w.slices[i].Endpoints {
			if name, ok := podOf(e, w.slices[i].Namespace); ok {
				p := pod{name: name}
				if e.NodeName != nil {
					p.node = *e.NodeName
				}
				add(p, e.Addresses...)
			}
		}
	}
}

func podOf(e discoveryv1.Endpoint, namespace string) (lb.Name, bool) {
	if e.TargetRef == nil || e.TargetRef.Kind != "Pod" || e.TargetRef.Name == "" {
		return lb.Name{}, false
	}
	return lb.Name{Namespace: cmp.Or(e.TargetRef.Namespace, namespace), Name: e.TargetRef.Name}, true
}

func newNode(v *fact.View) *node {
	n := &node{name: v.Node(), failed: map[lb.Address]string{}, stiff: map[lb.Address]bool{}}
	n.desired, n.desiredErr = fact.Desired.From(v)
	n.agent, n.agentErr = fact.AgentTable.From(v)
	n.kernel, n.kernelErr = fact.KernelTable.From(v)
	behind, _ := fact.Behind.From(v)
	unwritten, _ := fact.Unwritten.From(v)
	n.behind, n.unwritten = bySocket(behind), bySocket(unwritten)
	table, _ := fact.FrontendsTable.From(v)
	for _, r := range table {
		if r.Status == "Error" {
			n.failed[r.Address] = cmp.Or(r.Error, "no reason given")
		}
	}
	rows, _ := fact.MapRows.From(v)
	for _, r := range rows {
		if r.Master && slices.Contains(r.Flags, "non-routable") {
			n.stiff[r.Frontend] = true
		}
	}
	n.status, _ = fact.Status.From(v)
	n.life, _ = fact.AgentOf.From(v)
	n.proxy, _ = fact.KubeProxy.From(v)
	n.view, _ = fact.NodeView.From(v)
	if wanted, err := fact.WantedMode.From(v); err == nil {
		n.wanted = wanted.Mode
	}
	if cfg, err := fact.Config.From(v); err == nil {
		n.config = cfg.Data
	}
	return n
}

func bySocket(ds []lb.Delta) map[netip.AddrPort][]lb.Delta {
	m := map[netip.AddrPort][]lb.Delta{}
	for _, d := range ds {
		at := netip.AddrPortFrom(d.Frontend.IP, d.Frontend.Port)
		m[at] = append(m[at], d)
	}
	return m
}

// deltasAt gives those of one frontend.
func deltasAt(m map[netip.AddrPort][]lb.Delta, a lb.Address) []lb.Delta {
	var out []lb.Delta
	for _, d := range m[netip.AddrPortFrom(a.IP, a.Port)] {
		if d.Frontend.Scope == a.Scope && sameProtocol(d.Frontend.Protocol, a.Protocol) {
			out = append(out, d)
		}
	}
	return out
}

// sameProtocol: up to 1.16 rows have no protocol and stand for every one.
func sameProtocol(a, b lb.Protocol) bool { return a == b || a == lb.ANY || b == lb.ANY }

// rowAt is the row of an address; one without protocol stands for any.
func rowAt(t lb.Table, a lb.Address) *lb.Row {
	protocols := []lb.Protocol{a.Protocol, lb.ANY}
	if a.Protocol == lb.ANY {
		protocols = []lb.Protocol{lb.ANY, lb.TCP, lb.UDP, lb.SCTP}
	}
	for _, a.Protocol = range protocols {
		if r, ok := t.Find(a); ok {
			return &r
		}
	}
	return nil
}

// replaces tells whether the agent replaces kube-proxy: by its own word, else
// by its configuration.
func (n *node) replaces() lb.Answer {
	mode := n.wanted
	if n.status != nil && n.status.Mode != "" {
		mode = n.status.Mode
	}
	switch mode {
	case "":
		return lb.Unknown
	case agent.ModeFalse:
		return lb.No
	}
	return lb.Yes
}

// serves tells whether Cilium serves a type of frontend on the node.
func (n *node) serves(typ string) lb.Answer {
	switch typ {
	case "NodePort":
		return n.view.NodePort
	case "LoadBalancer":
		return n.view.LoadBalancer
	case "ExternalIPs":
		return n.view.ExternalIPs
	case "HostPort":
		return n.view.HostPort
	}
	return lb.Yes
}

// reason is an error without the node's name, so that nodes with the same one
// can be grouped.
func (n *node) reason(err error) string {
	s := strings.ReplaceAll(err.Error(), "\n", "; ")
	for _, link := range []string{" of ", " on "} {
		s = strings.ReplaceAll(s, link+n.name, "")
	}
	return s
}
