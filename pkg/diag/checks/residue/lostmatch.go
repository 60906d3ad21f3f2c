package residue

import (
	"fmt"

	"github.com/kubectl-kpr/kubectl-kpr/internal/netfilter"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
)

// lostMatch is the rule about rows that lost what made them harmless.
var lostMatch = &diag.Rule{
	Name: "rule-lost-match", Severity: diag.Error,
	Title: "an iptables rule lost its match and now takes all traffic",
	Doc: `Several iptables write the rules of one node: the host's, the agent's, kube-proxy's, the kubelet's. One that reads
rows of a newer version does not understand all of their matches, and on a save and restore it writes such rows
back without. A row that dropped packets to 127/8 from outside then drops every packet; one that sent marked packets
to Cilium's DNS proxy sends all of them; one that masqueraded marked packets masquerades everything. It
shows after a rollback of Cilium, whose image brings its own iptables, and after a clean-up by save, grep and restore.

Before such a clean-up the versions are told apart: where the host's iptables is older than the agent's and there is
something of kube-proxy to clean up, that is a warning.`,
	Proof: []string{
		"kubectl kpr exec NODE -- iptables-nft-save",
		"iptables -V    # on the node; then: kubectl kpr exec NODE -- iptables -V",
	},
	Remedy: `Have a console: SSH can be cut. Of Cilium's chains, clear the chains of that table with the newer of the two
versions (the agent's own: kubectl kpr exec) and restart the agent, which writes them anew. The kubelet writes its own
anew within minutes once the chain is deleted. Never restore a filtered save; a reboot of the node cleans up as well.`,
}

// RuleLostMatch checks for rows that lost their match, and for versions of
// iptables between which that happens.
func RuleLostMatch() *diag.Check {
	return &diag.Check{
		Name:    lostMatch.Name,
		Doc:     "no iptables rule has lost the match that limits it",
		Scope:   diag.OfNode,
		Rules:   []*diag.Rule{lostMatch},
		Needs:   []fact.Named{fact.Netfilter},
		Wants:   []fact.Named{fact.IPTablesVersions, fact.KubeProxy, fact.Status, fact.DaemonSets, fact.AgentOf},
		Applies: unwanted,
		Run:     judgeLost,
	}
}

func judgeLost(p *diag.Pass) error {
	rules, _ := fact.Netfilter.From(p.View())
	found := false
	for _, part := range rules.Parts {
		for _, l := range part.Lost {
			found = true
			r := diag.Report{
				Subject: "node/" + p.Node(), Severity: diag.Error, Proof: []fact.Named{fact.Netfilter},
				Address: fmt.Sprintf("%s/%s/%s/%d", l.Table, l.Chain, part.Family, l.Kind),
			}
			if l.Kind > netfilter.ProxiesAll {
				r.Severity = diag.Warning
			}
			r.Message = fmt.Sprintf("chain %s (%s, %s): %s. A newer iptables wrote the rules, an older one read them and wrote them back", l.Chain, l.Table, part.Family, doing(l))
			p.Find(lostMatch, r)
		}
	}
	judgeVersions(p, rules)
	if !found {
		unread(p, rules.Unread)
	}
	return nil
}

// doing tells what rows do without their match.
func doing(l netfilter.Lost) string {
	rows, have, lead := "a row", "has", "sends"
	if l.N > 1 {
		rows, have, lead = fmt.Sprintf("%d rows", l.N), "have", "send"
	}
	switch l.Kind {
	case netfilter.DropsAll:
		return rows + " of the kubelet against packets to 127.0.0.0/8, or against marked ones, " + have + " lost that match: every new packet that comes by is dropped, and the node is cut off"
	case netfilter.ProxiesAll:
		return fmt.Sprintf("%s of Cilium with TPROXY %s no mark match and %s all TCP or UDP of the node to the DNS proxy: SSH, the kubelet and the API are cut off", rows, have, lead)
	case netfilter.MasqueradesAll:
		return rows + " that should take marked packets alone " + have + " lost the mark: all traffic gets the node's address"
	case netfilter.MasqueradesNone:
		return rows + " that should let unmarked packets pass alone " + have + " lost the mark: no packet is masqueraded any more, and answers to NodePorts and to hairpins go astray"
	}
	return rows + " that should accept some packets alone " + have + " lost the match: all packets pass, whatever the rules behind say"
}

// judgeVersions warns of a clean-up that would lose matches, where there is
// something to clean up.
func judgeVersions(p *diag.Pass, rules fact.Rules) {
	versions, err := fact.IPTablesVersions.From(p.View())
	if err != nil && versions == (netfilter.Versions{}) {
		return
	}
	agents := versions.Agent
	for _, part := range rules.Parts {
		if agents == "" {
			agents = part.Version
		}
	}
	if !netfilter.Older(versions.Host, agents) {
		return
	}
	k := keeperOf(p.View())
	r := diag.Report{
		Subject: "node/" + p.Node(), Severity: diag.Info, Address: "iptables-version", Proof: []fact.Named{fact.IPTablesVersions},
		Message: fmt.Sprintf("the host's iptables (%s) is older than the agent's (%s), which wrote Cilium's rules: saving, filtering and restoring them on the host would drop matches and can cut off the node", versions.Host, agents),
	}
	if k.running == fact.Yes && !k.partOff() || rules.Chains(netfilter.KubeProxy) > 0 {
		r.Severity = diag.Warning
		r.Message += ". Remove kube-proxy's chains one by one with the agent's iptables, or reboot the node"
	}
	p.Find(lostMatch, r)
}
