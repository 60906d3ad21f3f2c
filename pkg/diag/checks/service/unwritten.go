package service

import (
	"fmt"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// unwritten is the rule about maps that do not hold what the agent believes.
var unwritten = &diag.Rule{
	Name: "agent-vs-bpf", Severity: diag.Error, Settles: true,
	Title: "a node's BPF maps hold something else than its agent believes",
	Doc: `The agent knows the right thing, the kernel does another. Status, service list and the frontends table all
look healthy then, because none of them reads the maps: only the map itself tells.

"backend N not found" is a row that points at a backend which is not in the backend map: connections that
hash to it fail at once, a fraction of all. A frontend in status Error says why it could not be written, most
often a full map. Nothing repairs either by itself.`,
	Proof: []string{
		"kubectl kpr exec NODE -- cilium-dbg bpf lb list",
		"kubectl kpr exec NODE -- cilium-dbg service list",
		"kubectl kpr exec NODE -- cilium-dbg shell -- db/show frontends",
	},
	Remedy: `If a map is full, raise bpf-lb-map-max first. Then restart the agent of the node: it writes the maps anew when it
starts. Established connections go on.`,
}

// Unwritten checks that the maps of each node hold what its agent believes.
func Unwritten() *diag.Check {
	return &diag.Check{
		Name: unwritten.Name, Doc: "the maps of each node hold what its agent believes",
		Scope: diag.OfNode, Rules: []*diag.Rule{unwritten},
		Wants:   []fact.Named{fact.Unwritten, fact.Behind, fact.FrontendsTable, fact.AgentOf, fact.AgentTable, fact.Capabilities},
		Applies: noAgentMeant,
		Run:     judgeMaps,
	}
}

// judgeMaps needs one of three: agent and map, API and map, or the table of
// frontends with the outcome of each write.
func judgeMaps(p *diag.Pass) error {
	v := p.View()
	ds, err := fact.Unwritten.From(v)
	if err == nil {
		for _, f := range faults(ds, func(d lb.Delta) bool { return d.Expected == "" }) {
			p.Find(unwritten, f.report(severityOf(f.deltas[0]), mapMessage(f), fact.AgentFrontends, fact.MapRows))
		}
	}
	behind, _ := fact.Behind.From(v)
	for _, f := range faults(behind, func(d lb.Delta) bool { return claim(v, d) == unwritten.Name }) {
		p.Find(unwritten, f.report(diag.Error, mapMessage(f), fact.EndpointSlices, fact.MapRows))
	}
	table, tableErr := fact.FrontendsTable.From(v)
	for _, r := range table {
		if r.Status != "Error" {
			continue
		}
		f := fault{service: r.Service, what: r.Address, deltas: []lb.Delta{{Frontend: r.Address}}}
		p.Find(unwritten, f.report(diag.Error, fmt.Sprintf("the agent could not write frontend %s to the map: %s", r.Address, r.Error), fact.FrontendsTable))
	}
	if err != nil && tableErr != nil {
		p.Unknown(fact.Unwritten.ID(), err)
	}
	return nil
}

func severityOf(d lb.Delta) diag.Severity {
	if d.Kind == lb.FrontendExtra {
		return diag.Warning
	}
	return diag.Error
}

func mapMessage(f fault) string {
	d := f.deltas[0]
	switch d.Kind {
	case lb.BackendLost:
		if d.Backend.IP.IsValid() {
			return fmt.Sprintf("%s: the map has lost %s (%s), which the agent calls %s. Connections that hash to it fail at once",
				f.on(), f.what, d.B, d.A)
		}
		return fmt.Sprintf("%s: %s", f.on(), d.Detail)
	case lb.FrontendMissing:
		return fmt.Sprintf("the agent knows frontend %s and the map has no row for it", f.what)
	case lb.FrontendExtra:
		return fmt.Sprintf("the map has a row for %s that the agent does not know", f.what)
	case lb.BackendMissing:
		return fmt.Sprintf("the agent knows backend %s and the map does not have it behind %s", f.what, f.on())
	case lb.BackendExtra:
		return fmt.Sprintf("the map has backend %s behind %s, the agent does not", f.what, f.on())
	case lb.StateDiffers:
		return fmt.Sprintf("%s is %s in the agent and %s in the map, on %s", f.what, d.A, d.B, f.on())
	}
	return fmt.Sprintf("%s: agent %s, map %s (%s)", f.on(), d.A, d.B, d.Detail)
}
