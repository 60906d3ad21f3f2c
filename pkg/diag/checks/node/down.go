package node

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
)

// agentDown is the rule about nodes that no agent serves.
var agentDown = &diag.Rule{
	Name: "agent-down", Severity: diag.Error, Settles: true,
	Title: "no Cilium agent runs on a node",
	Doc: `The agent of a node writes its BPF maps. Without one, what the maps hold keeps working, but no new Service,
no new endpoint and no change of either reaches the node, and new pods get no network. The longer it
lasts, the more of the node's backends are stale.

It is a warning when the agent runs and calls itself unhealthy: it may not hear of changes; and when a
Linux node is left out by the DaemonSet although the cluster relies on the replacement.

An agent that hangs in Init:0/5 with a quiet container "config" usually cannot reach the API server:
look at KUBERNETES_SERVICE_HOST of the DaemonSet. Nodes that the DaemonSet does not select are not meant.`,
	Proof: []string{
		"kubectl get pods -A -o wide -l k8s-app=cilium",
		"kubectl -n kube-system logs AGENT-POD -c cilium-agent --previous --tail=20",
		"kubectl -n kube-system logs AGENT-POD -c config --tail=20",
	},
	Remedy: `Read the last lines of the container that the message names and mend what they say. If the agents wait for the
API server after a change of its address, roll that change back first (helm rollback): every node whose
agent restarts meanwhile joins them.`,
}

// AgentDown checks that every node that should have an agent has a running one.
func AgentDown() *diag.Check {
	return &diag.Check{
		Name:  agentDown.Name,
		Doc:   "every node that the agents' DaemonSet selects has a running agent",
		Scope: diag.OfCluster,
		Rules: []*diag.Rule{agentDown},
		Wants: []fact.Named{fact.AgentOf, fact.AgentSets, fact.Status, fact.APIServer, fact.Nodes, fact.WantedMode, fact.KubeProxy},
		Run:   judgeAgents,
	}
}

func judgeAgents(p *diag.Pass) error {
	v := p.View()
	found := 0
	for node, r := range fact.AgentOf.Each(v) {
		q := p.On(node)
		if r.Err != nil {
			q.Unknown(fact.AgentOf.ID(), r.Err)
			continue
		}
		rep := diag.Report{Subject: "node/" + node, Proof: []fact.Named{fact.AgentOf}}
		switch r.Value.Life {
		case fact.Down, fact.Unready:
			found++
			rep.Severity = diag.Error
			rep.Message = fmt.Sprintf("the agent is %s%s%s. Nothing serves new or changed Services here",
				r.Value.Life, podWords(r.Value), because(r.Value.Reason)+waitsFor(v.On(node), r.Value))
			rep.Next = logsOf(r.Value)
			q.Find(agentDown, rep)
		case fact.Up:
			unhealthy(q, v.On(node), rep)
		case fact.Unwanted:
			unserved(q, v.On(node), rep)
		}
	}
	fromDaemonSet(p, found)
	return nil
}

// unhealthy warns of an agent that answers and says itself that it fails.
func unhealthy(p *diag.Pass, v *fact.View, rep diag.Report) {
	st, _ := fact.Status.From(v)
	if st == nil || st.Cilium.State == "" || st.Cilium.State == "Ok" || st.Cilium.State == "Disabled" {
		return
	}
	rep.Severity = diag.Warning
	rep.Message = fmt.Sprintf("the agent runs and says %s: %s. It may not hear of changes to Services", st.Cilium.State, st.Cilium.Message)
	rep.Proof = []fact.Named{fact.Status}
	p.Find(agentDown, rep)
}

// unserved warns of a Linux node that the agents leave out although the cluster
// relies on the replacement, where no kube-proxy is seen either.
func unserved(p *diag.Pass, v *fact.View, rep diag.Report) {
	want, err := fact.WantedMode.From(v)
	proxy, _ := fact.KubeProxy.From(v)
	nodes, _ := fact.Nodes.From(v)
	linux := slices.ContainsFunc(nodes, func(n corev1.Node) bool {
		return n.Name == p.Node() && n.Labels[corev1.LabelOSStable] == "linux"
	})
	if err != nil || want.Mode != agent.ModeTrue || proxy.Running == fact.Yes || !linux {
		return
	}
	rep.Severity = diag.Warning
	rep.Message = "the agents' DaemonSet leaves this node out, KPR is wanted, and no kube-proxy is seen here: who serves Services on this node is not known"
	rep.Proof = []fact.Named{fact.AgentSets, fact.Nodes}
	p.Find(agentDown, rep)
}

// fromDaemonSet tells of agents that are not ready on nodes that the evidence
// does not name: a snapshot may hold the DaemonSet and not all pods.
func fromDaemonSet(p *diag.Pass, found int) {
	sets, err := fact.AgentSets.From(p.View())
	if err != nil {
		return
	}
	for _, ds := range sets {
		want, ready := int(ds.Status.DesiredNumberScheduled), int(ds.Status.NumberReady)
		if want-ready <= found {
			continue
		}
		p.Find(agentDown, diag.Report{
			Subject:  "daemonset/" + ds.Namespace + "/" + ds.Name,
			Severity: diag.Error,
			Message:  fmt.Sprintf("%d of %d agents ready in the cluster: nodes without one get no new or changed Services", ready, want),
			Next:     []string{"kubectl", "get", "pods", "-n", ds.Namespace, "-o", "wide", "-l", "k8s-app=cilium"},
			Proof:    []fact.Named{fact.AgentSets},
		})
	}
}

func podWords(a fact.AgentState) string {
	if a.Pod == "" {
		return ""
	}
	return " (pod " + a.Pod + ")"
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// waitsFor names the address that a hanging container "config" dials: it fetches
// the configuration from the API server and says nothing while it cannot.
func waitsFor(v *fact.View, a fact.AgentState) string {
	api, err := fact.APIServer.From(v)
	if a.Hangs != "config" || err != nil {
		return ""
	}
	return ", it waits for the API server at " + api.String()
}

func logsOf(a fact.AgentState) []string {
	ns, pod, ok := a.PodName()
	if !ok {
		return nil
	}
	return []string{"kubectl", "logs", "-n", ns, pod, "--all-containers", "--tail=20"}
}
