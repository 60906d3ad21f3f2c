package service

import (
	"fmt"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// state is the rule about backends that are there in the wrong state.
var state = &diag.Rule{
	Name: "backend-state", Severity: diag.Error, Settles: true,
	Title: "a backend is in another state than its endpoint",
	Doc: `The address is right and the state is not. An endpoint that is ready while the agent calls it terminating,
quarantined or in maintenance gets no new connections. One that terminates and does not serve, or stands
on a node that is lost, while the agent calls it active, gets connections that hang.

Maintenance is set by hand and only told as a warning. All backends terminating at once is no fault: they
count as active and serve until they are gone.`,
	Proof: []string{
		"kubectl get endpointslices -n NAMESPACE -l kubernetes.io/service-name=NAME -o yaml",
		"kubectl kpr exec NODE -- cilium-dbg service list",
	},
	Remedy: `Restart the agent of the node, so that it reads the endpoints anew; for maintenance, take the state back where it
was set (the service backend's maintenance is an API of the agent).`,
}

// State checks that backends are in the state of their endpoints.
func State() *diag.Check {
	return ofNode(state.Name, "every backend is in the state of its endpoint", state, func(p *diag.Pass) error {
		ds, _ := fact.Behind.From(p.View())
		for _, f := range faults(ds, func(d lb.Delta) bool { return claim(p.View(), d) == state.Name }) {
			d := f.deltas[0]
			severity := diag.Error
			if d.B == string(lb.Maintenance) {
				severity = diag.Warning
			}
			p.Find(state, f.report(severity, fmt.Sprintf("%s is %s by the API and %s by the agent, on %s: %s",
				f.what, wording(d.A), believed(d.B), f.on(), consequence(d)), fact.EndpointSlices, fact.AgentFrontends))
		}
		return nil
	})
}

func wording(s string) string {
	switch lb.State(s) {
	case lb.Active:
		return "ready"
	case lb.TerminatingNotServing:
		return "terminating and not serving"
	case lb.Maintenance:
		return "in maintenance"
	}
	return s
}

// believed keeps the agent's word for what the API calls ready.
func believed(s string) string {
	if lb.State(s) == lb.Active {
		return s
	}
	return wording(s)
}

func consequence(d lb.Delta) string {
	if lb.State(d.B) == lb.Active {
		return "connections that it gets hang or are refused"
	}
	return "it gets no new connections"
}
