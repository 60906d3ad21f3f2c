package service

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// affinity is the rule about clients that should stay with one backend.
var affinity = &diag.Rule{
	Name: "affinity", Severity: diag.Warning, Settles: true,
	Title: "session affinity of a frontend is not what the Service asks for",
	Doc: `A Service with sessionAffinity ClientIP keeps each client at one backend for a time. Its rows in the map carry the
flag sessionAffinity and the time in seconds; service list shows neither. Without the flag requests are spread
over all backends; with a flag that nobody asks for, clients stay where they are.

A client that is pinned to a backend that leaves should be given another. Where the affinity map still pairs
the frontend with such a backend, its clients are sent there to the end.

Clients are told apart by their address if they come from outside, and by their network namespace if they come from
a pod. Each node remembers for itself: behind a router that spreads one client over several nodes, affinity does not hold.`,
	Proof: []string{
		"kubectl get service -n NAMESPACE NAME -o jsonpath='{.spec.sessionAffinity} {.spec.sessionAffinityConfig}'",
		"kubectl kpr exec NODE -- cilium-dbg bpf lb list",
		"kubectl kpr exec NODE -- cilium-dbg shell -- lb/maps-dump",
	},
	Remedy: "Restart the agent of the node: it writes the maps anew when it starts, and established connections go on.",
}

// Affinity checks that affinity is in effect where a Service asks for it.
func Affinity() *diag.Check {
	return &diag.Check{
		Name: affinity.Name, Doc: "session affinity is in effect where a Service asks for it, and nowhere else",
		Scope: diag.OfNode, Rules: []*diag.Rule{affinity},
		Needs:   []fact.Named{fact.Services},
		Wants:   []fact.Named{fact.AgentOf, fact.MapFlags, fact.Status, fact.MapsDump, fact.KernelTable, fact.Asked},
		Applies: noAgentMeant,
		Run:     judgeAffinity,
	}
}

func judgeAffinity(p *diag.Pass) error {
	v := p.View()
	status, _ := fact.Status.From(v)
	maps, _ := fact.KernelTable.From(v)
	ds, err := fact.MapFlags.From(v)
	if err != nil && anyService(v, func(s corev1.Service) bool { return s.Spec.SessionAffinity == corev1.ServiceAffinityClientIP }) {
		p.Unknown(fact.MapFlags.ID(), err)
	}
	// Switched off, it is absent everywhere: that is one fault of the feature.
	off := status != nil && status.Affinity == agent.Off
	for _, f := range perService(ds, func(d lb.Delta) bool {
		r, _ := find(maps, d.Frontend)
		return d.Expected == "" && claimFlag(d) == affinity.Name && r.Redirect == lb.Direct && !(off && d.A == lb.Yes.String())
	}) {
		d := f.deltas[0]
		message := fmt.Sprintf("sessionAffinity is ClientIP and its rows on %s lack it: requests of one client are spread over all backends", f.on())
		switch {
		case d.Detail == "affinity timeout":
			message = fmt.Sprintf("clients should stay with their backend for %ss and stay for %ss on %s", d.A, d.B, f.on())
		case d.A == lb.No.String():
			message = fmt.Sprintf("the Service asks for no affinity and its rows on %s have it: clients stay with one backend", f.on())
		}
		r := f.report(diag.Warning, message, fact.EndpointSlices, fact.MapRows)
		r.Address = ""
		p.Find(affinity, r)
	}
	if dump, err := fact.MapsDump.From(v); err == nil {
		tellPinned(p, dump)
	}
	return nil
}

// anyService holds where a Service is one that ask holds for.
func anyService(v *fact.View, ask func(corev1.Service) bool) bool {
	all, _ := fact.Services.From(v)
	return slices.ContainsFunc(all, ask)
}

// tellPinned finds frontends whose affinity map holds a backend that leaves,
// while others are there for new connections.
func tellPinned(p *diag.Pass, dump lb.Dump) {
	want, _ := fact.Asked.From(p.View())
	backends := map[int]lb.MapBackend{}
	for _, b := range dump.Backends {
		backends[b.ID] = b
	}
	pinned := map[int][]int{}
	for _, m := range dump.Affinity {
		pinned[m.ID] = append(pinned[m.ID], m.Backend)
	}
	for _, row := range dump.Rows {
		if row.Slot != 0 || row.Count == 0 || row.AffinityTimeout == 0 {
			continue
		}
		for _, id := range pinned[row.ID] {
			b, ok := backends[id]
			// With none active, those that terminate count as active.
			if !ok || !leaving(b.State) || slices.Contains(inUse(dump, row), id) || expansionOf(dump, row) {
				continue
			}
			name := ownerOf(want, lb.Row{Address: row.Frontend})
			f := fault{service: name, what: b.Address, deltas: []lb.Delta{{Frontend: row.Frontend}}}
			p.Find(affinity, f.report(diag.Warning, fmt.Sprintf("clients of %s that are pinned to %s go on to be sent there, though it is %s and others are active",
				row.Frontend, b.Address, b.State), fact.MapsDump))
		}
	}
}

func leaving(s lb.State) bool {
	return s == lb.Terminating || s == lb.TerminatingNotServing || s == lb.Quarantined || s == lb.Maintenance
}

// inUse are the backends of a frontend's first slots, those that get new
// connections.
func inUse(dump lb.Dump, master lb.DumpRow) []int {
	var ids []int
	for _, r := range dump.Rows {
		if r.Frontend == master.Frontend && r.Slot > 0 && r.Slot <= master.Count {
			ids = append(ids, r.Backend)
		}
	}
	return ids
}

// expansionOf holds for rows of one node address beside 0.0.0.0 or [::]: one
// finding for the NodePort is enough.
func expansionOf(dump lb.Dump, row lb.DumpRow) bool {
	return !row.Frontend.Surrogate() && len(row.Flags) > 0 && (row.Flags[0] == "NodePort" || row.Flags[0] == "HostPort") &&
		slices.ContainsFunc(dump.Rows, func(r lb.DumpRow) bool {
			return r.Slot == 0 && r.Frontend.Surrogate() && r.Frontend.Port == row.Frontend.Port && r.Frontend.Protocol == row.Frontend.Protocol
		})
}
