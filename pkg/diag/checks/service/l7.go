package service

import (
	"fmt"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// l7Redirect is the rule about Services that Envoy answers.
var l7Redirect = &diag.Rule{
	Name: "l7-redirect", Severity: diag.Info,
	Title: "the node's Envoy answers in place of the Service's backends",
	Doc: `Gateway API, Ingress and CiliumEnvoyConfig send the traffic of a Service to the Envoy on the node that it arrives at.
Its rows carry the flag l7-load-balancer and a proxy port, and no backends: that is as it should be. From 1.20 on
service list shows the proxy as a backend on the loopback. The Services of gateways have one endpoint that is
a placeholder, 192.192.192.192:9999.

Which pods are reached, and whether any is ready, is decided by Envoy's own configuration.`,
	Proof: []string{
		"kubectl kpr exec NODE -- cilium-dbg bpf lb list",
		"kubectl get ciliumenvoyconfigs,ciliumclusterwideenvoyconfigs -A",
	},
	Remedy: "Nothing. For requests that fail, look at the Gateway's or Ingress' own status and at the Envoy of the node.",
}

// L7Redirect tells which Services Envoy answers.
func L7Redirect() *diag.Check {
	return &diag.Check{
		Name: l7Redirect.Name, Doc: "Services that the node's Envoy answers are told apart from those without backends",
		Scope: diag.OfNode, Rules: []*diag.Rule{l7Redirect},
		Wants:   []fact.Named{fact.AgentOf, fact.KernelTable, fact.AgentTable, fact.Asked},
		Applies: noAgentMeant,
		Run:     judgeL7,
	}
}

// judgeL7 prefers the map, which tells the proxy's port in every version.
func judgeL7(p *diag.Pass) error {
	v := p.View()
	maps, mapErr := fact.KernelTable.From(v)
	list, listErr := fact.AgentTable.From(v)
	if mapErr != nil && listErr != nil {
		p.Unknown(fact.KernelTable.ID(), mapErr)
		return nil
	}
	want, _ := fact.Asked.From(v)
	ports := map[lb.Name]int{}
	var order []lb.Name
	for _, t := range []lb.Table{maps, list} {
		for _, r := range t.Rows {
			if r.Redirect != lb.L7Redirect || r.Wildcard {
				continue
			}
			name := ownerOf(want, r)
			if name == (lb.Name{}) {
				continue
			}
			if _, ok := ports[name]; !ok {
				order = append(order, name)
			}
			if ports[name] == 0 {
				ports[name] = r.ProxyPort
			}
		}
	}
	for _, name := range order {
		to := "the node's Envoy"
		if ports[name] > 0 {
			to += fmt.Sprintf(" on port %d", ports[name])
		}
		p.Find(l7Redirect, diag.Report{
			Subject: "service/" + name.String(), Severity: diag.Info, Proof: []fact.Named{fact.MapRows, fact.AgentFrontends},
			Message: "traffic goes to " + to + "; no backends in its rows is as it should be",
		})
	}
	return nil
}
