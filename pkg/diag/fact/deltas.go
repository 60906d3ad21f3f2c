package fact

import (
	"net/netip"
	"slices"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// Differences between the layers of a node. In each, A is the layer named
// first; what is expected is left in, with its reason.
var (
	// Behind is what the agent holds otherwise than the API wants, before and
	// after it was asked. Where the agent's view was not read the maps stand in
	// for it.
	Behind = Define("desired-vs-agent", true, []Named{Desired, DesiredAfter, Held}, behind)
	// Held is what a node's agent believes or, where that was not read, what
	// its maps hold.
	Held = Define("held", true, []Named{AgentTable, KernelTable}, held)
	// MapFlags are settings of frontends that the maps hold otherwise than the API
	// wants: affinity, source ranges, policies. Agents do not list the former.
	MapFlags = Define("desired-vs-map-flags", true, []Named{Asked, DesiredAfter, KernelTable}, mapFlags)
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
	have, err := Held.From(v)
	if err != nil {
		return nil, err
	}
	return againstBoth(v, want, have), nil
}

func held(v *View) (lb.Table, error) {
	have, err := AgentTable.From(v)
	if err == nil {
		return have, nil
	}
	if maps, mapErr := KernelTable.From(v); mapErr == nil {
		return maps, nil
	}
	return lb.Table{}, err
}

func mapFlags(v *View) ([]lb.Delta, error) {
	want, err := Asked.From(v)
	if err != nil {
		return nil, err
	}
	have, err := KernelTable.From(v)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(againstBoth(v, want, have), func(d lb.Delta) bool { return d.Kind != lb.FlagDiffers }), nil
}

// againstBoth compares with the API as it was before and after the node was asked.
func againstBoth(v *View, want, have lb.Table) []lb.Delta {
	deltas := lb.Diff(want, have, lb.DiffOptions{})
	after, err := DesiredAfter.From(v)
	if err != nil {
		return deltas
	}
	return lb.Settled(deltas, lb.Diff(after, have, lb.DiffOptions{}))
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
