package service

import (
	"fmt"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// topology is the rule about hints that leave a node with too little.
var topology = &diag.Rule{
	Name: "topology", Severity: diag.Error, Settles: true,
	Title: "zone hints or traffic distribution leave a node without backends that it should use",
	Doc: `The Service prefers endpoints of the client's zone or node (topology-mode, trafficDistribution), and the agent
follows that. Each zone then holds another set, which is right. It is not right to hold nothing: where no
endpoint is meant for a zone, or some have no hint, Kubernetes wants all of them used. Some versions of
Cilium drop to zero there, and every client on the node is refused.

Backends that a hint keeps away from a node are no fault and are not told.`,
	Proof: []string{
		"kubectl get endpointslices -n NAMESPACE -l kubernetes.io/service-name=NAME -o yaml",
		"kubectl get node NODE -L topology.kubernetes.io/zone",
		"kubectl kpr exec NODE -- cilium-dbg service list",
	},
	Remedy: `Take the annotation topology-mode or the field trafficDistribution off the Service, or run an endpoint in that
zone; both take effect at once. Then look for a newer patch release of Cilium.`,
}

// Topology checks that hints and traffic distribution leave no node without
// backends.
func Topology() *diag.Check {
	return ofNode(topology.Name, "zone hints and traffic distribution leave no node without backends", topology, judgeTopology)
}

func judgeTopology(p *diag.Pass) error {
	ds, _ := fact.Behind.From(p.View())
	want, _ := fact.Desired.From(p.View())
	for _, f := range perService(ds, func(d lb.Delta) bool { return claim(p.View(), d) == topology.Name }) {
		severity, what := diag.Warning, fmt.Sprintf("lacks %d of its backends", f.backends())
		if f.leavesNone(want) {
			severity, what = diag.Error, "has no backend and refuses every client"
		}
		r := f.report(severity, fmt.Sprintf("%s, but %s %s here", f.deltas[0].Detail, f.on(), what), fact.EndpointSlices, fact.AgentFrontends)
		r.Address = ""
		p.Find(topology, r)
	}
	return nil
}

// byTopology holds for backends that the agent leaves out because of hints: where
// they cannot be followed and all should be used, or where they leave the
// frontend with none at all. A hinted backend that is missing beside others is
// just missing.
func byTopology(v *fact.View, d lb.Delta) bool {
	if d.Kind != lb.BackendMissing {
		return false
	}
	return d.Cause == lb.TopologyUnmet || d.Cause == lb.Topology && bare(v, d.Frontend)
}

// bare holds where the agent has the frontend without any backend.
func bare(v *fact.View, a lb.Address) bool {
	have, err := fact.Held.From(v)
	if err != nil {
		return false
	}
	r, ok := find(have, a)
	return ok && len(r.Entries) == 0
}

// find looks a frontend up; rows of agents up to 1.16 have no protocol.
func find(t lb.Table, a lb.Address) (lb.Row, bool) {
	if r, ok := t.Find(a); ok {
		return r, true
	}
	a.Protocol = lb.ANY
	return t.Find(a)
}

// perService joins the deltas that pick chooses by Service: one reason that
// keeps several backends away from several frontends is one fault.
func perService(ds []lb.Delta, pick func(lb.Delta) bool) []fault {
	index := map[lb.Name]int{}
	var out []fault
	for _, d := range ds {
		if !pick(d) {
			continue
		}
		i, ok := index[d.Service]
		if !ok {
			i = len(out)
			index[d.Service] = i
			out = append(out, fault{service: d.Service, what: d.Frontend})
		}
		out[i].deltas = append(out[i].deltas, d)
	}
	return out
}

// leavesNone holds where a frontend lacks every backend that it should have.
func (f fault) leavesNone(want lb.Table) bool {
	lacks := map[lb.Address]int{}
	for _, d := range f.deltas {
		lacks[d.Frontend]++
	}
	for a, n := range lacks {
		r, ok := find(want, a)
		if ok && n >= required(r) {
			return true
		}
	}
	return false
}

func required(r lb.Row) int {
	n := 0
	for _, e := range r.Entries {
		if e.Optional == "" {
			n++
		}
	}
	return n
}

// backends counts the different backends of a fault.
func (f fault) backends() int {
	seen := map[lb.Address]bool{}
	for _, d := range f.deltas {
		seen[d.Backend] = true
	}
	return len(seen)
}
