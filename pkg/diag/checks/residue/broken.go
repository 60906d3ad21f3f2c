package residue

import (
	"fmt"
	"slices"

	"github.com/kubectl-kpr/kubectl-kpr/internal/netfilter"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
)

// broken is the rule about a kube-proxy that should serve and cannot.
var broken = &diag.Rule{
	Name: "kube-proxy-broken", Severity: diag.Error,
	Title: "kube-proxy serves the node, and a piece of its rules is missing",
	Doc: `With the replacement off, NodePorts, LoadBalancer addresses, externalIPs and Services dialled from the host are kube-proxy's. Its rules hang together: KUBE-SERVICES is entered
from PREROUTING and OUTPUT of the table nat, and KUBE-POSTROUTING from POSTROUTING, without which requests that were marked for it keep a source that
answers do not find. Somebody who cleaned up by hand, or restored an older set of rules, leaves chains that nothing enters. kube-proxy puts them back at its next full sync
only, which can take an hour.`,
	Proof: []string{
		"kubectl kpr exec NODE -- iptables-nft-save -t nat",
		"kubectl kpr residue --node NODE -o wide",
	},
	Remedy:  `Delete the node's kube-proxy pod, or restart the process that holds it: it writes all of its rules when it starts.`,
	Sources: []string{"cilium/cilium#39204", "kubernetes/kubernetes#94914"},
}

// Broken checks that kube-proxy's rules hang together where it serves.
func Broken() *diag.Check {
	return &diag.Check{
		Name:  broken.Name,
		Doc:   "rules of a kube-proxy that serves a node: entered, and whole",
		Scope: diag.OfNode,
		Rules: []*diag.Rule{broken},
		Needs: []fact.Named{fact.Status, fact.KubeProxy, fact.Netfilter},
		Wants: []fact.Named{fact.AgentOf},
		Applies: func(v *fact.View) string {
			if reason := unwanted(v); reason != "" {
				return reason
			}
			if st, err := fact.Status.From(v); err == nil && st.Mode != agent.ModeFalse {
				return "kube-proxy does not serve this node alone"
			}
			if proxy, err := fact.KubeProxy.From(v); err == nil && (proxy.Running != fact.Yes || proxy.Mode != "iptables") {
				return "no kube-proxy in iptables mode is known to run here"
			}
			return ""
		},
		Run: judgeBroken,
	}
}

// entries are the rows by which kube-proxy's chains are entered.
var entries = []netfilter.Jump{
	{Table: "nat", Chain: "PREROUTING", Target: "KUBE-SERVICES"},
	{Table: "nat", Chain: "OUTPUT", Target: "KUBE-SERVICES"},
	{Table: "nat", Chain: "POSTROUTING", Target: "KUBE-POSTROUTING"},
}

func judgeBroken(p *diag.Pass) error {
	rules, _ := fact.Netfilter.From(p.View())
	for _, part := range rules.Parts {
		if !part.Whole || part.Has(netfilter.KubeProxy) == 0 {
			continue
		}
		for _, e := range entries {
			if slices.Contains(part.Jumps, e) {
				continue
			}
			p.Find(broken, diag.Report{
				Subject: "node/" + p.Node(), Address: fmt.Sprintf("%v %s %s", part.Family, e.Chain, e.Target), Severity: diag.Error, Next: look(p.Node()), Proof: []fact.Named{fact.Netfilter, fact.KubeProxy},
				Message: fmt.Sprintf("kube-proxy serves here (iptables mode), and nothing in %s of nat enters %s (%v): %s", e.Chain, e.Target, part.Family, consequences[e.Chain]),
			})
		}
	}
	return nil
}

var consequences = map[string]string{
	"PREROUTING":  "Services dialled from outside, and NodePorts, are not translated",
	"OUTPUT":      "Services dialled from the host's network are not translated",
	"POSTROUTING": "marked requests keep their source, and answers to NodePorts do not come back",
}
