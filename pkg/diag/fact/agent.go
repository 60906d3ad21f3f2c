package fact

import (
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/kubectl-kpr/kubectl-kpr/internal/cilium"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// Facts about the agents.
var (
	// Status is what the agent of a node says of itself.
	Status = Read(source.Status, func(a source.Artifact) (*agent.Status, error) {
		if a.Format == source.JSON {
			return cilium.DecodeStatusJSON(a.Data)
		}
		return cilium.DecodeStatusText(a.Data)
	})
	// Agents are the agent pods by node.
	Agents = Define("agents", false, []Named{Pods}, func(v *View) (map[string]cilium.Agent, error) {
		pods, err := Pods.From(v)
		if err != nil {
			return nil, err
		}
		return cilium.Agents(pods, "")
	})
	// AgentSets are the DaemonSets of Cilium agents.
	AgentSets = Define("agent-daemonsets", false, []Named{DaemonSets}, func(v *View) ([]appsv1.DaemonSet, error) {
		all, err := DaemonSets.From(v)
		if err != nil {
			return nil, err
		}
		var out []appsv1.DaemonSet
		for _, ds := range all {
			if cilium.IsAgent(ds.Spec.Template.Labels) {
				out = append(out, ds)
			}
		}
		if len(out) == 0 {
			return nil, fmt.Errorf("no DaemonSet of Cilium agents among %d: %w", len(all), source.ErrAbsent)
		}
		return out, nil
	})
	// AgentWanted tells whether the agents' DaemonSet selects a node.
	AgentWanted = Define("agent-wanted", true, []Named{AgentSets, Nodes}, agentWanted)
	// AgentOf is what is known of a node's agent as a pod and as a process.
	AgentOf = Define("agent", true, []Named{Agents, AgentWanted, Status, Nodes}, agentOf)
)

// Life is the state of a node's agent.
type Life uint8

// The states of an agent.
const (
	LifeUnknown Life = iota
	Up               // it answers, or its pod is ready
	Unready          // its pod runs and is not ready, and it was not heard
	Down             // there should be one, and none runs
	Unwanted         // the DaemonSet does not select the node
)

// String is the state in a word.
func (l Life) String() string {
	return [...]string{"unknown", "running", "not ready", "down", "not wanted"}[l]
}

// AgentState is a node's agent.
type AgentState struct {
	Life     Life
	Pod      string // namespace/name, "" if no pod was seen
	Restarts int
	Reason   string // why it is not Up, in words
	Hangs    string // the init container that runs and does not finish, "" if none
}

// PodName splits Pod; false if no pod was seen.
func (a AgentState) PodName() (namespace, name string, ok bool) { return strings.Cut(a.Pod, "/") }

// nodeLost says in the node's own words why it is not ready, "" if it is.
func nodeLost(v *View) string {
	nodes, _ := Nodes.From(v)
	for _, n := range nodes {
		if n.Name != v.Node() {
			continue
		}
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
				return strings.TrimSuffix("the node is NotReady: "+strings.TrimSuffix(c.Message, "."), ": ")
			}
		}
	}
	return ""
}

func agentWanted(v *View) (bool, error) {
	sets, err := AgentSets.From(v)
	if err != nil {
		return false, err
	}
	nodes, err := Nodes.From(v)
	if err != nil {
		return false, err
	}
	for _, n := range nodes {
		if n.Name != v.Node() {
			continue
		}
		for _, ds := range sets {
			if yes, err := selects(&ds, &n); yes || err != nil {
				return yes, err
			}
		}
		return false, nil
	}
	return false, fmt.Errorf("node %s: %w among the Node objects", v.Node(), source.ErrAbsent)
}

// selects follows the DaemonSet controller as far as labels and affinity go.
// Taints are left out: agents tolerate all of them by default.
func selects(ds *appsv1.DaemonSet, n *corev1.Node) (bool, error) {
	pod := &corev1.Pod{Spec: ds.Spec.Template.Spec}
	yes, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(n)
	if err != nil {
		return false, fmt.Errorf("daemonset %s/%s: node affinity: %w", ds.Namespace, ds.Name, err)
	}
	return yes, nil
}

func agentOf(v *View) (AgentState, error) {
	var st AgentState
	agents, podErr := Agents.From(v)
	if errors.Is(podErr, cilium.ErrNoAgents) {
		podErr = nil // the list was read, and there is none
	}
	wanted, wantErr := AgentWanted.From(v)
	status, statusErr := Status.From(v)

	pod, seen := agents[v.Node()]
	if seen {
		st.Pod, st.Restarts, st.Reason = pod.Namespace+"/"+pod.Pod, pod.Restarts, pod.Reason
		if pod.Hangs {
			st.Hangs = pod.Init
		}
	}
	// A running cluster knows more than the pod: the last line of the log.
	if why := v.Source().Reason; why != "" {
		st.Reason = why
	}
	switch {
	case status != nil, seen && pod.Ready && !errors.Is(statusErr, source.ErrAgentDown):
		st.Life, st.Reason = Up, ""
	case errors.Is(statusErr, source.ErrAgentDown):
		st.Life = Down
		if st.Reason == "" {
			st.Reason = statusErr.Error()
		}
	case seen && pod.Running:
		st.Life = Unready
		if why := nodeLost(v); why != "" {
			st.Reason = why
		}
	case seen:
		st.Life = Down
	case podErr == nil && wantErr == nil && !wanted:
		st.Life, st.Reason = Unwanted, "the agents' DaemonSet does not select this node"
	case podErr == nil && wantErr == nil:
		st.Life, st.Reason = Down, "there is no agent pod on this node"
	case podErr != nil:
		return st, podErr
	default:
		return st, fmt.Errorf("agent of %s: no pod seen, and whether one is wanted is not known: %w", v.Node(), wantErr)
	}
	return st, nil
}
