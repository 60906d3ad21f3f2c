package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
)

// migrationStop is the rule about a move that halted half-way.
var migrationStop = &diag.Rule{
	Name: "migration-stop", Severity: diag.Error,
	Title: "the move to the replacement stands still half-way",
	Doc: `Some agents replace kube-proxy and some do not, although the configuration asks all for the same, and the roll does not go on: pods of the new kind do not become ready. Each node is
served by one of the two, as long as kube-proxy runs on those that need it.

The safe direction depends on kube-proxy. While it runs on every node both directions are open. Where it is gone from a node whose agent replaces nothing, bring it back first.`,
	Proof:   []string{"kubectl kpr status -o wide", "kubectl -n kube-system rollout status daemonset/cilium --timeout=10s"},
	Remedy:  `Look at the first agent that is not ready (kubectl kpr check --only agent-down). Mend it and let the roll go on, or go back with helm rollback while kube-proxy still runs on every node.`,
	Settles: true,
}

// MigrationStop checks for a roll that halted between two modes.
func MigrationStop() *diag.Check {
	return &diag.Check{
		Name:  migrationStop.Name,
		Doc:   "a roll of agents that halted with both modes in the cluster",
		Scope: diag.OfCluster,
		Rules: []*diag.Rule{migrationStop},
		Needs: []fact.Named{fact.AgentSets},
		Wants: []fact.Named{fact.Status, fact.WantedMode, fact.KubeProxies},
		Run:   judgeStop,
	}
}

func judgeStop(p *diag.Pass) error {
	byMode := map[agent.Mode][]string{}
	for node, st := range fact.Status.Each(p.View()) {
		want, err := fact.WantedMode.From(p.View().On(node))
		if st.Value == nil || st.Value.Mode == "" || err != nil {
			continue
		}
		if want.Mode == agent.ModeTrue { // nodes that are told otherwise are no part of it
			byMode[st.Value.Mode] = append(byMode[st.Value.Mode], node)
		}
	}
	on, off := byMode[agent.ModeTrue], byMode[agent.ModeFalse]
	if len(on) == 0 || len(off) == 0 {
		return nil
	}
	sets, _ := fact.AgentSets.From(p.View())
	proxies, _ := fact.KubeProxies.From(p.View())
	for i := range sets {
		s := sets[i].Status
		if s.NumberReady == s.DesiredNumberScheduled || s.NumberUnavailable == 0 {
			continue // nobody stands in the way; the roll goes on, or restarts are pending
		}
		direction := "kube-proxy is not seen: bring it back on the nodes that are off before anything else"
		if proxies.Seen() == fact.Yes {
			direction = "kube-proxy still runs, so both directions are open: mend what is not ready, or roll back"
		}
		p.Find(migrationStop, diag.Report{
			Subject: "daemonset/" + sets[i].Namespace + "/" + sets[i].Name, Severity: diag.Error, Proof: []fact.Named{fact.AgentSets, fact.Status},
			Message: fmt.Sprintf("KPR is on for %d nodes and off for %d (%s), and the roll does not go on: %d of %d agents are ready. %s", len(on), len(off), few(off), s.NumberReady, s.DesiredNumberScheduled, direction),
			Next:    []string{"kubectl", "kpr", "status", "-o", "wide"},
		})
	}
	return nil
}

func few(names []string) string {
	slices.Sort(names)
	if len(names) > 3 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:3], ", "), len(names)-3)
	}
	return strings.Join(names, ", ")
}
