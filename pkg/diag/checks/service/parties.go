package service

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// comparison collects, for each Service, how nodes stand apart from what the
// API wants of them. Measured against that, what differs between nodes by
// design is the same.
type comparison struct {
	view  *fact.View
	nodes []string
	marks map[topic]map[string][]mark
}

// topic is what nodes may disagree on: a Service, or a frontend without one.
type topic struct {
	service  lb.Name
	frontend lb.Address
}

// mark is one thing that a node has or lacks.
type mark struct {
	kind              lb.Kind
	frontend, backend lb.Address
}

// take adds a node. Where the API was not read, everything it holds is a mark.
func (c *comparison) take(v *fact.View) error {
	have, err := fact.Held.From(v)
	if err != nil {
		return err
	}
	c.nodes = append(c.nodes, v.Node())
	ds, err := fact.Behind.From(v)
	if err != nil {
		for _, r := range have.Shared().Rows {
			if sameForAll(have, r) {
				c.hold(v.Node(), topic{frontend: bareAddress(r.Address)}, r)
			}
		}
		return nil
	}
	want, _ := fact.Desired.From(v)
	for _, d := range ds {
		switch claim(v, d) {
		case missing.Name, stale.Name, frontendMissing.Name:
		default:
			continue
		}
		if ownAddress(v, want, have, d) {
			continue
		}
		if d.Service != (lb.Name{}) {
			c.add(v.Node(), topic{service: d.Service}, mark{d.Kind, d.Frontend, d.Backend})
		}
		// What a frontend has that nobody wants: nodes can still differ in it.
		if r, ok := find(have, d.Frontend); ok && d.Kind == lb.FrontendExtra && sameForAll(have, r) {
			c.hold(v.Node(), topic{d.Service, unowned(d)}, r)
		}
	}
	return nil
}

func (c *comparison) add(node string, at topic, m mark) {
	if c.marks[at] == nil {
		c.marks[at] = map[string][]mark{}
	}
	c.marks[at][node] = append(c.marks[at][node], m)
}

// hold marks all that a node has behind a frontend that is not wanted, or of
// which nobody knows.
func (c *comparison) hold(node string, at topic, r lb.Row) {
	for _, e := range r.Entries {
		c.add(node, at, mark{lb.BackendExtra, bareAddress(r.Address), bareAddress(e.Address)})
	}
}

// unowned is the frontend of a delta that belongs to no Service.
func unowned(d lb.Delta) lb.Address {
	if d.Service != (lb.Name{}) {
		return lb.Address{}
	}
	return bareAddress(d.Frontend)
}

// bareAddress is an address without its protocol: agents of versions on both
// sides of 1.17 are told apart by it alone.
func bareAddress(a lb.Address) lb.Address {
	a.Protocol = lb.ANY
	return a
}

// ownAddress holds for the rows of one node's own address, and for host ports.
func ownAddress(v *fact.View, want, have lb.Table, d lb.Delta) bool {
	if r, ok := find(want, d.Frontend); ok && r.Expansion {
		return true
	}
	if r, ok := find(have, d.Frontend); ok && (r.Expansion || r.Wildcard) {
		return true
	}
	n, _ := fact.NodeView.From(v)
	return d.Type == "HostPort" || ownsAddress(n, d.Frontend.IP)
}

// findAny looks up a frontend of any protocol, where the address tells none.
func findAny(t lb.Table, a lb.Address) (lb.Row, bool) {
	for _, p := range []lb.Protocol{a.Protocol, lb.ANY, lb.TCP, lb.UDP, lb.SCTP} {
		if p != a.Protocol && p != lb.ANY && a.Protocol != lb.ANY {
			continue
		}
		b := a
		b.Protocol = p
		if r, ok := t.Find(b); ok {
			return r, true
		}
	}
	return lb.Row{}, false
}

// sameForAll holds for rows that nodes must agree on, as far as the rows alone
// tell. Two rows of one frontend mean that one of its policies is Local.
func sameForAll(t lb.Table, r lb.Row) bool {
	twin := r.Address
	twin.Scope = lb.Internal
	_, two := t.Find(twin)
	return r.Type == "ClusterIP" && !r.Wildcard && r.Redirect == lb.Direct && !two &&
		r.Flags.Internal != lb.Local && r.Flags.External != lb.Local
}

// guess drops, of frontends that no Service is known for, what a Local policy or
// zone hints explain as well: of a Local policy no two nodes hold the same
// backend.
func (c *comparison) guess(v *fact.View) {
	cfg, err := fact.CiliumConfig.From(v)
	hints := err == nil && cfg["enable-service-topology"] == "true"
	for at, of := range c.marks {
		seen, shared := map[mark]bool{}, false
		for _, ms := range of {
			for _, m := range ms {
				shared = shared || seen[m]
				seen[m] = true
			}
		}
		if at.service == (lb.Name{}) && (hints || !shared) {
			delete(c.marks, at)
		}
	}
}

// party is a set of nodes, sorted, that hold the same.
type party struct {
	nodes []string
	marks []mark
	known bool // measured against the API
}

func (p party) asWanted() bool { return p.known && len(p.marks) == 0 }

// split is a topic on which the nodes part, the largest party first.
type split struct {
	topic   topic
	parties []party
	view    *fact.View
}

// splits finds the topics on which nodes part, those with the same parties
// together. Where no node holds what the API wants, the rules of each node have
// said it all.
func (c *comparison) splits() [][]split {
	at := map[string]int{}
	var out [][]split
	for _, t := range slices.SortedFunc(maps.Keys(c.marks), topic.compare) {
		s := split{topic: t, parties: c.parties(t), view: c.view}
		owned := t.service != (lb.Name{})
		if len(s.parties) < 2 || owned && !slices.ContainsFunc(s.parties, party.asWanted) {
			continue
		}
		var key strings.Builder
		for _, p := range s.parties {
			fmt.Fprintf(&key, "%s|%v;", strings.Join(p.nodes, ","), p.asWanted())
		}
		i, ok := at[key.String()]
		if !ok {
			i = len(out)
			at[key.String()] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], s)
	}
	return out
}

func (t topic) compare(o topic) int {
	return cmp.Or(cmp.Compare(t.service.String(), o.service.String()), t.frontend.Compare(o.frontend))
}

func (c *comparison) parties(t topic) []party {
	var out []party
	for _, n := range c.nodes {
		ms := c.marks[t][n]
		slices.SortFunc(ms, mark.compare)
		ms = slices.Compact(ms)
		i := slices.IndexFunc(out, func(p party) bool { return slices.Equal(p.marks, ms) })
		if i < 0 {
			i = len(out)
			out = append(out, party{marks: ms, known: t.service != (lb.Name{})})
		}
		out[i].nodes = append(out[i].nodes, n)
	}
	slices.SortStableFunc(out, func(a, b party) int { return cmp.Compare(len(b.nodes), len(a.nodes)) })
	return out
}

func (m mark) compare(o mark) int {
	return cmp.Or(m.frontend.Compare(o.frontend), cmp.Compare(m.kind, o.kind), m.backend.Compare(o.backend))
}
