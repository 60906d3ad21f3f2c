package service

import (
	"fmt"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// frontendMissing is the rule about frontends that a node lacks.
var frontendMissing = &diag.Rule{
	Name: "frontend-missing", Severity: diag.Error, Settles: true,
	Title: "a frontend that the Service must have is absent on a node",
	Doc: `The Service asks for the address (ClusterIP, NodePort, LoadBalancer address, externalIP; each family and
protocol) and the agent of the node has no frontend for it. Whoever dials it from there gets no answer.

Frontends that the node leaves out by design are not meant: headless, ExternalName, another
service-proxy-name, an annotation of Cilium's, or a part of the replacement that is switched off.`,
	Proof: []string{
		"kubectl get service -n NAMESPACE NAME -o yaml",
		"kubectl kpr exec NODE -- cilium-dbg service list",
	},
	Remedy: "Restart the agent of the node, so that it reads the Services anew, and look for the reason in its log first.",
}

// FrontendMissing checks that each node has the frontends that Services ask for.
func FrontendMissing() *diag.Check {
	return ofNode(frontendMissing.Name, "every frontend that a Service asks for is there", frontendMissing, func(p *diag.Pass) error {
		ds, _ := fact.Behind.From(p.View())
		for _, f := range faults(ds, func(d lb.Delta) bool { return claim(p.View(), d) == frontendMissing.Name }) {
			p.Find(frontendMissing, f.report(diag.Error, fmt.Sprintf("%s frontend %s is absent: who dials it here gets no answer", f.deltas[0].Type, f.what), fact.EndpointSlices, fact.AgentFrontends))
		}
		return nil
	})
}
