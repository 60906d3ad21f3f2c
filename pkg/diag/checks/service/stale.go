package service

import (
	"fmt"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// stale is the rule about backends that are no endpoints any more.
var stale = &diag.Rule{
	Name: "backend-stale", Severity: diag.Error, Settles: true,
	Title: "a frontend on a node still has a backend that is no endpoint of the Service",
	Doc: `The agent of the node has a backend behind a frontend of the Service that is in none of its EndpointSlices
on that port. The pod may be gone, and connections hang or are refused; or it lives and belongs to
another Service by now, and connections reach the wrong program.

A frontend that no Service asks for any more is told under the same rule.
Where EndpointSlices changed while the agents were asked, only what differs from both readings counts.`,
	Proof: []string{
		"kubectl get endpointslices -n NAMESPACE -l kubernetes.io/service-name=NAME",
		"kubectl kpr exec NODE -- cilium-dbg service list",
	},
	Remedy: `The agent missed an update, often while it could not reach the API server. Restart the agent of the node, and look
for the reason in its log first. Do not delete map entries by hand.`,
}

// Stale checks that no frontend has a backend that is no endpoint.
func Stale() *diag.Check {
	return ofNode(stale.Name, "every backend of a frontend is an endpoint of its Service", stale, func(p *diag.Pass) error {
		ds, _ := fact.Behind.From(p.View())
		for _, f := range faults(ds, func(d lb.Delta) bool { return claim(p.View(), d) == stale.Name }) {
			if f.deltas[0].Kind == lb.FrontendExtra {
				p.Find(stale, f.report(diag.Warning, fmt.Sprintf("frontend %s (%s) belongs to no Service any more", f.what, f.deltas[0].Type), fact.EndpointSlices, fact.AgentFrontends))
				continue
			}
			p.Find(stale, f.report(diag.Error, fmt.Sprintf("%s is a backend of %s and no endpoint of the Service", f.what, f.on()), fact.EndpointSlices, fact.AgentFrontends))
		}
		return nil
	})
}
