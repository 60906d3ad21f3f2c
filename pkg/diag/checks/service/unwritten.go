package service

import (
	"fmt"
	"maps"
	"slices"
	"time"

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
		Wants:   []fact.Named{fact.Unwritten, fact.Behind, fact.FrontendsTable, fact.AgentOf, fact.Held, fact.Desired, fact.Capabilities},
		Applies: noAgentMeant,
		Run:     judgeMaps,
	}
}

// judgeMaps needs one of three: agent and map, API and map, or the table of
// frontends with the outcome of each write.
func judgeMaps(p *diag.Pass) error {
	v := p.View()
	table, tableErr := fact.FrontendsTable.From(v)
	refused := map[lb.Address]lb.TableRow{}
	for _, r := range table {
		if r.Status == "Error" {
			refused[r.Address] = r
		}
	}
	moving := inMotion(table)
	ds, err := fact.Unwritten.From(v)
	for _, f := range faults(ds, func(d lb.Delta) bool { return d.Expected == "" }) {
		if f.passing() && moving.has(f.service) {
			continue
		}
		message, proof := mapMessage(f, "agent"), []fact.Named{fact.AgentFrontends, fact.MapRows}
		// The agent's own reason goes with the row that is not there.
		if r, ok := refused[f.what]; ok && f.deltas[0].Kind == lb.FrontendMissing {
			message, proof = fmt.Sprintf("%s. The agent says: %s", message, r.Error), append(proof, fact.FrontendsTable)
			delete(refused, f.what)
		}
		p.Find(unwritten, f.report(severityOf(f.deltas[0]), message, proof...))
	}
	behind, _ := fact.Behind.From(v)
	for _, f := range faults(behind, func(d lb.Delta) bool { return claim(v, d) == unwritten.Name }) {
		if f.passing() && moving.has(f.service) {
			continue
		}
		p.Find(unwritten, f.report(diag.Error, mapMessage(f, "API"), fact.EndpointSlices, fact.MapRows))
	}
	for _, a := range slices.SortedFunc(maps.Keys(refused), lb.Address.Compare) {
		f := fault{service: refused[a].Service, what: a, deltas: []lb.Delta{{Frontend: a}}}
		p.Find(unwritten, f.report(diag.Error, fmt.Sprintf("the agent could not write frontend %s to the map: %s", a, refused[a].Error), fact.FrontendsTable))
	}
	moving.tell(p)
	if err != nil && tableErr != nil {
		p.Unknown(fact.Unwritten.ID(), err)
	}
	return nil
}

// settled is how long ago a frontend must have been written for the node's
// lists, which are read one after the other, to be of one time. It is no longer
// than the wait before a second look: what was not written again by then is
// judged there.
const settled = 5 * time.Second

// passing holds for what lists of different moments can show: a row that points
// at a backend which is not there is none of it, as backends are written first
// and deleted last.
func (f fault) passing() bool {
	return !slices.ContainsFunc(f.deltas, func(d lb.Delta) bool { return d.Kind == lb.BackendLost })
}

// motion are Services whose frontends were written just now, or are about to
// be, and whether that kept something from being judged.
type motion map[lb.Name]*bool

// inMotion reads the ages of the agent's own table. All frontends of a Service
// are written anew when its endpoints change.
func inMotion(table []lb.TableRow) motion {
	m := motion{}
	for _, r := range table {
		age, err := time.ParseDuration(r.Since)
		if err == nil && age < settled && r.Status != "Error" && r.Service != (lb.Name{}) {
			m[r.Service] = new(bool)
		}
	}
	return m
}

// has holds for a Service in motion, and notes that it mattered.
func (m motion) has(s lb.Name) bool {
	kept, ok := m[s]
	if ok {
		*kept = true
	}
	return ok
}

func (m motion) tell(p *diag.Pass) {
	var names []string
	for s, kept := range m {
		if *kept {
			names = append(names, s.String())
		}
	}
	if len(names) > 0 {
		slices.Sort(names)
		p.Note("the agent of %s wrote frontends of %s within the last %s: whether the map follows is not judged now", p.Node(), few(names), settled)
	}
}

func severityOf(d lb.Delta) diag.Severity {
	if d.Kind == lb.FrontendExtra {
		return diag.Warning
	}
	return diag.Error
}

// mapMessage tells what the map lacks or has beyond what other says.
func mapMessage(f fault, other string) string {
	d := f.deltas[0]
	switch d.Kind {
	case lb.BackendLost:
		if d.Backend.IP.IsValid() {
			return fmt.Sprintf("%s: the map has lost %s (%s), which the %s calls %s. Connections that hash to it fail at once",
				f.on(), f.what, d.B, other, d.A)
		}
		return fmt.Sprintf("%s: %s in the map. Connections that hash to it fail at once", f.on(), d.Detail)
	case lb.FrontendMissing:
		return fmt.Sprintf("the %s knows frontend %s and the map has no row for it: connections to it are not translated", other, f.what)
	case lb.FrontendExtra:
		return fmt.Sprintf("the map has a row for %s that the %s does not know", f.what, other)
	case lb.BackendMissing:
		return fmt.Sprintf("the %s knows backend %s and the map does not have it behind %s", other, f.what, f.on())
	case lb.BackendExtra:
		return fmt.Sprintf("the map has backend %s behind %s, the %s does not: connections still go there", f.what, f.on(), other)
	case lb.StateDiffers:
		return fmt.Sprintf("%s is %s by the %s and %s by the map, on %s", f.what, d.A, other, d.B, f.on())
	case lb.CountDiffers:
		return fmt.Sprintf("%s: the map uses %s of the %s backends that the %s calls active", f.on(), d.B, d.A, other)
	}
	return fmt.Sprintf("%s: %s is %s by the %s and %s by the map", f.on(), d.Detail, d.A, other, d.B)
}
