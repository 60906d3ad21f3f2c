package fact

import (
	"net/netip"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// Differences between the layers of a node. In each, A is the layer named
// first; what is expected is left in, with its reason.
var (
	// Behind is what the agent holds otherwise than the API wants, before and
	// after it was asked. Where the agent's view was not read the maps stand in
	// for it.
	Behind = Define("desired-vs-agent", true, []Named{Desired, DesiredAfter, AgentTable, KernelTable}, behind)
	// Unwritten is what the maps hold otherwise than the agent believes.
	Unwritten = Define("agent-vs-map", true, []Named{AgentTable, KernelTable, Desired}, func(v *View) ([]lb.Delta, error) {
		a, err := AgentTable.From(v)
		if err != nil {
			return nil, err
		}
		k, err := KernelTable.From(v)
		if err != nil {
			return nil, err
		}
		return withOwners(v, lb.Diff(a, k, lb.DiffOptions{})), nil
	})
)

func behind(v *View) ([]lb.Delta, error) {
	want, err := Desired.From(v)
	if err != nil {
		return nil, err
	}
	have, err := AgentTable.From(v)
	if err != nil {
		var mapErr error
		if have, mapErr = KernelTable.From(v); mapErr != nil {
			return nil, err
		}
	}
	deltas := lb.Diff(want, have, lb.DiffOptions{})
	after, err := DesiredAfter.From(v)
	if err != nil {
		return deltas, nil
	}
	return lb.Settled(deltas, lb.Diff(after, have, lb.DiffOptions{})), nil
}

// withOwners fills in the Services of deltas whose layers do not tell them: the map
// never does, and the text form of `service list` neither.
func withOwners(v *View, ds []lb.Delta) []lb.Delta {
	want, err := Desired.From(v)
	if err != nil {
		return ds
	}
	owners := map[netip.AddrPort]lb.Name{}
	for _, r := range want.Rows {
		owners[netip.AddrPortFrom(r.Address.IP, r.Address.Port)] = r.Service
	}
	for i, d := range ds {
		if d.Service == (lb.Name{}) {
			ds[i].Service = owners[netip.AddrPortFrom(d.Frontend.IP, d.Frontend.Port)]
		}
	}
	return ds
}
