package datapath

import (
	"fmt"
	"slices"

	"github.com/kubectl-kpr/kubectl-kpr/internal/netfilter"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
)

// masq is the rule about who rewrites sources first.
var masq = &diag.Rule{
	Name: "masq", Severity: diag.Warning,
	Title: "kube-proxy's masquerade comes before Cilium's",
	Doc: `Where Cilium masquerades by iptables, its chain CILIUM_POST_nat belongs before KUBE-POSTROUTING in the table nat: the first
of them that rewrites a source decides. With kube-proxy's first, packets that kube-proxy has marked leave with the node's
address where Cilium would have kept the pod's or taken the router's, and answers may come back outside the overlay. kube-proxy puts its chain
on top when it starts and finds none; so does Cilium, unless prepend-iptables-chains is false. Who started last is first.

Where Cilium masquerades in BPF its packets do not pass there, and the order decides nothing.`,
	Proof: []string{
		"kubectl kpr exec NODE -- iptables-nft-save -t nat",
		"kubectl kpr exec NODE -- cilium-dbg status --verbose",
	},
	Remedy:  `Restart the agent of that node: it puts its chains on top again. If it does not, look for prepend-iptables-chains: "false".`,
	Sources: []string{"cilium/cilium#15234", "cilium/cilium#23604"},
}

// Masq checks the order of those who masquerade.
func Masq() *diag.Check {
	return &diag.Check{
		Name:  masq.Name,
		Doc:   "who masquerades first, Cilium or kube-proxy",
		Scope: diag.OfNode,
		Rules: []*diag.Rule{masq},
		Needs: []fact.Named{fact.Status, fact.Netfilter},
		Wants: []fact.Named{fact.AgentOf},
		Applies: func(v *fact.View) string {
			if a, err := fact.AgentOf.From(v); err == nil && a.Life == fact.Unwanted {
				return a.Reason
			}
			if st, err := fact.Status.From(v); err == nil && st.Masquerade.Mode != "iptables" {
				return "Cilium does not masquerade by iptables"
			}
			return ""
		},
		Run: judgeMasq,
	}
}

func judgeMasq(p *diag.Pass) error {
	rules, _ := fact.Netfilter.From(p.View())
	for _, part := range rules.Parts {
		post := slices.DeleteFunc(slices.Clone(part.Jumps), func(j netfilter.Jump) bool { return j.Table != "nat" || j.Chain != "POSTROUTING" })
		at := func(chain string) int {
			return slices.IndexFunc(post, func(j netfilter.Jump) bool { return j.Target == chain })
		}
		proxy, own := at("KUBE-POSTROUTING"), at("CILIUM_POST_nat")
		if proxy < 0 || own < 0 || proxy > own {
			continue
		}
		p.Find(masq, diag.Report{
			Subject: "node/" + p.Node(), Address: fmt.Sprint(part.Family), Severity: diag.Warning, Proof: []fact.Named{fact.Netfilter},
			Message: fmt.Sprintf("KUBE-POSTROUTING stands before CILIUM_POST_nat (nat POSTROUTING, %v): kube-proxy masquerades first, so marked packets take the node's address and answers may leave the overlay", part.Family),
		})
	}
	return nil
}
