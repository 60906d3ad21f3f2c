package fact

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// inside leaves the objects of the namespace that a run is restricted to.
func inside[T any, P interface {
	*T
	GetNamespace() string
}](v *View, objects []T) []T {
	if v.Within() == "" {
		return objects
	}
	var out []T
	for i := range objects {
		if P(&objects[i]).GetNamespace() == v.Within() {
			out = append(out, objects[i])
		}
	}
	return out
}

// agentWithin leaves the frontends of that namespace, and whatever stands at
// the addresses that its Services want: the text form tells no names.
func agentWithin(v *View, frontends []lb.Frontend) []lb.Frontend {
	if v.Within() == "" {
		return frontends
	}
	wanted := wantedSockets(v)
	return slices.DeleteFunc(slices.Clone(frontends), func(f lb.Frontend) bool {
		return f.Service.Namespace != v.Within() && !wanted[netip.AddrPortFrom(f.Address.IP, f.Address.Port)]
	})
}

// mapWithin leaves the rows at the addresses that Services of that namespace
// want or the agent has for them, and the wildcard rows there.
func mapWithin(v *View, rows []lb.MapRow) []lb.MapRow {
	if v.Within() == "" {
		return rows
	}
	wanted := wantedSockets(v)
	frontends, _ := AgentFrontends.From(v)
	ports := map[uint16]bool{} // of surrogates, which have rows at the node's own addresses too
	for _, f := range frontends {
		if f.Service.Namespace == v.Within() {
			wanted[netip.AddrPortFrom(f.Address.IP, f.Address.Port)] = true
		}
	}
	for at := range wanted {
		if at.Addr().IsUnspecified() {
			ports[at.Port()] = true
		}
	}
	for at := range maps.Clone(wanted) {
		wanted[netip.AddrPortFrom(at.Addr(), 0)] = true
	}
	return slices.DeleteFunc(slices.Clone(rows), func(r lb.MapRow) bool {
		return !ports[r.Frontend.Port] && !wanted[netip.AddrPortFrom(r.Frontend.IP, r.Frontend.Port)]
	})
}

func wantedSockets(v *View) map[netip.AddrPort]bool {
	wanted := map[netip.AddrPort]bool{}
	want, _ := Desired.From(v)
	for _, r := range want.Rows {
		wanted[netip.AddrPortFrom(r.Address.IP, r.Address.Port)] = true
	}
	return wanted
}
