package lb

import "slices"

// FromAgent makes a Table of `service list`. Ids and order do not matter.
//
// Agents from 1.18 on list NodePorts and host ports at 0.0.0.0 and [::] only,
// while their maps have a row for each node address: such surrogates are
// expanded to the node's addresses here. Where the version does not tell, an
// agent that lists no NodePort at a node address is taken for one of these.
func FromAgent(fs []Frontend, n NodeView, c Capabilities) Table {
	t := Table{Layer: Agent, Rows: make([]Row, 0, len(fs)+len(fs)/4)}
	expand := c.SurrogatesOnlyInAgent
	if expand == Unknown {
		expand = AnswerOf(!slices.ContainsFunc(fs, func(f Frontend) bool { return f.Type == "NodePort" && !f.Address.Surrogate() }))
	}
	for i := range fs {
		t.Rows = append(t.Rows, rowOf(&fs[i], n))
	}
	for i := range fs {
		if r := t.Rows[i]; expand == Yes && nodePorts(r.Type) && r.Address.Surrogate() {
			t.Rows = appendExpansions(t.Rows, r, n)
		}
	}
	t.Rows = unite(t.Rows)
	if expand == Yes {
		t.expanded = n.Exact
	} else {
		t.expanded = true
		markExpansions(t, n)
	}
	return t
}

func rowOf(f *Frontend, n NodeView) Row {
	r := Row{
		Address: f.Address, Type: f.Type, Service: f.Service, Cluster: f.Cluster, Counts: Counts{-1, -1},
		Flags:   Flags{External: policyOf(f.External), Internal: policyOf(f.Internal)},
		Entries: make([]Entry, 0, len(f.Backends)),
	}
	if f.Type == "LocalRedirect" {
		r.Redirect = LocalRedirect
	}
	for _, b := range f.Backends {
		b.Address.Scope = External
		// For a frontend that Envoy serves, 1.20 lists the proxy as one more
		// backend on the loopback. No endpoint can have such an address.
		if b.Address.IP.IsLoopback() && f.Type != "LocalRedirect" {
			r.Redirect, r.ProxyPort = L7Redirect, int(b.Address.Port)
			continue
		}
		r.Entries = append(r.Entries, Entry{Backend: b})
	}
	if !slices.IsSortedFunc(r.Entries, Entry.Compare) {
		sortEntries(r.Entries)
	}
	// From 1.18 on agents with the replacement off keep these to themselves.
	if f.Type != "NodePort" && f.Type != "ExternalIPs" && n.serves(f.Type) == No {
		r.Optional = "Cilium does not serve " + f.Type + " on this node"
	}
	return r
}

func policyOf(s string) Policy {
	switch Policy(s) {
	case Cluster, Local:
		return Policy(s)
	}
	return ""
}

// unite sorts rows and keeps one of each address. A frontend of its own on a
// node address wins over the expansion of a NodePort; lists that name an
// address twice, as of two clusters, give one row with the backends of both.
func unite(rows []Row) []Row {
	sortRows(rows)
	out := rows[:0]
	for _, r := range rows {
		if len(out) == 0 || out[len(out)-1].Address != r.Address {
			out = append(out, r)
			continue
		}
		switch last := &out[len(out)-1]; {
		case r.Expansion:
		case last.Expansion:
			*last = r
		default:
			last.Entries = append(slices.Clone(last.Entries), r.Entries...)
			sortEntries(last.Entries)
			last.Entries = slices.CompactFunc(last.Entries, func(a, b Entry) bool { return a.Compare(b) == 0 })
		}
	}
	return out
}

// markExpansions finds the rows of node addresses: NodePorts and host ports
// that stand at 0.0.0.0 or [::] as well. A row of an address that is known to
// be no address of the node is none of them.
func markExpansions(t Table, n NodeView) {
	for i := range t.Rows {
		r := &t.Rows[i]
		if r.Address.Surrogate() || !nodePorts(r.Type) && r.Type != "" {
			continue
		}
		if n.Exact && !slices.Contains(n.Addresses, r.Address.IP) && !slices.Contains(n.Others, r.Address.IP) {
			continue
		}
		s, ok := t.Find(surrogateOf(r.Address))
		r.Expansion = ok && s.Type == r.Type
	}
}
