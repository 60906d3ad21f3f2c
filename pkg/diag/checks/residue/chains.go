package residue

import (
	"errors"
	"fmt"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/internal/netfilter"
	"github.com/kubectl-kpr/kubectl-kpr/internal/words"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
)

// kubeChains is the rule about kube-proxy's iptables chains.
var kubeChains = &diag.Rule{
	Name: "kube-chains", Severity: diag.Warning,
	Title: "kube-proxy's iptables chains are on a node that no longer needs them",
	Doc: `kube-proxy never takes its rules with it when it ends: not when its DaemonSet is deleted, not when k3s
starts without it. They stay until somebody removes them or the node reboots. Nobody keeps them up to date
from then on, so what they say drifts away from the cluster. Cilium translates most packets before they
reach them; those that it does not, such as to a Service that it does not know, still follow them.

It is an error where such rows have done harm: a REJECT or DROP row of a Service with hits, or hits on a
row that sends packets to an address which is no endpoint of its Service any more. Rows that refuse a Service
without a ready endpoint are right. Counters run since a row was
written and never say when. It is a warning where rows are merely left over, and only told where a kube-proxy
runs and keeps them: they are no leftovers then, and it would write them again. Rows that every packet passes
always have hits; only those of a Service show use.

Rules are in four places: the nft and the legacy back end, for IPv4 and for IPv6. Chains count by exact name:
the kubelet's (KUBE-KUBELET-CANARY, KUBE-IPTABLES-HINT, KUBE-FIREWALL, and before 1.27 KUBE-MARK-MASQ,
KUBE-MARK-DROP and KUBE-POSTROUTING), Cilium's, those of kube-router (KUBE-ROUTER-*, KUBE-NWPLCY-*, KUBE-POD-FW-*)
and of the container runtime (KUBE-HOSTPORTS, KUBE-HP-*) are not kube-proxy's.`,
	Proof: []string{
		"kubectl kpr exec NODE -- iptables-nft-save -c",
		"kubectl kpr exec NODE -- iptables-legacy-save -c",
		"kubectl kpr exec NODE -- ip6tables-nft-save -c",
		"kubectl kpr exec NODE -- ip6tables-legacy-save -c",
	},
	Remedy: `First make sure that no kube-proxy runs there and that nothing brings it back. Then "kubectl kpr residue clean --node
NODE --dry-run" shows what would go, and without --dry-run it goes, with a backup. Or drain the node and reboot it, or run
kube-proxy's own "kube-proxy --cleanup" there once, which clears iptables, IPVS and nftables of both families.
Do not pipe a save through grep and back: that drops the kubelet's rules and every rule whose comment has
the word, only for IPv4, and an iptables older than the one that wrote the rules loses matches on the way.`,
	Settles: true,
}

// KubeChains checks whether kube-proxy's chains are kept, left over, or do harm.
func KubeChains() *diag.Check {
	return &diag.Check{
		Name:  kubeChains.Name,
		Doc:   "kube-proxy's iptables chains, by table, family and back end: kept, left over, or doing harm",
		Scope: diag.OfNode,
		Rules: []*diag.Rule{kubeChains},
		Needs: []fact.Named{fact.Chains},
		Wants: []fact.Named{fact.KubeProxy, fact.Status, fact.DaemonSets, fact.AgentOf},
		Applies: func(v *fact.View) string {
			if reason := unwanted(v); reason != "" {
				return reason
			}
			if k := keeperOf(v); k.wanted() {
				return "kube-proxy has its part in the datapath here: the agent's KPR is " + string(k.kpr)
			}
			return ""
		},
		Run: judgeChains,
	}
}

func judgeChains(p *diag.Pass) error {
	c, _ := fact.Chains.From(p.View())
	if c.Count == 0 {
		unread(p, c.Unread)
		return nil
	}
	if len(c.Unread) > 0 {
		var names []string
		for _, u := range c.Unread {
			names = append(names, u.What)
		}
		p.Note("more of kube-proxy may be left where it was not looked: %s", strings.Join(names, ", "))
	}
	k := keeperOf(p.View())
	r := diag.Report{Subject: "node/" + p.Node(), Severity: diag.Info, Proof: []fact.Named{fact.Chains}}
	what := fmt.Sprintf("%s of kube-proxy: %s", words.Count(c.Count, "chain"), c.Where())
	switch {
	case k.running == fact.Yes:
		r.Proof = append(r.Proof, fact.KubeProxy)
		r.Message = fmt.Sprintf("%s. kube-proxy runs (%s) and keeps them: they are no leftovers, and it would write them again%s", what, k.how, use(c))
		if c.Counted && len(c.Services) > 0 && len(c.Used) == 0 && k.kpr == agent.ModeTrue {
			r.Message += ", and kube-proxy can be retired"
		}
	case k.running == fact.NotKnown && c.Fresh():
		r.Message = fmt.Sprintf("%s. Every row's target is an endpoint now: something writes them, as a kube-proxy inside of k3s, k0s or microk8s does, which has no pod, or no endpoint has changed since one did. Where one runs they are no leftovers, and it would write them again%s",
			what, use(c))
	case k.running == fact.NotKnown && !c.Old():
		p.Unknown(fact.KubeProxy.ID(), fmt.Errorf("whether kube-proxy runs and keeps the chains is not known: %w", missing(k)))
		r.Message = what + ". Whether a kube-proxy keeps them or left them is not known" + use(c)
	default:
		r.Severity, r.Next = diag.Warning, look(p.Node())
		r.Message = fmt.Sprintf("%s. They are left over, kube-proxy is gone%s", what, left(c))
		if k.partOff() {
			r.Message += fmt.Sprintf(". The agent's KPR is %s: they are what still serves here, frozen as they are; do not remove them before KPR is on", k.kpr)
		}
		if harm := harm(c); harm != "" {
			r.Severity = diag.Error
			r.Message += ". They do harm: " + harm
		}
	}
	p.Find(kubeChains, r)
	return nil
}

// unread makes one gap of all that was not read, as a node has one for each fact.
func unread(p *diag.Pass, what []fact.Unread) {
	var errs []error
	for _, u := range what {
		errs = append(errs, u.Err)
	}
	if len(errs) > 0 {
		p.Unknown(fact.Netfilter.ID(), errors.Join(errs...))
	}
}

func missing(k keeper) error {
	if k.missing != nil {
		return k.missing
	}
	return errors.New("no port and no pod tells it")
}

// use tells which Services' rows have hits.
func use(c fact.ChainsOf) string {
	switch {
	case len(c.Services) == 0:
		return ""
	case !c.Counted:
		return fmt.Sprintf("; they name %s", words.Count(len(c.Services), "Service"))
	case len(c.Used) == 0:
		return fmt.Sprintf("; they name %s, and no row of a Service has a hit: they carry nothing", words.Count(len(c.Services), "Service"))
	}
	return fmt.Sprintf("; they name %s, and rows of %s have hits (%s)", words.Count(len(c.Services), "Service"), fmt.Sprint(len(c.Used)), some(c.Used))
}

// left tells how far leftovers have drifted from the cluster.
func left(c fact.ChainsOf) string {
	var s string
	if n := len(c.Services); n > 0 {
		s = fmt.Sprintf(" and nobody changes them any more. They still name %s (%s)", words.Count(n, "Service"), some(c.Services))
	}
	switch {
	case c.Targets == 0:
	case !c.Judged:
		s += "; whether their targets are endpoints still is not known"
	case len(c.Stale) == 0:
		s += "; their targets are endpoints still"
	default:
		s += "; " + gone(c.Stale, c.Targets)
	}
	if c.Outdated > 0 {
		s += fmt.Sprintf("; Services that have endpoints are refused for want of them by %s", words.Count(c.Outdated, "row"))
	}
	return s
}

// gone counts targets that are no endpoints any more.
func gone(stale []netfilter.Target, all int) string {
	lead := "lead"
	if len(stale) == 1 {
		lead = "leads"
	}
	return fmt.Sprintf("of %s, %d %s to no endpoint of the Service any more (%s)", words.Count(all, "target"), len(stale), lead, targets(stale))
}

// harm tells of rows whose counters show that they refused packets or led them
// astray.
func harm(c fact.ChainsOf) string {
	var parts []string
	if len(c.Refusing) > 0 {
		b := c.Refusing[0]
		s := fmt.Sprintf("a %s row has refused %d packets to %s", b.Verdict, b.Packets, b.Service)
		if n := len(c.Refusing) - 1; n > 0 {
			s += fmt.Sprintf(", and %d more such rows have hits", n)
		}
		parts = append(parts, s)
	}
	if c.StaleUsed > 0 {
		parts = append(parts, fmt.Sprintf("rows with hits send packets to addresses where no endpoint is: %s", targets(c.Stale[:c.StaleUsed])))
	}
	return strings.Join(parts, "; ")
}

func targets(ts []netfilter.Target) string {
	var names []string
	for _, t := range ts {
		name := t.Service + " to " + t.To.String()
		if t.To.Port() == 0 {
			name = t.Service + " to " + t.To.Addr().String()
		}
		names = append(names, name)
	}
	return some(names)
}
