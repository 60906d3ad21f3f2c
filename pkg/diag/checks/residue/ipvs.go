package residue

import (
	"fmt"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/internal/words"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
)

// ipvs is the rule about what kube-proxy's IPVS mode has on a node.
var ipvs = &diag.Rule{
	Name: "ipvs", Severity: diag.Warning,
	Title: "kube-proxy's IPVS mode has virtual servers and Service addresses on a node",
	Doc: `In IPVS mode kube-proxy makes hardly any iptables chain, so a count of them looks harmless. It keeps a virtual
server for each Service port, IP sets named KUBE-*, and a dummy device kube-ipvs0 that carries every ClusterIP,
externalIP and load balancer address. Because of that device the node takes packets to these addresses for its
own, whatever Cilium does: it answers pings to them, and connections that Cilium does not translate end at the node.

Beside an active KPR that is a warning, whether or not kube-proxy still runs. Where the agent leaves Services to
kube-proxy it is only told, since a migration has to clear all three as well. Virtual servers of other programs
(keepalived, kube-vip, kube-router) do not count.`,
	Proof: []string{
		"kubectl kpr exec NODE -- ip -br addr show kube-ipvs0",
		"kubectl kpr exec NODE -- cat /proc/net/ip_vs",
		"kubectl kpr exec NODE -- ipset list -n",
	},
	Remedy: `When no kube-proxy runs there any more and nothing brings it back: "kubectl kpr residue clean --node
NODE" where the host has ipvsadm; or drain and reboot the node, or run "kube-proxy --cleanup" on it once. Deleting the device alone leaves the virtual servers. Sysctls that the mode sets
(net.ipv4.vs.*, arp_ignore, arp_announce) are put back by a reboot only.`,
}

// IPVS checks what kube-proxy's IPVS mode has on a node.
func IPVS() *diag.Check {
	return &diag.Check{
		Name:    ipvs.Name,
		Doc:     "IPVS virtual servers, IP sets and the device kube-ipvs0 of kube-proxy",
		Scope:   diag.OfNode,
		Rules:   []*diag.Rule{ipvs},
		Needs:   []fact.Named{fact.IPVS},
		Wants:   []fact.Named{fact.KubeProxy, fact.Status, fact.DaemonSets, fact.AgentOf},
		Applies: unwanted,
		Run:     judgeIPVS,
	}
}

func judgeIPVS(p *diag.Pass) error {
	s, _ := fact.IPVS.From(p.View())
	if !s.Found {
		if s.Unlooked != "" {
			p.Note("no chain of kube-proxy's IPVS mode is in iptables; not looked at: %s", s.Unlooked)
		}
		return nil
	}
	k := keeperOf(p.View())
	r := diag.Report{Subject: "node/" + p.Node(), Severity: diag.Warning, Proof: []fact.Named{fact.IPVS}, Next: look(p.Node())}
	parts := holdings(s)
	switch {
	case k.wanted():
		r.Severity, r.Next = diag.Info, nil
		r.Message = fmt.Sprintf("kube-proxy serves here in IPVS mode (%s). It makes few KUBE chains, so their number proves nothing; a migration must also clear the virtual servers, the IP sets KUBE-* and kube-ipvs0", parts)
	case k.running == fact.Yes:
		r.Message = fmt.Sprintf("kube-proxy runs in IPVS mode beside KPR (%s)%s", parts, local(s))
	default:
		r.Message = fmt.Sprintf("kube-proxy's IPVS mode has left %s%s. The chains are not the only residue", parts, local(s))
	}
	p.Find(ipvs, r)
	return nil
}

// holdings tells what there is, in words.
func holdings(s fact.IPVSOf) string {
	var parts []string
	if s.Device {
		parts = append(parts, "the device kube-ipvs0")
	}
	if s.Servers > 0 {
		parts = append(parts, words.Count(s.Servers, "virtual server"))
	}
	if len(s.Sets) > 0 {
		parts = append(parts, fmt.Sprintf("%s (%s)", words.Count(len(s.Sets), "IP set"), some(s.Sets)))
	}
	if s.Chains {
		parts = append(parts, "chains of that mode in iptables")
	}
	return strings.Join(parts, ", ")
}

func local(s fact.IPVSOf) string {
	if len(s.Held) == 0 {
		return ""
	}
	var names []string
	for _, a := range s.Held {
		names = append(names, a.String())
	}
	return fmt.Sprintf(": kube-ipvs0 holds %s of Services as local addresses (%s), so the node takes their packets for its own, whatever Cilium does",
		words.Count(len(names), "IP"), some(names))
}
