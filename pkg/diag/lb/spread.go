package lb

import (
	"fmt"
	"slices"
)

// held is what one node holds of one Service port: the entries, and why they
// are not simply all ready endpoints.
type held struct {
	entries []Entry
	cause   Cause
	reason  string
}

// on filters for a node: a Local policy keeps endpoints of the node alone,
// hints and traffic distribution prefer some of what is left.
func (e endpoints) on(n NodeView, local Policy, policy string, s spread) held {
	if local != Local && (s == everywhere || n.Topology == No) {
		return held{e.all, e.cause, e.reason}
	}
	ms := e.members
	if local == Local {
		ms = nil
		for _, m := range e.members {
			// Addresses without a node, such as hand-written ones, are local
			// everywhere.
			if m.backend.Node == "" || m.backend.Node == n.Name {
				ms = append(ms, m)
			}
		}
	}
	h := held{entries: entriesOf(ms), cause: e.cause, reason: e.reason}
	switch required := func(e Entry) bool { return e.Optional == "" }; {
	case local == Local && slices.ContainsFunc(e.all, required) && !slices.ContainsFunc(h.entries, required):
		h.cause, h.reason = NoneLocal, policy+" is Local and no endpoint is on this node"
	case !slices.ContainsFunc(ms, func(m member) bool { return m.ready && m.mute == "" }) && slices.ContainsFunc(h.entries, required):
		h.cause, h.reason = AllDraining, "no endpoint here is ready; those that terminate and still serve are used"
	}
	if s != everywhere && n.Topology != No {
		h.prefer(ms, n, s)
	}
	return h
}

// prefer marks what the node's zone or the node itself leaves aside as
// optional. As Kubernetes has it, all endpoints are used when one of the ready
// ones has no hint or none is hinted to the zone; some versions of Cilium hold
// none then.
func (h *held) prefer(ms []member, n NodeView, s spread) {
	chosen := func(m member) bool { return slices.Contains(m.zones, n.Zone) }
	label := fmt.Sprintf("zone %q", n.Zone)
	if s == sameNode {
		chosen = func(m member) bool { return m.backend.Node == n.Name || slices.Contains(m.nodes, n.Name) }
		label = "this node"
	}
	ready, fitting, hintless := 0, 0, 0
	for _, m := range ms {
		if !m.ready || m.mute != "" {
			continue
		}
		ready++
		if chosen(m) {
			fitting++
		}
		if len(m.zones) == 0 {
			hintless++
		}
	}
	switch {
	case ready == 0 || s == sameZone && (n.Zone == "" || hintless == ready):
		return
	case fitting == 0:
		h.cause, h.reason = TopologyUnmet, fmt.Sprintf("no endpoint is meant for %s, so all are to be used", label)
		return
	case s == sameZone && hintless > 0:
		h.cause, h.reason = TopologyUnmet, fmt.Sprintf("%d of %d ready endpoints have no zone hint, so all are to be used", hintless, ready)
		return
	case fitting == ready:
		return
	}
	h.cause, h.reason = Topology, fmt.Sprintf("%d of %d ready endpoints are meant for %s", fitting, ready, label)
	h.entries = slices.Clone(h.entries)
	for i, m := range ms {
		if e := &h.entries[i]; e.Optional == "" && !chosen(m) {
			e.Optional = "not meant for " + label
		}
	}
}
