package service

import (
	"fmt"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// missing is the rule about endpoints that get no traffic from a node.
var missing = &diag.Rule{
	Name: "backend-missing", Severity: diag.Error, Settles: true,
	Title: "a ready endpoint is not among the backends of a frontend on a node",
	Doc: `An endpoint of the Service is ready, or with none ready it still serves, and the agent of the node does
not have it behind all of the Service's frontends. Clients on this node, and clients from outside that
arrive at it, are served by fewer backends than there are, or by none.

Endpoints that a Local traffic policy, a zone hint or a readiness gate keeps away are not meant.
Where EndpointSlices changed while the agents were asked, only what differs from both readings counts.`,
	Proof: []string{
		"kubectl get endpointslices -n NAMESPACE -l kubernetes.io/service-name=NAME",
		"kubectl kpr exec NODE -- cilium-dbg service list",
	},
	Remedy: `The agent missed an update. See whether it hears the API server (kubectl kpr status) and whether its log tells of
errors; restarting the agent of the node makes it read everything anew, and does not break connections.`,
}

// Missing checks that every ready endpoint is behind its frontends on each node.
func Missing() *diag.Check {
	return ofNode(missing.Name, "every ready endpoint is behind every frontend of its Service", missing, func(p *diag.Pass) error {
		ds, _ := fact.Behind.From(p.View())
		for _, f := range faults(ds, func(d lb.Delta) bool { return claim(p.View(), d) == missing.Name }) {
			p.Find(missing, f.report(diag.Error, fmt.Sprintf("%s is %s and missing on %s", f.what, usable(f.deltas[0]), f.on()), fact.EndpointSlices, fact.AgentFrontends))
		}
		return nil
	})
}

// usable says why the endpoint is to be used.
func usable(d lb.Delta) string {
	if lb.State(d.A) == lb.Terminating {
		return "still serving, with none ready,"
	}
	return "ready"
}
