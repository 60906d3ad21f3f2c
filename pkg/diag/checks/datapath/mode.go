package datapath

import (
	"errors"
	"fmt"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
)

// kprMode is the rule about what an agent replaces of kube-proxy.
var kprMode = &diag.Rule{
	Name: "kpr-mode", Severity: diag.Warning,
	Title: "kube-proxy is not, or not wholly, replaced on a node",
	Doc: `Cilium can balance Services in kube-proxy's place. Each agent says for itself how much it replaces:
True (Strict up to 1.13) all of it, Partial or Probe some of it, False (Disabled) nothing but
ClusterIPs dialled by pods, which Cilium balances in every mode.

It is an error when nothing is active although the configuration asks for it, because whoever then
removes kube-proxy leaves the node without Services; and when neither Cilium nor kube-proxy serves the
node. Partial is a warning that says which side owns which kind of frontend. False where the
configuration says so is a legal state and only told.

The maps prove nothing here: with the replacement off they still hold ClusterIPs and externalIPs, and a
request from a pod to a ClusterIP succeeds in every mode.`,
	Proof: []string{
		"kubectl kpr exec NODE -- cilium-dbg status --verbose",
		"kubectl -n kube-system get configmap cilium-config -o jsonpath='{.data.kube-proxy-replacement}'",
	},
	Remedy: `If the replacement is wanted: agents read cilium-config only when they start, so restart the agent and read its
first log lines. Keep kube-proxy until the agent of that very node says True.`,
}

// KPRMode checks the mode that each agent really runs in.
func KPRMode() *diag.Check {
	return &diag.Check{
		Name:  kprMode.Name,
		Doc:   "how much of kube-proxy each agent replaces, against what its configuration asks for",
		Scope: diag.OfNode,
		Rules: []*diag.Rule{kprMode},
		Needs: []fact.Named{fact.Status, fact.KubeProxy},
		Wants: []fact.Named{fact.AgentOf, fact.WantedMode},
		Applies: func(v *fact.View) string {
			if a, err := fact.AgentOf.From(v); err == nil && a.Life == fact.Unwanted {
				return a.Reason
			}
			return ""
		},
		Run: judgeMode,
	}
}

func judgeMode(p *diag.Pass) error {
	v := p.View()
	st, _ := fact.Status.From(v)
	proxy, _ := fact.KubeProxy.From(v)
	want, wantErr := fact.WantedMode.From(v)
	if st.Mode == "" {
		p.Unknown(fact.Status.ID(), errors.New("the agent's status has no KubeProxyReplacement line"))
		return nil
	}
	if proxy.Running == fact.NotKnown {
		p.Unknown(fact.KubeProxy.ID(), fmt.Errorf("whether kube-proxy runs is not known: %w", proxy.Missing))
	}
	r := diag.Report{Subject: "node/" + p.Node(), Proof: []fact.Named{fact.Status}}
	switch st.Mode {
	case agent.ModeTrue:
		if wantErr == nil && want.Mode == agent.ModeFalse {
			r.Severity = diag.Info
			r.Message = fmt.Sprintf("KPR is %s although %s says %s: the agent keeps it until it restarts", st.ModeSaid, want.By, want.Said)
			r.Proof = append(r.Proof, fact.WantedMode)
			p.Find(kprMode, r)
		}
	case agent.ModePartial, agent.ModeProbe:
		r.Severity, r.Message = diag.Warning, partial(st)
		p.Find(kprMode, r)
	default:
		off(p, r, st, proxy, want, wantErr)
	}
	return nil
}

// off judges a node whose agent replaces nothing.
func off(p *diag.Pass, r diag.Report, st *agent.Status, proxy fact.Proxy, want fact.Wanted, wantErr error) {
	switch {
	case wantErr == nil && want.Mode != agent.ModeFalse:
		r.Severity = diag.Error
		r.Message = fmt.Sprintf("no replacement is active: the agent says %s while %s asks for %s. Do not remove kube-proxy from this node",
			st.ModeSaid, want.By, want.Said)
		r.Next = []string{"kubectl", "kpr", "exec", p.Node(), "--", "cilium-dbg", "status", "--verbose"}
		r.Proof = append(r.Proof, fact.WantedMode)
	case proxy.Running == fact.No:
		r.Severity = diag.Error
		r.Message = fmt.Sprintf("nobody serves Services: the agent says %s and kube-proxy does not run (%s). Only ClusterIPs dialled by pods are balanced",
			st.ModeSaid, strings.Join(proxy.Proof, "; "))
		r.Proof = append(r.Proof, fact.KubeProxy)
	default:
		r.Severity = diag.Info
		r.Message = fmt.Sprintf("KPR is %s: ClusterIPs dialled by pods are balanced by Cilium; those dialled from the host, and NodePort, LoadBalancer, externalIPs and hostPort by kube-proxy%s",
			st.ModeSaid, proxyWords(proxy))
		r.Proof = append(r.Proof, fact.KubeProxy)
	}
	p.Find(kprMode, r)
}

func proxyWords(proxy fact.Proxy) string {
	switch {
	case proxy.Running == fact.Yes && proxy.Mode != "":
		return " (it runs, in " + proxy.Mode + " mode)"
	case proxy.Running == fact.Yes:
		return " (it runs)"
	case len(proxy.Proof) > 0:
		return " (" + strings.Join(proxy.Proof, "; ") + ")"
	}
	return " (not seen)"
}

// partial says who owns which kind of frontend.
func partial(st *agent.Status) string {
	var ours, theirs, silent []string
	for _, part := range []struct {
		name string
		s    agent.Switch
	}{
		{"NodePort", st.NodePort}, {"LoadBalancer", st.LoadBalancer}, {"externalIPs", st.ExternalIPs},
		{"hostPort", st.HostPort}, {"ClusterIP from the host (socket LB)", st.SocketLB},
	} {
		switch part.s {
		case agent.On:
			ours = append(ours, part.name)
		case agent.Off:
			theirs = append(theirs, part.name)
		default:
			silent = append(silent, part.name)
		}
	}
	msg := fmt.Sprintf("KPR is %s: Cilium balances %s", st.ModeSaid, strings.Join(append([]string{"ClusterIP from pods"}, ours...), ", "))
	if len(theirs) > 0 {
		msg += "; " + strings.Join(theirs, ", ") + " are left to kube-proxy"
	}
	if len(silent) > 0 {
		msg += "; not told: " + strings.Join(silent, ", ")
	}
	if len(theirs) > 0 && st.NetworkRouting == "Tunnel" {
		msg += ". Over " + st.TunnelProtocol + " kube-proxy's masquerade takes the node's address, and answers may come back outside the tunnel"
	}
	return msg
}
