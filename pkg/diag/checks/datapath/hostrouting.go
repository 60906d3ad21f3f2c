package datapath

import (
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
)

// hostRouting is the rule about who routes between the node and its pods.
var hostRouting = &diag.Rule{
	Name: "host-routing", Severity: diag.Info,
	Title: "host routing is Legacy although BPF is configured",
	Doc: `With enable-host-legacy-routing false an agent routes between devices and pods in BPF, past the host's own stack and past iptables. It goes back to
Legacy without failing, with one line in its log, when a condition is not met: the replacement has to be on, and masquerading has to be BPF's or off; older
versions ask for Linux 5.10 and no IPsec. Legacy works; it is slower, and rules of iptables see the packets.

The ConfigMap proves nothing here, only what each agent says of itself.`,
	Proof:   []string{"kubectl kpr exec NODE -- cilium-dbg status --verbose", "kubectl -n kube-system logs POD | grep -i 'host routing\\|legacy'"},
	Remedy:  `If BPF host routing is wanted: bpf.masquerade=true beside kubeProxyReplacement=true, and a restart of the agents.`,
	Sources: []string{"cilium/cilium#38910", "cilium/cilium#44041"},
}

// HostRouting checks who routes.
func HostRouting() *diag.Check {
	return &diag.Check{
		Name:  hostRouting.Name,
		Doc:   "host routing as it is against as it is configured",
		Scope: diag.OfNode,
		Rules: []*diag.Rule{hostRouting},
		Needs: []fact.Named{fact.Status, fact.Config},
		Wants: []fact.Named{fact.AgentOf},
		Applies: func(v *fact.View) string {
			if a, err := fact.AgentOf.From(v); err == nil && a.Life == fact.Unwanted {
				return a.Reason
			}
			if cfg, err := fact.Config.From(v); err != nil || cfg.Data["enable-host-legacy-routing"] != "false" {
				return "BPF host routing is not asked for"
			}
			return ""
		},
		Run: func(p *diag.Pass) error {
			st, _ := fact.Status.From(p.View())
			if st.HostRouting != "Legacy" {
				return nil
			}
			var why []string
			if st.Mode != agent.ModeTrue && st.Mode != "" {
				why = append(why, "KPR is "+st.ModeSaid)
			}
			if strings.EqualFold(st.Masquerade.Mode, "iptables") {
				why = append(why, "masquerading is by iptables")
			}
			if e := st.Encryption; strings.Contains(strings.ToLower(e), "ipsec") {
				why = append(why, "IPsec is on")
			}
			because := "the agent's log has the condition that is not met"
			if len(why) > 0 {
				because = strings.Join(why, " and ") + " here"
			}
			p.Find(hostRouting, diag.Report{Subject: "node/" + p.Node(), Severity: diag.Info, Proof: []fact.Named{fact.Status, fact.Config},
				Message: "host routing is Legacy although enable-host-legacy-routing is false: BPF host routing needs KPR and masquerading in BPF, and " + because})
			return nil
		},
	}
}
