package service

import (
	"fmt"

	"github.com/kubectl-kpr/kubectl-kpr/internal/words"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
)

// global is the rule about Services that several clusters share.
var global = &diag.Rule{
	Name: "global-service", Severity: diag.Info,
	Title: "a global Service has backends that this cluster's API does not know",
	Doc: `The annotation service.cilium.io/global makes ClusterMesh join the endpoints of all clusters behind a Service of
one name. Those of the other clusters are in no EndpointSlice here, so whether they are right cannot be told from
this side: they are compared between the nodes only. Where nodes differ in them the rule node-divergence says so.`,
	Proof: []string{
		"kubectl get service -n NAMESPACE NAME -o jsonpath='{.metadata.annotations}'",
		"kubectl kpr exec NODE -- cilium-dbg service list --clustermesh-affinity",
		"kubectl kpr exec NODE -- cilium-dbg status --verbose",
	},
	Remedy: "None. To judge the foreign backends run this tool against the other cluster.",
}

// Global tells of global Services and what can be said of them.
func Global() *diag.Check {
	return &diag.Check{
		Name: global.Name, Doc: "global Services, whose foreign backends are compared between nodes only",
		Scope: diag.OfCluster, Rules: []*diag.Rule{global},
		Needs: []fact.Named{fact.Index},
		Wants: []fact.Named{fact.Desired, fact.Behind},
		Run: func(p *diag.Pass) error {
			for _, a := range globals(p.View()) {
				p.Find(global, diag.Report{
					Subject: "service/" + a.service.String(), Severity: diag.Info, Message: a.message(),
					Proof: []fact.Named{fact.Services},
				})
			}
			return nil
		},
	}
}

func (a *abroad) message() string {
	all := a.backends()
	if len(all) == 0 {
		return fmt.Sprintf("global Service without a backend of another cluster on %s", words.Count(len(a.nodes), "node"))
	}
	names := make([]string, len(all))
	for i, b := range all {
		names[i] = b.String()
	}
	return fmt.Sprintf("global Service: %s of other clusters; they are in no EndpointSlice here and are compared between nodes only (%s)",
		words.Count(len(all), "backend"), listed(names))
}
