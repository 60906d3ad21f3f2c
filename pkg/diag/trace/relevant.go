package trace

import (
	"slices"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// relevant leaves out the rows that the client does not meet: the internal one
// of two scopes for clients outside, the external one for those inside, and
// either 0.0.0.0:PORT, which socket LB looks up, or the rows of the node's own
// addresses, which packets meet. For a client inside what is asked for by
// address stays if nothing else would: another node translates it.
func (t *tracer) relevant(n *node, all map[front][]instance) map[front][]instance {
	if len(t.at.kinds) > 1 {
		return all
	}
	outside := t.at.only(anOutsider)
	packets := outside || n.translates(t.at.kinds[0]) == byPacket
	kept := map[front][]instance{}
	for key, in := range all {
		twin := key
		twin.address.Scope = lb.Internal
		switch _, two := all[twin]; {
		case outside && key.address.Scope == lb.Internal, !outside && key.address.Scope == lb.External && two && !optional(all[twin]):
			continue
		}
		if key.address.Surrogate() && key.onNodes != packets && n.answersOn(key.address, packets) {
			continue
		}
		kept[key] = in
	}
	if len(kept) == 0 && !outside {
		return all
	}
	return kept
}

// answersOn tells whether the node has rows of the port at its own addresses,
// or at 0.0.0.0 or [::], among those that are shown: rows that only the map
// holds, or that have no name in the agent's list, are not.
func (n *node) answersOn(a lb.Address, ownAddresses bool) bool {
	for _, table := range []lb.Table{n.desired, n.agent} {
		if !ownAddresses {
			if rowAt(table, a) != nil {
				return true
			}
			continue
		}
		if slices.ContainsFunc(table.Rows, func(r lb.Row) bool {
			return r.Expansion && surrogate(r.Address) == a && r.Service != (lb.Name{})
		}) {
			return true
		}
	}
	return false
}

// optional holds for rows that need not be there and are not.
func optional(in []instance) bool {
	return !slices.ContainsFunc(in, func(i instance) bool {
		return i.agent != nil || i.kernel != nil || i.desired != nil && i.desired.Optional == ""
	})
}
