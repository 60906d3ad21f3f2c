package config

import (
	"fmt"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
)

// configDrift is the rule about settings that agents do not run with.
var configDrift = &diag.Rule{
	Name: "config-drift", Severity: diag.Warning,
	Title: "an agent runs with other settings than the ones it is told",
	Doc: `An agent reads cilium-config, with what a CiliumNodeConfig sets for its node, when it starts. "helm upgrade" changes the ConfigMap and restarts
nobody, unless rollOutCiliumPods is set. So a difference means that a restart is pending; or that the agent dropped the setting without failing,
as with host routing; or that the replacement forces it. The last is only told.

k3s and RKE2 read their flags once as well: their files hold from the next start of the process on, and servers can have different ones without
noticing. What runs stands on the Node objects; the files are read with --host.

It is an error where kube-proxy-replacement itself is concerned and the agent replaces nothing: whoever looks at the ConfigMap alone removes kube-proxy too early.`,
	Proof: []string{"kubectl kpr config", "kubectl kpr exec NODE -- cilium-dbg config --all",
		"kubectl get nodes -o jsonpath='{range .items[*]}{.metadata.name}{\" \"}{.metadata.annotations.k3s\\.io/node-args}{\"\\n\"}{end}'"},
	Remedy: `Restart the agents, one node first: kubectl -n kube-system rollout restart daemonset/cilium. Set rollOutCiliumPods=true to have Helm do it. Make the
flags of all servers of k3s or RKE2 alike, and restart them one at a time.`,
	Sources: []string{"cilium/cilium#24772", "cilium/cilium#19548"},
}

// Drift checks what agents run against what they are told.
func Drift() *diag.Check {
	return &diag.Check{
		Name:  configDrift.Name,
		Doc:   "settings that the running agent has otherwise than cilium-config and CiliumNodeConfig",
		Scope: diag.OfNode,
		Rules: []*diag.Rule{configDrift},
		Needs: []fact.Named{fact.Drift},
		Wants: []fact.Named{fact.Status, fact.AgentOf},
		Applies: func(v *fact.View) string {
			if a, err := fact.AgentOf.From(v); err == nil && a.Life == fact.Unwanted {
				return a.Reason
			}
			return ""
		},
		Run: judgeDrift,
	}
}

func judgeDrift(p *diag.Pass) error {
	rows, _ := fact.Drift.From(p.View())
	st, _ := fact.Status.From(p.View())
	for _, row := range rows {
		r := diag.Report{Subject: "node/" + p.Node(), Address: row.Key, Severity: diag.Warning, Proof: []fact.Named{fact.Drift}, Next: []string{"kubectl", "kpr", "config", "--node", p.Node()}}
		by := "cilium-config"
		if row.By != "" {
			by = "CiliumNodeConfig " + row.By
		}
		switch row.Mark {
		case fact.MarkPending:
			r.Message = fmt.Sprintf("%s is %s in %s and %s in the agent: a restart is pending", row.Key, row.Told, by, row.Runs)
			if row.Key == "kube-proxy-replacement" && st != nil && st.Mode == agent.ModeFalse {
				r.Severity = diag.Error
				r.Message = fmt.Sprintf("%s is %s in %s and %s in the agent: it was not restarted since, or fell back. Keep kube-proxy on this node", row.Key, row.Told, by, row.Runs)
			}
		case fact.MarkDropped:
			if row.Key == "enable-host-legacy-routing" {
				continue // host-routing tells it, with the condition
			}
			r.Message = fmt.Sprintf("%s is %s in %s and the agent runs %s without a word: %s", row.Key, row.Told, by, row.Runs, row.Why)
		case fact.MarkForced:
			if row.Key == "bpf-lb-sock" {
				continue // the chart writes it for everybody
			}
			r.Severity, r.Next = diag.Info, nil
			r.Message = fmt.Sprintf("%s is %s in %s; the replacement makes the agent run %s", row.Key, row.Told, by, row.Runs)
		case fact.MarkGone:
			r.Severity, r.Next = diag.Info, nil
			r.Message = fmt.Sprintf("%s in %s does nothing in this version: %s", row.Key, by, row.Why)
		default:
			continue
		}
		p.Find(configDrift, r)
	}
	return nil
}
