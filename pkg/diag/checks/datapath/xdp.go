package datapath

import (
	"fmt"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
)

// xdp is the rule about acceleration at the driver.
var xdp = &diag.Rule{
	Name: "xdp", Severity: diag.Warning,
	Title: "XDP acceleration is combined with something that it was reported to break with",
	Doc: `With acceleration on, NodePorts are translated in the network driver, before the kernel sees the packet. People report
that with DSR, above all its Geneve dispatch, NodePorts whose backend is on another node then stop answering, and that they work with
acceleration disabled. Bonds, and virtual devices of hypervisors, carry native XDP only with some drivers and queue settings.

That is a report about a combination, no proof that it is the cause here: turn acceleration off on one node and try again.`,
	Proof:   []string{"kubectl kpr exec NODE -- cilium-dbg status --verbose", "kubectl kpr exec NODE -- ip -d link"},
	Remedy:  `Set loadBalancer.acceleration=disabled, by a CiliumNodeConfig on one node first, restart its agent and repeat the failing request.`,
	Sources: []string{"cilium/cilium#37961"},
}

// XDP checks acceleration against mode and devices.
func XDP() *diag.Check {
	return &diag.Check{
		Name:  xdp.Name,
		Doc:   "XDP acceleration against DSR and the kind of device",
		Scope: diag.OfNode,
		Rules: []*diag.Rule{xdp},
		Needs: []fact.Named{fact.Status},
		Wants: []fact.Named{fact.AgentOf},
		Applies: func(v *fact.View) string {
			if a, err := fact.AgentOf.From(v); err == nil && a.Life == fact.Unwanted {
				return a.Reason
			}
			return ""
		},
		Run: judgeXDP,
	}
}

func judgeXDP(p *diag.Pass) error {
	st, _ := fact.Status.From(p.View())
	if st.XDP != "Native" && st.XDP != "Best-Effort" && st.XDP != "Generic" {
		return nil
	}
	find := func(about, format string, args ...any) {
		p.Find(xdp, diag.Report{Subject: "node/" + p.Node(), Address: about, Severity: diag.Warning, Message: fmt.Sprintf(format, args...), Proof: []fact.Named{fact.Status}})
	}
	if st.LBMode == "DSR" || st.LBMode == "Hybrid" {
		dispatch := ""
		if st.DSRDispatch != "" {
			dispatch = " (" + st.DSRDispatch + ")"
		}
		find("dsr", "XDP acceleration %s on %s together with %s%s: reported to break NodePorts whose backend is on another node, and to work with acceleration disabled", st.XDP, names(st.Devices), st.LBMode, dispatch)
	}
	for _, d := range st.Devices {
		if st.XDP == "Native" && (strings.HasPrefix(d.Name, "bond") || strings.HasPrefix(d.Name, "team") || strings.HasPrefix(d.Name, "br")) {
			find(d.Name, "XDP acceleration Native on %s: a bond, team or bridge carries it only if each device below does, and drops packets where one does not", d.Name)
		}
	}
	return nil
}
