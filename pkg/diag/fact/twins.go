package fact

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/kubectl-kpr/kubectl-kpr/internal/cilium"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// LBDigest is what a node tells of its lists without sending them. It is kept
// as it came, and decoded for one node at a time: decoded it is several times as
// large, and no more than a look is taken at it.
var LBDigest = Read(source.LBDigest, func(a source.Artifact) ([]byte, error) { return a.Data, nil })

// Digested are the topics that a digest stands in for.
func Digested() []source.Topic {
	return []source.Topic{source.ServiceList, source.MapList, source.MapFrontends, source.MapRanges, source.MapBackends, source.MapsDump, source.FrontendsTable}
}

// stoodIn are the facts that a twin has from the node that stands for it.
func (s *Store) stoodIn(sp *spec) bool {
	if sp.topic != "" {
		return slices.Contains(Digested(), sp.topic)
	}
	return slices.Contains([]ID{
		Desired.ID(), Asked.ID(), DesiredAfter.ID(), AgentTable.ID(), KernelTable.ID(),
		Held.ID(), Behind.ID(), MapFlags.ID(), Unwritten.ID(),
	}, sp.id)
}

// Twins finds the nodes whose lists need not be read, as another node holds
// the same and should: it gives the name of that one for each. Their sums are
// equal, so are zone and settings, and what nodes differ in is as the API
// wants it on that very node. A node about which any of this is not known, or
// where something is amiss, has no twin and is to be read in full.
func (s *Store) Twins() map[string]string {
	v := s.Cluster()
	services, err := Services.From(v)
	if err != nil {
		return nil
	}
	slices, err := EndpointSlices.From(v)
	if err != nil || ofNodes(services, slices) {
		return nil
	}
	l := &locals{view: v, services: services, slices: slices, indexes: map[string]*lb.Index{}}
	first, twins := map[string]string{}, map[string]string{}
	for _, n := range s.nodes {
		data, err := LBDigest.From(v.On(n.Name))
		if err != nil {
			continue
		}
		digest, err := cilium.DecodeDigest(data)
		if err != nil || digest.Unwritten > 0 {
			continue
		}
		view, can, ok := l.look(n.Name)
		if !ok {
			continue
		}
		kind := fmt.Sprint(digest.Agent, digest.Kernel, can, kindOf(view))
		switch {
		case first[kind] == "":
			first[kind] = n.Name
		case l.sound(digest, view, can):
			twins[n.Name] = first[kind]
		}
	}
	return twins
}

// StandIn makes the twins have the lists, and all that follows from them, of
// the nodes that stand for them. Addresses of the node itself are exchanged.
func (s *Store) StandIn(twins map[string]string) { s.twins = twins }

// Twin is the node that stands for one, "" if it was read itself.
func (s *Store) Twin(node string) string { return s.twins[node] }

// ofNodes holds where Services are on some nodes by the node's name or labels:
// rows of such ones look like any other.
func ofNodes(services []corev1.Service, eps []discoveryv1.EndpointSlice) bool {
	for i := range services {
		for name := range services[i].Annotations {
			if strings.HasPrefix(name, "service.cilium.io/node") {
				return true
			}
		}
	}
	for i := range eps {
		for _, e := range eps[i].Endpoints {
			if e.Hints != nil && len(e.Hints.ForNodes) > 0 {
				return true
			}
		}
	}
	return false
}

// kindOf is a view without what tells one node from another.
func kindOf(v lb.NodeView) lb.NodeView {
	v.Name, v.Labels = "", nil
	blank := func(as []netip.Addr) []netip.Addr {
		out := make([]netip.Addr, len(as))
		for i, a := range as {
			if out[i] = netip.IPv6Unspecified(); a.Is4() {
				out[i] = netip.IPv4Unspecified()
			}
		}
		return out
	}
	v.Addresses, v.Others = blank(v.Addresses), blank(v.Others)
	return v
}

// locals compares what nodes may differ in.
type locals struct {
	view     *View
	services []corev1.Service
	slices   []discoveryv1.EndpointSlice
	indexes  map[string]*lb.Index // by the Services beside those with a Local policy
}

// look needs the agent's own account: what it serves must not be guessed from
// a part of its rows.
func (l *locals) look(node string) (lb.NodeView, lb.Capabilities, bool) {
	v := l.view.On(node)
	st, err := Status.From(v)
	nodes, _ := Nodes.From(v)
	i := slices.IndexFunc(nodes, func(n corev1.Node) bool { return n.Name == node })
	if err != nil || st == nil || i < 0 {
		return lb.NodeView{}, lb.Capabilities{}, false
	}
	view := withStatus(lb.View(&nodes[i]), st)
	if cfg, err := Config.From(v); err == nil {
		view.ProxyName = cfg.Data["k8s-service-proxy-name"]
		view.IPv4, view.IPv6 = told(cfg, "enable-ipv4"), told(cfg, "enable-ipv6")
		view.Topology = told(cfg, "enable-service-topology")
	}
	can, err := Capabilities.From(v)
	return view, can, err == nil
}

// sound holds where API, agent and map agree about the frontends that came
// with a digest.
func (l *locals) sound(d lb.Digest, view lb.NodeView, can lb.Capabilities) bool {
	want := l.index(d.Frontends).Desired(view, can)
	agent := lb.FromAgent(d.Frontends, view, can)
	kernel := lb.FromKernel(nil, nil, &d.Dump, nil, view, can)
	return len(lb.Unexpected(lb.Diff(want, agent, lb.DiffOptions{}))) == 0 &&
		len(lb.Unexpected(lb.Diff(agent, kernel, lb.DiffOptions{}))) == 0
}

// index is of the Services with a Local policy, of those that the agent has
// sent rows of, and of host ports.
func (l *locals) index(frontends []lb.Frontend) *lb.Index {
	var more []string
	chosen := map[lb.Name]bool{}
	for i := range l.services {
		s := &l.services[i]
		internal := s.Spec.InternalTrafficPolicy
		if s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal || internal != nil && *internal == corev1.ServiceInternalTrafficPolicyLocal {
			chosen[lb.Name{Namespace: s.Namespace, Name: s.Name}] = true
		}
	}
	for _, f := range frontends {
		if !chosen[f.Service] {
			chosen[f.Service] = true
			more = append(more, f.Service.String())
		}
	}
	slices.Sort(more)
	key := strings.Join(more, " ")
	if x := l.indexes[key]; x != nil {
		return x
	}
	in := lb.Inputs{}
	in.Nodes, _ = Nodes.From(l.view)
	in.Pods, _ = Pods.From(l.view)
	for i := range l.services {
		if chosen[lb.Name{Namespace: l.services[i].Namespace, Name: l.services[i].Name}] {
			in.Services = append(in.Services, l.services[i])
		}
	}
	for i := range l.slices {
		if e := &l.slices[i]; chosen[lb.Name{Namespace: e.Namespace, Name: e.Labels[discoveryv1.LabelServiceName]}] {
			in.Slices = append(in.Slices, *e)
		}
	}
	x := lb.NewIndex(in)
	l.indexes[key] = x
	return x
}

// standIn is a fact of a node that another one stands for.
func (v *View) standIn(sp *spec, twin string) *entry {
	of := v.On(twin)
	e := *of.entry(sp)
	e.refs = slices.Concat(v.entry(LBDigest.s).refs, e.refs)
	if ds, ok := e.value.([]lb.Delta); ok {
		e.value = lb.Moved(ds, v.own(twin), v.own(v.node))
	}
	return &e
}

// own are a node's addresses, by family: the first of each.
func (v *View) own(node string) []netip.Addr {
	nodes, _ := v.entry(Nodes.s).value.([]corev1.Node)
	i := slices.IndexFunc(nodes, func(n corev1.Node) bool { return n.Name == node })
	if i < 0 {
		return nil
	}
	return lb.View(&nodes[i]).Addresses
}

// Dismiss lets no node stand for others that was asked for its lists in vain,
// and reports whether there was one.
func (s *Store) Dismiss() bool {
	dismissed := false
	for _, stand := range s.twins {
		at := cell{LBDigest.ID(), stand}
		v := s.Cluster().On(stand)
		if v.Err(AgentFrontends) == nil && v.Err(MapRows) == nil || s.cells[at].err != nil {
			continue
		}
		s.cells[at] = &entry{err: fmt.Errorf("sums of the lists on %s: its lists did not come: %w", stand, source.ErrCut)}
		dismissed = true
	}
	return dismissed
}

// StoodIn is how many nodes another one stands for.
func (s *Store) StoodIn() int { return len(s.twins) }
