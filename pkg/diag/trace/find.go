package trace

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// found is what a target turned out to be.
type found struct {
	owners []owner
	words  string // what an address is, "" for other targets
	only   filter // the frontends asked for
	// answer is set where there is nothing to trace.
	answer *Verdict
}

// owner is a Service, or a pod for its host ports. The zero Name stands for
// frontends that nobody known owns.
type owner struct {
	name lb.Name
	pod  bool
}

func (o owner) compare(p owner) int {
	return cmp.Or(cmp.Compare(o.name.String(), p.name.String()), strings.Compare(strconv.FormatBool(o.pod), strconv.FormatBool(p.pod)))
}

// filter chooses frontends. The zero filter takes all.
type filter struct {
	ports []corev1.ServicePort
	port  uint16 // where the Service's ports are not known
	ip    netip.Addr
	onIP  lb.Protocol
	node  bool // ip is a node's: NodePorts answer on it
}

func (f filter) takes(a lb.Address) bool {
	switch {
	case f.ip.IsValid():
		surrogate := f.node && f.port != 0 && a.Surrogate() && a.IP.Is4() == f.ip.Is4()
		return (a.IP == f.ip || surrogate) && (f.port == 0 || a.Port == f.port) && sameProtocol(a.Protocol, f.onIP)
	case f.ports != nil:
		return slices.ContainsFunc(f.ports, func(p corev1.ServicePort) bool {
			protocol, err := lb.ParseProtocol(cmp.Or(string(p.Protocol), "TCP"))
			return err == nil && sameProtocol(protocol, a.Protocol) && (int32(a.Port) == p.Port || int32(a.Port) == p.NodePort)
		})
	}
	return f.port == 0 || a.Port == f.port
}

func (w *world) find(t Target) (found, error) {
	switch t.Kind {
	case AddressTarget:
		return w.findAddress(t), nil
	case PodTarget:
		return w.findPod(t)
	}
	name := lb.Name{Namespace: t.Namespace, Name: t.Name}
	f := found{owners: []owner{{name: name}}}
	s := w.services[name]
	if s == nil {
		if w.servicesErr == nil && !w.remembered(name) {
			return f, w.noService(t)
		}
		if n, err := strconv.ParseUint(t.Port, 10, 16); err == nil {
			f.only.port = uint16(n)
		}
		return f, nil
	}
	if t.Port == "" {
		return f, nil
	}
	var known []string
	for _, p := range s.Spec.Ports {
		if p.Name == t.Port || strconv.Itoa(int(p.Port)) == t.Port || p.NodePort > 0 && strconv.Itoa(int(p.NodePort)) == t.Port {
			f.only.ports = append(f.only.ports, p)
		}
		known = append(known, portWords(p))
	}
	if f.only.ports == nil {
		return f, fmt.Errorf("service %s: no port %q; it has %s", name, t.Port, cmp.Or(strings.Join(known, ", "), "none"))
	}
	return f, nil
}

// remembered holds for a Service that an agent still has, though it may be gone.
func (w *world) remembered(name lb.Name) bool {
	return slices.ContainsFunc(w.nodes, func(n *node) bool {
		return slices.ContainsFunc(n.agent.Rows, func(r lb.Row) bool { return r.Service == name && r.Type != "HostPort" })
	})
}

func portWords(p corev1.ServicePort) string {
	s := strconv.Itoa(int(p.Port)) + "/" + cmp.Or(string(p.Protocol), "TCP")
	if p.Name != "" {
		s = p.Name + " " + s
	}
	return s
}

// noService names where it is, or near ones.
func (w *world) noService(t Target) error {
	var here, elsewhere []string
	for name := range w.services {
		switch {
		case name.Namespace == t.Namespace:
			here = append(here, name.Name)
		case name.Name == t.Name:
			elsewhere = append(elsewhere, name.Namespace)
		}
	}
	slices.Sort(elsewhere)
	err := fmt.Errorf("service %q: not in namespace %q", t.Name, t.Namespace)
	if len(elsewhere) > 0 {
		return fmt.Errorf("%w; it is in %s: kubectl kpr trace svc/%s -n %s", err, listed(elsewhere), t.Name, elsewhere[0])
	}
	if hint := meant(t.Name, here); hint != "" {
		return fmt.Errorf("%w%s", err, hint)
	}
	var near []string
	for name := range w.services {
		near = append(near, name.Name)
	}
	return fmt.Errorf("%w%s", err, meant(t.Name, near))
}

func (w *world) findPod(t Target) (found, error) {
	name := lb.Name{Namespace: t.Namespace, Name: t.Name}
	var f found
	for i := range w.slices {
		for _, e := range w.slices[i].Endpoints {
			if p, ok := podOf(e, w.slices[i].Namespace); ok && p == name {
				f.add(w.sliceOwner(i))
			}
		}
	}
	for _, n := range w.nodes {
		for _, r := range n.desired.Rows {
			if r.Type == "HostPort" && r.Service == name {
				f.add(owner{name, true})
			}
		}
	}
	if len(f.owners) > 0 {
		return f, nil
	}
	if _, ok := w.byName[name]; ok {
		f.answer = &Verdict{State: Excluded, Text: fmt.Sprintf("pod %s is behind no Service and has no host port: there is nothing to balance", name)}
		return f, nil
	}
	var names []string
	for p := range w.byName {
		if p.Namespace == t.Namespace {
			names = append(names, p.Name)
		}
	}
	return f, fmt.Errorf("pod %s: behind no Service in any EndpointSlice%s", name, meant(t.Name, names))
}

func (f *found) add(o owner) {
	if !slices.Contains(f.owners, o) {
		f.owners = append(f.owners, o)
		slices.SortFunc(f.owners, owner.compare)
	}
}

func (w *world) sliceOwner(i int) owner {
	s := &w.slices[i]
	return owner{name: lb.Name{Namespace: s.Namespace, Name: s.Labels[discoveryv1.LabelServiceName]}}
}

// findAddress says what an address is: a frontend, a backend, a pod, a node.
func (w *world) findAddress(t Target) found {
	f := found{only: filter{ip: t.IP, port: t.PortNumber, onIP: t.Protocol}}
	_, f.only.node = w.nodeOf[t.IP]
	if types := w.frontendsAt(&f); len(f.owners) > 0 {
		names := make([]string, len(f.owners))
		for i, o := range f.owners {
			names[i] = cmp.Or(o.name.String(), "no Service that is known")
		}
		f.words = fmt.Sprintf("%s is %s of %s", t, listed(types), listed(names))
		return f
	}
	if f.behind(w, t) {
		return f
	}
	f.answer = w.nothingAt(t)
	return f
}

var typeWords = map[string]string{
	"ClusterIP": "a ClusterIP", "NodePort": "a NodePort", "LoadBalancer": "a LoadBalancer address",
	"ExternalIPs": "an externalIP", "HostPort": "a host port", "LocalRedirect": "a local redirect",
}

// frontendsAt looks in all layers of all nodes, so that a frontend whose
// Service is gone is found too.
func (w *world) frontendsAt(f *found) (types []string) {
	for _, n := range w.nodes {
		for _, table := range []lb.Table{n.desired, n.agent, n.kernel} {
			for _, r := range table.Rows {
				if r.Wildcard || !f.only.takes(r.Address) {
					continue
				}
				o := owner{name: r.Service, pod: r.Type == "HostPort"}
				if o.name == (lb.Name{}) {
					if d := rowAt(n.desired, r.Address); d != nil {
						o.name = d.Service
					} else if a := rowAt(n.agent, r.Address); a != nil {
						o.name = a.Service
					}
				}
				if o.name == (lb.Name{}) && len(f.owners) > 0 {
					continue
				}
				f.add(o)
				types = uniq(append(types, typeWords[r.Type]))
			}
		}
	}
	if len(f.owners) > 1 {
		f.owners = slices.DeleteFunc(f.owners, func(o owner) bool { return o.name == (lb.Name{}) })
	}
	if f.only.node && f.only.port != 0 {
		// With the replacement off, NodePorts are in no table.
		for name, s := range w.services {
			if slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return p.NodePort == int32(f.only.port) }) {
				f.add(owner{name: name})
				types = uniq(append(types, typeWords["NodePort"]))
			}
		}
	}
	if types == nil {
		types = []string{"a frontend"}
	}
	return types
}

// behind finds the Services that an address is a backend of, and traces those.
func (f *found) behind(w *world, t Target) bool {
	for i := range w.slices {
		for _, e := range w.slices[i].Endpoints {
			if !slices.ContainsFunc(e.Addresses, func(s string) bool { ip, err := netip.ParseAddr(s); return err == nil && ip.Unmap() == t.IP }) {
				continue
			}
			ports := w.slices[i].Ports
			if t.PortNumber == 0 || slices.ContainsFunc(ports, func(p discoveryv1.EndpointPort) bool { return p.Port != nil && *p.Port == int32(t.PortNumber) }) {
				f.add(w.sliceOwner(i))
			}
		}
	}
	what := "an endpoint"
	if len(f.owners) == 0 {
		what = "no endpoint any more, and still a backend"
		for _, n := range w.nodes {
			for _, table := range []lb.Table{n.agent, n.kernel} {
				for _, r := range table.Rows {
					if slices.ContainsFunc(r.Entries, func(e lb.Entry) bool {
						return e.Address.IP == t.IP && (t.PortNumber == 0 || e.Address.Port == t.PortNumber)
					}) {
						if d := rowAt(n.desired, r.Address); r.Service == (lb.Name{}) && d != nil {
							r.Service = d.Service
						}
						if r.Service != (lb.Name{}) {
							f.add(owner{name: r.Service, pod: r.Type == "HostPort"})
						}
					}
				}
			}
		}
	}
	if len(f.owners) == 0 {
		return false
	}
	names := make([]string, len(f.owners))
	for i, o := range f.owners {
		names[i] = o.name.String()
	}
	f.words = fmt.Sprintf("%s is no frontend but %s of %s", t, what, listed(names))
	if p, ok := w.pods[t.IP]; ok {
		f.words += fmt.Sprintf(": pod %s on %s", p.name, cmp.Or(p.node, "an unknown node"))
	}
	f.only = filter{}
	return true
}
