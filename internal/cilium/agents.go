package cilium

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// AgentContainer is the name of the agent's container in every version.
const AgentContainer = "cilium-agent"

// Agent is the Cilium agent of one node.
type Agent struct {
	Node, Namespace, Pod, Container, Image string

	Ready   bool
	Running bool   // its container runs, so that it can be asked
	Reason  string // why it does not run, "" if it does
	Init    string // the init container that has not finished, "" if none
	Hangs   bool   // it runs and does not finish

	Restarts int
}

// Why Agents gives nobody. Both are source.ErrAbsent as well.
var (
	ErrNoAgents  error = absence("no Cilium agent")
	ErrAmbiguous error = absence("several DaemonSets run Cilium agents")
)

// absence is a source.ErrAbsent that says it in its own words.
type absence string

// Error is the words.
func (a absence) Error() string { return string(a) }

// Unwrap is source.ErrAbsent.
func (a absence) Unwrap() error { return source.ErrAbsent }

// Agents finds the agent of every node among pods: DaemonSet pods that carry
// Cilium's labels. While a DaemonSet rolls, a node can have two; the one that
// can be asked wins. With a namespace only agents there count.
//
// It fails where there is no agent at all, and where several DaemonSets run
// agents and no namespace chooses between them: ErrNoAgents, ErrAmbiguous.
func Agents(pods []corev1.Pod, namespace string) (map[string]Agent, error) {
	agents, owners := map[string]Agent{}, map[string]bool{}
	best := map[string]*corev1.Pod{}
	for i := range pods {
		pod := &pods[i]
		owner, ok := agentOwner(pod)
		if !ok || namespace != "" && pod.Namespace != namespace {
			continue
		}
		owners[pod.Namespace+"/"+owner] = true
		node := nodeOfPod(pod)
		if node == "" {
			continue
		}
		if old := best[node]; old == nil || compareAgents(pod, old) > 0 {
			best[node] = pod
		}
	}
	if len(owners) == 0 {
		if namespace != "" {
			return nil, fmt.Errorf("namespace %s (--cilium-namespace): %w", namespace, ErrNoAgents)
		}
		return nil, fmt.Errorf("all namespaces: %w", ErrNoAgents)
	}
	if len(owners) > 1 && namespace == "" {
		names := strings.Join(slices.Sorted(maps.Keys(owners)), ", ")
		return nil, fmt.Errorf("%s (choose one with --cilium-namespace): %w", names, ErrAmbiguous)
	}
	for node, pod := range best {
		agents[node] = agentOf(pod, node)
	}
	return agents, nil
}

// agentOwner names the DaemonSet of an agent pod. Pods of recorded evidence
// may have been trimmed down to no containers at all; where there are some,
// one must be the agent, because other workloads wear k8s-app=cilium too.
func agentOwner(pod *corev1.Pod) (string, bool) {
	named := pod.Labels["app.kubernetes.io/name"] == "cilium-agent"
	if !named && pod.Labels["k8s-app"] != "cilium" {
		return "", false
	}
	isAgent := func(c corev1.Container) bool { return c.Name == AgentContainer }
	if !named && len(pod.Spec.Containers) > 0 && !slices.ContainsFunc(pod.Spec.Containers, isAgent) {
		return "", false
	}
	for _, o := range pod.OwnerReferences {
		if o.Kind == "DaemonSet" {
			return o.Name, true
		}
	}
	return "", false
}

// nodeOfPod is the node of a pod, also of one that is not scheduled yet: the
// DaemonSet controller writes the node's name into the pod's affinity.
func nodeOfPod(pod *corev1.Pod) string {
	if pod.Spec.NodeName != "" {
		return pod.Spec.NodeName
	}
	a := pod.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return ""
	}
	for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, f := range term.MatchFields {
			if f.Key == "metadata.name" && f.Operator == corev1.NodeSelectorOpIn && len(f.Values) == 1 {
				return f.Values[0]
			}
		}
	}
	return ""
}

func agentOf(pod *corev1.Pod, node string) Agent {
	a := Agent{Node: node, Namespace: pod.Namespace, Pod: pod.Name, Container: AgentContainer}
	for _, c := range pod.Spec.Containers {
		if c.Name == AgentContainer {
			a.Image = c.Image
		}
	}
	s, told := agentStatus(pod)
	if told {
		a.Ready, a.Restarts = s.Ready && !unready(pod), int(s.RestartCount)
		if a.Image == "" {
			a.Image = s.Image
		}
	}
	if a.Running = agentRuns(pod); a.Running {
		return a
	}
	if init := stuckInit(pod); init != nil {
		a.Init, a.Hangs = init.Name, init.State.Running != nil
		a.Reason = "init container " + init.Name + " " + whyNot(*init)
		return a
	}
	switch {
	case told && (s.State.Waiting == nil || s.State.Waiting.Reason != "PodInitializing"):
		a.Reason = "container " + AgentContainer + " " + whyNot(s)
	default:
		a.Reason = whyPending(pod)
	}
	return a
}

// unready holds where the pod's own condition says so. On a node that is lost
// it is all that changes: the container statuses stay as they were last told.
func unready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionFalse
	})
}

func agentStatus(pod *corev1.Pod) (corev1.ContainerStatus, bool) {
	for _, s := range pod.Status.ContainerStatuses {
		if s.Name == AgentContainer {
			return s, true
		}
	}
	return corev1.ContainerStatus{}, false
}

// agentRuns believes the phase where the container statuses were trimmed.
func agentRuns(pod *corev1.Pod) bool {
	if s, ok := agentStatus(pod); ok {
		return s.State.Running != nil
	}
	return pod.Status.Phase == corev1.PodRunning
}

// compareAgents orders two agent pods of one node by how well they can be
// asked: ready, running, not on its way out, younger.
func compareAgents(a, b *corev1.Pod) int {
	score := func(p *corev1.Pod) int {
		n := 0
		if s, ok := agentStatus(p); ok && s.Ready {
			n += 4
		}
		if agentRuns(p) {
			n += 2
		}
		if p.DeletionTimestamp == nil {
			n++
		}
		return n
	}
	return cmp.Or(cmp.Compare(score(a), score(b)), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// stuckInit finds the first init container that has not done its work. One
// that restarts always is a sidecar and done once it has started.
func stuckInit(pod *corev1.Pod) *corev1.ContainerStatus {
	for i, s := range pod.Status.InitContainerStatuses {
		if t := s.State.Terminated; t != nil && t.ExitCode == 0 || s.Started != nil && *s.Started && s.Ready {
			continue
		}
		return &pod.Status.InitContainerStatuses[i]
	}
	return nil
}

// whyNot says in words why a container has not got on: what it waits for, and
// how it ended the last time.
func whyNot(s corev1.ContainerStatus) string {
	var parts []string
	switch {
	case s.State.Waiting != nil:
		parts = append(parts, "waits"+reasonAndMessage(s.State.Waiting.Reason, s.State.Waiting.Message))
	case s.State.Terminated != nil:
		parts = append(parts, ended(s.State.Terminated))
	case s.State.Running != nil:
		parts = append(parts, "still runs")
	default:
		parts = append(parts, "has no state yet")
	}
	if t := s.LastTerminationState.Terminated; t != nil {
		parts = append(parts, "before that it "+ended(t))
	}
	if s.RestartCount > 0 {
		parts = append(parts, strconv.Itoa(int(s.RestartCount))+" restarts")
	}
	return strings.Join(parts, ", ")
}

func ended(t *corev1.ContainerStateTerminated) string {
	s := "ended with exit code " + strconv.Itoa(int(t.ExitCode))
	if t.Signal != 0 {
		s += " on signal " + strconv.Itoa(int(t.Signal))
	}
	return s + reasonAndMessage(t.Reason, t.Message)
}

func whyPending(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return "pod " + pod.Name + " is not scheduled" + reasonAndMessage(c.Reason, c.Message)
		}
	}
	phase := cmp.Or(string(pod.Status.Phase), "without a phase")
	return "pod " + pod.Name + " is " + phase + reasonAndMessage(pod.Status.Reason, pod.Status.Message)
}

// reasonAndMessage is " (Reason: message)", as far as there is any. A
// termination message can be a whole log; its last line tells most.
func reasonAndMessage(reason, message string) string {
	lines := strings.Split(strings.TrimSpace(message), "\n")
	message = PlainLine(lines[len(lines)-1], 200)
	switch reason = PlainLine(reason, 60); {
	case reason == "" && message == "":
		return ""
	case reason == "" || message == "":
		return " (" + reason + message + ")"
	}
	return " (" + reason + ": " + message + ")"
}

// PlainLine is s as one printable line of at most limit runes, for words that
// a cluster wrote and a terminal shall show.
func PlainLine(s string, limit int) string {
	var b strings.Builder
	n := 0
	for _, r := range strings.TrimSpace(s) {
		if n == limit {
			return b.String() + "…"
		}
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			r = ' '
		}
		b.WriteRune(r)
		n++
	}
	return b.String()
}
