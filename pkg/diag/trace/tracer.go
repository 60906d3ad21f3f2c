package trace

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// tracer makes one Trace.
type tracer struct {
	*world
	at        place
	found     found
	confirmed map[fault]bool // nil: every difference counts
	faults    map[fault]bool // differences that counted
}

// fault tells differences of two looks apart.
type fault struct {
	node              string
	layer             Layer
	kind              lb.Kind
	frontend, backend lb.Address
	detail            string
}

// front is what the rows of several nodes have in common: an address, or a
// port on each node's own addresses.
type front struct {
	address lb.Address
	onNodes bool
}

// instance is one frontend on one node, in three layers; nil where a layer
// does not have it.
type instance struct {
	*node
	address                lb.Address
	desired, agent, kernel *lb.Row
	behind, unwritten      []lb.Delta
	failure                string // why the agent could not write it
}

func (t *tracer) service(o owner) Service {
	s := Service{Namespace: o.name.Namespace, Name: o.name.Name, Frontends: []Frontend{}, Absent: []Absent{}, pod: o.pod}
	if !o.pod {
		s.object = t.services[o.name]
	}
	rows := map[front][]instance{}
	var order []front
	for _, n := range t.at.nodes {
		for key, in := range t.relevant(n, t.instances(n, o)) {
			if rows[key] == nil {
				order = append(order, key)
			}
			rows[key] = append(rows[key], in...)
		}
	}
	for _, key := range order {
		f := t.frontend(key, rows[key])
		twin := key
		twin.address.Scope = lb.Internal
		switch _, two := rows[twin]; {
		case key.address.Scope == lb.Internal:
			f.Scope = "internal"
		case two:
			f.Scope = "external"
		}
		s.Frontends = append(s.Frontends, f)
	}
	slices.SortFunc(s.Frontends, func(a, b Frontend) int {
		return cmp.Or(cmp.Compare(rankOf(a.Type), rankOf(b.Type)), a.key.address.Compare(b.key.address), cmp.Compare(fmt.Sprint(a.OnNodes), fmt.Sprint(b.OnNodes)))
	})
	s.Absent = t.absent(o)
	return s
}

var typeOrder = []string{"ClusterIP", "NodePort", "LoadBalancer", "ExternalIPs", "HostPort", "LocalRedirect"}

func rankOf(typ string) int {
	if i := slices.Index(typeOrder, typ); i >= 0 {
		return i
	}
	return len(typeOrder)
}

// instances are the frontends of an owner that a node has, or should have.
func (t *tracer) instances(n *node, o owner) map[front][]instance {
	out := map[front][]instance{}
	seen := map[lb.Address]bool{}
	add := func(r lb.Row) {
		if r.Wildcard || !t.found.only.takes(r.Address) {
			return
		}
		// A row without protocol is the same as the one with.
		if d := rowAt(n.desired, r.Address); d != nil && r.Address.Protocol == lb.ANY {
			r.Address = d.Address
		}
		if seen[r.Address] {
			return
		}
		seen[r.Address] = true
		key := front{address: r.Address, onNodes: r.Expansion}
		if r.Expansion {
			key.address = surrogate(r.Address)
		}
		out[key] = append(out[key], t.instance(n, r.Address))
	}
	pods := t.podsBehind(o)
	for _, r := range n.desired.Rows {
		switch {
		case r.Type == "HostPort" && (o.pod && r.Service == o.name || pods[r.Service]):
			add(r)
		case r.Type != "HostPort" && !o.pod && (r.Service == o.name || slices.ContainsFunc(r.Claims, func(c lb.Claim) bool { return c.Service == o.name })):
			add(r)
		}
	}
	for _, r := range n.agent.Rows {
		if r.Service == o.name && (r.Type == "HostPort") == o.pod && (o.name != lb.Name{} || rowAt(n.desired, r.Address) == nil) {
			add(r)
		}
	}
	if o.name == (lb.Name{}) {
		for _, r := range n.kernel.Rows {
			add(r)
		}
	}
	return out
}

// podsBehind are the pods of a Service, whose host ports lead to the same
// backends.
func (t *tracer) podsBehind(o owner) map[lb.Name]bool {
	pods := map[lb.Name]bool{}
	if o.pod || o.name == (lb.Name{}) {
		return pods
	}
	for i := range t.slices {
		if t.sliceOwner(i).name != o.name {
			continue
		}
		for _, e := range t.slices[i].Endpoints {
			if p, ok := podOf(e, t.slices[i].Namespace); ok {
				pods[p] = true
			}
		}
	}
	return pods
}

func surrogate(a lb.Address) lb.Address {
	if a.IP.Is4() {
		a.IP = zero4
	} else {
		a.IP = zero6
	}
	return a
}

func (t *tracer) instance(n *node, a lb.Address) instance {
	in := instance{
		node: n, address: a, desired: rowAt(n.desired, a), agent: rowAt(n.agent, a), kernel: rowAt(n.kernel, a),
		failure: n.failed[a],
	}
	above := Agent
	if n.agentErr != nil {
		above = Kernel // it stands in for the agent
	}
	in.behind = t.counted(n, above, deltasAt(n.behind, a))
	in.unwritten = t.counted(n, Kernel, deltasAt(n.unwritten, a))
	return in
}

// counted explains differences that an earlier look did not have.
func (t *tracer) counted(n *node, layer Layer, ds []lb.Delta) []lb.Delta {
	for i, d := range ds {
		if d.Expected != "" {
			continue
		}
		f := fault{n.name, layer, d.Kind, d.Frontend, d.Backend, d.Detail}
		if t.confirmed != nil && !t.confirmed[f] {
			ds[i].Expected = "a change under way: an earlier look did not have it"
			continue
		}
		t.faults[f] = true
	}
	return ds
}

// frontend groups the nodes that hold the same.
func (t *tracer) frontend(key front, in []instance) Frontend {
	f := Frontend{Address: key.address.String(), OnNodes: key.onNodes, key: key}
	type bucket struct {
		Group
		content string
	}
	var groups []*bucket
	for _, i := range in {
		f.describe(i)
		g := t.group(i, key)
		paths := g.Paths
		g.Paths = nil // devices and modes of nodes may differ where the rows do not
		raw, err := json.Marshal(g)
		if err != nil {
			continue // strings and slices of them: it cannot fail
		}
		at := slices.IndexFunc(groups, func(b *bucket) bool { return b.content == string(raw) })
		if at < 0 {
			at = len(groups)
			groups = append(groups, &bucket{g, string(raw)})
		}
		groups[at].Nodes = uniq(append(groups[at].Nodes, i.name))
		for _, p := range paths {
			if !slices.ContainsFunc(groups[at].Paths, func(q Path) bool { return p.Client == q.Client && slices.Equal(p.Hops, q.Hops) }) {
				groups[at].Paths = append(groups[at].Paths, p)
			}
		}
		if key.onNodes {
			groups[at].Addresses = append(groups[at].Addresses, i.address.IP.String())
		}
	}
	slices.SortStableFunc(groups, func(a, b *bucket) int {
		return cmp.Or(cmp.Compare(weight(a.State), weight(b.State)), cmp.Compare(len(b.Nodes), len(a.Nodes)), strings.Compare(a.Nodes[0], b.Nodes[0]))
	})
	f.Groups = make([]Group, len(groups))
	for i, b := range groups {
		if b.Paths == nil {
			b.Paths = []Path{}
		}
		f.Groups[i] = b.Group
	}
	return f
}

func (f *Frontend) describe(i instance) {
	for _, r := range []*lb.Row{i.desired, i.agent, i.kernel} {
		if r != nil {
			f.Type, f.PortName = cmp.Or(f.Type, r.Type), cmp.Or(f.PortName, r.PortName)
		}
	}
}

// weight orders states, the worst first.
func weight(s State) int {
	return slices.Index([]State{Behind, Nobody, Unknown, OK, Stops, Elsewhere, Excluded}, s)
}
