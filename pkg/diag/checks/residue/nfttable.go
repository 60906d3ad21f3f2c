package residue

import (
	"fmt"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/internal/netfilter"
	"github.com/kubectl-kpr/kubectl-kpr/internal/words"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
)

// nftTable is the rule about kube-proxy's nftables tables.
var nftTable = &diag.Rule{
	Name: "nft-table", Severity: diag.Warning,
	Title: "kube-proxy's nftables tables are on a node that no longer needs them",
	Doc: `In nftables mode, beta in 1.31 and stable since 1.33, kube-proxy makes no iptables chain at all. Its rules are in the tables
"ip kube-proxy" and "ip6 kube-proxy", which iptables does not show: that there is no KUBE chain proves nothing.
Like the chains they stay when kube-proxy ends. The table refuses every ClusterIP that it does not know, and
every port that it does not know of those it knows, so a packet to a Service made since is dropped wherever
Cilium does not translate it first.

The agent's image has no nft. A kube-proxy that runs in this mode says so on port 10249; tables that it has left
are seen from the host only, with --host, or in evidence that was recorded there.`,
	Proof: []string{"nft list table ip kube-proxy    # on the node", "nft list table ip6 kube-proxy"},
	Remedy: `When no kube-proxy runs there any more and nothing brings it back: "kubectl kpr residue clean --node
NODE", "nft delete table ip kube-proxy" and "nft delete table ip6 kube-proxy" on the node, "kube-proxy --cleanup" once, or a reboot.`,
	Settles: true,
}

// NFTTable checks for kube-proxy's nftables tables.
func NFTTable() *diag.Check {
	return &diag.Check{
		Name:    nftTable.Name,
		Doc:     "kube-proxy's nftables tables, and a kube-proxy that runs in that mode",
		Scope:   diag.OfNode,
		Rules:   []*diag.Rule{nftTable},
		Needs:   []fact.Named{fact.KubeProxy},
		Wants:   []fact.Named{fact.NFTables, fact.EndpointAddresses, fact.Netfilter, fact.Status, fact.DaemonSets, fact.AgentOf},
		Applies: unwanted,
		Run:     judgeNFT,
	}
}

// nftMode is kube-proxy's own word for the mode, on port 10249.
const nftMode = "nftables"

func judgeNFT(p *diag.Pass) error {
	v := p.View()
	k := keeperOf(v)
	r := diag.Report{Subject: "node/" + p.Node(), Severity: diag.Info, Proof: []fact.Named{fact.KubeProxy}}
	tables, err := fact.NFTables.From(v)
	if len(tables.Tables) == 0 {
		switch {
		case k.running == fact.Yes && k.mode == nftMode:
			r.Message = "kube-proxy runs in nftables mode: its rules are in the tables ip kube-proxy and ip6 kube-proxy, and no KUBE chain shows them. They stay when it is taken away"
			p.Find(nftTable, r)
		case err == nil:
		case k.running == fact.Yes && k.mode == "" && noChains(v):
			p.Unknown(fact.NFTables.ID(), fmt.Errorf("kube-proxy runs and has no chain in any back end of iptables, so it may be in nftables mode: %w", err))
		case k.running == fact.NotKnown:
			p.Unknown(fact.KubeProxy.ID(), fmt.Errorf("whether kube-proxy runs, and in which mode, is not known: %w", missing(k)))
		default:
			p.Note("not looked at: nftables tables that kube-proxy may have left; --host looks")
		}
		return nil
	}
	r.Proof = append(r.Proof, fact.NFTables)
	what, stale, fresh := contents(v, tables.Tables)
	switch {
	case k.running == fact.Yes, k.wanted():
		r.Message = fmt.Sprintf("%s. kube-proxy runs in nftables mode and keeps them; no KUBE chain shows them, and they stay when it is taken away", what)
	case k.running == fact.NotKnown && fresh:
		r.Message = fmt.Sprintf("%s. Every target is an endpoint now: something writes them, as a kube-proxy inside of k3s, k0s or microk8s does, which has no pod, or no endpoint has changed since one did", what)
	default:
		r.Severity, r.Next = diag.Warning, look(p.Node())
		r.Message = fmt.Sprintf("%s. They are left over, kube-proxy is gone and nobody changes them any more; they refuse every ClusterIP that they do not know%s", what, stale)
	}
	p.Find(nftTable, r)
	return nil
}

// noChains holds where all of iptables was read and none of it is kube-proxy's.
func noChains(v *fact.View) bool {
	rules, err := fact.Netfilter.From(v)
	return err == nil && len(rules.Unread) == 0 && rules.Chains(netfilter.KubeProxy) == 0
}

// contents tells what the tables hold, which of it is out of date, and whether
// all of it is known to be current.
func contents(v *fact.View, tables []netfilter.NFTable) (what, stale string, fresh bool) {
	var names []string
	var to []netfilter.Target
	services := map[string]bool{}
	for _, t := range tables {
		names = append(names, t.Name())
		to = append(to, t.Targets...)
		for _, s := range t.Services {
			services[s] = true
		}
	}
	word := "table "
	if len(names) > 1 {
		word = "tables "
	}
	what = word + strings.Join(names, " and ")
	if len(services) > 0 {
		what += fmt.Sprintf(" with %s and %s", words.Count(len(services), "Service"), words.Count(len(to), "target"))
	}
	current, err := fact.EndpointAddresses.From(v)
	if err != nil || len(to) == 0 {
		return what, "", false
	}
	old := netfilter.Stale(to, current.Has)
	if len(old) == 0 {
		return what, "; their targets are endpoints still", true
	}
	return what, "; " + gone(old, len(to)), false
}
