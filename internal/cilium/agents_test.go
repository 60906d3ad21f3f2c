package cilium

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

func agentPod(namespace, owner, name, node string, change ...func(*corev1.Pod)) corev1.Pod {
	p := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"k8s-app": "cilium"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", Name: owner}}},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{
			{Name: "cilium-monitor", Image: "other:1"}, {Name: "cilium-agent", Image: "quay.io/cilium/cilium:v1.20.2"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{
			{Name: "cilium-agent", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}},
	}
	for _, c := range change {
		c(&p)
	}
	return p
}

func TestAgents(t *testing.T) {
	waiting := func(reason, message string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	}
	ended := func(code int32, reason, message string) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: message}}
	}
	status := func(s corev1.ContainerStatus) func(*corev1.Pod) {
		s.Name = "cilium-agent"
		return func(p *corev1.Pod) { p.Status.ContainerStatuses = []corev1.ContainerStatus{s} }
	}
	init := func(ss ...corev1.ContainerStatus) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status = corev1.PodStatus{Phase: corev1.PodPending, InitContainerStatuses: ss,
				ContainerStatuses: []corev1.ContainerStatus{{Name: "cilium-agent", State: waiting("PodInitializing", "")}}}
		}
	}
	yes := true
	tests := []struct {
		name   string
		change func(*corev1.Pod)
		want   Agent // of what differs from a good agent
	}{
		{"good", func(*corev1.Pod) {}, Agent{Ready: true, Running: true}},
		{"runs, not ready", status(corev1.ContainerStatus{RestartCount: 3, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}),
			Agent{Running: true, Restarts: 3}},
		{"crash loop", status(corev1.ContainerStatus{RestartCount: 7, State: waiting("CrashLoopBackOff", "back-off 5m0s"),
			LastTerminationState: ended(1, "Error", "long\nlog\x1b[31m\nlevel=fatal msg=\"no device\"\n")}),
			Agent{Restarts: 7, Reason: `container cilium-agent waits (CrashLoopBackOff: back-off 5m0s), before that it ended with exit code 1 (Error: level=fatal msg="no device"), 7 restarts`}},
		{"init hangs", init(corev1.ContainerStatus{Name: "config", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}, corev1.ContainerStatus{Name: "mount-cgroup", State: waiting("PodInitializing", "")}),
			Agent{Init: "config", Hangs: true, Reason: "init container config still runs"}},
		{"init fails after a sidecar and a finished one", init(corev1.ContainerStatus{Name: "proxy", Ready: true, Started: &yes, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
			corev1.ContainerStatus{Name: "config", Ready: true, State: ended(0, "Completed", "")},
			corev1.ContainerStatus{Name: "mount-bpf-fs", RestartCount: 1, State: ended(2, "Error", "")}),
			Agent{Init: "mount-bpf-fs", Reason: "init container mount-bpf-fs ended with exit code 2 (Error), 1 restarts"}},
		{"not scheduled", func(p *corev1.Pod) {
			p.Spec.NodeName = ""
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"n1"}}}}}}}}
			p.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "Insufficient cpu"}}}
		}, Agent{Reason: "pod c1 is not scheduled (Unschedulable: Insufficient cpu)"}},
		{"evicted", func(p *corev1.Pod) { p.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted"} },
			Agent{Reason: "pod c1 is Failed (Evicted)"}},
		{"trimmed", func(p *corev1.Pod) { p.Spec.Containers, p.Status.ContainerStatuses = nil, nil }, Agent{Running: true, Image: "-"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := tt.want
			want.Node, want.Namespace, want.Pod, want.Container = "n1", "kube-system", "c1", "cilium-agent"
			if want.Image = "quay.io/cilium/cilium:v1.20.2"; tt.want.Image == "-" {
				want.Image = ""
			}
			got, err := Agents([]corev1.Pod{agentPod("kube-system", "cilium", "c1", "n1", tt.change)}, "")
			if d := cmp.Diff(map[string]Agent{"n1": want}, got); d != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, d)
			}
		})
	}
}

// A node that is lost changes only the pod's condition.
func TestAgentsOfALostNode(t *testing.T) {
	p := agentPod("kube-system", "cilium", "a", "n1")
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning,
		Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}},
		ContainerStatuses: []corev1.ContainerStatus{{Name: AgentContainer, Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}}
	got, err := Agents([]corev1.Pod{p}, "")
	if a := got["n1"]; err != nil || a.Ready || !a.Running {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestAgentsChoosesOnePodOfANode(t *testing.T) {
	old := agentPod("kube-system", "cilium", "a-old", "n1", func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} })
	starting := agentPod("kube-system", "cilium", "b-new", "n1", func(p *corev1.Pod) { p.Status = corev1.PodStatus{Phase: corev1.PodPending} })
	ready := agentPod("kube-system", "cilium", "c-new", "n1")
	for _, tt := range []struct {
		pods []corev1.Pod
		want string
	}{
		{[]corev1.Pod{old, starting}, "a-old"}, {[]corev1.Pod{starting, old}, "a-old"},
		{[]corev1.Pod{old, ready}, "c-new"}, {[]corev1.Pod{ready, old}, "c-new"},
	} {
		if got, err := Agents(tt.pods, ""); err != nil || got["n1"].Pod != tt.want {
			t.Errorf("%s and %s: %q, %v, want %q", tt.pods[0].Name, tt.pods[1].Name, got["n1"].Pod, err, tt.want)
		}
	}
}

func TestAgentsInstallations(t *testing.T) {
	here, there := agentPod("kube-system", "cilium", "a", "n1"), agentPod("cilium-test", "cilium", "b", "n2")
	if _, err := Agents([]corev1.Pod{here, there}, ""); !errors.Is(err, source.ErrAbsent) ||
		!strings.Contains(err.Error(), "cilium-test/cilium, kube-system/cilium") || !strings.Contains(err.Error(), "--cilium-namespace") {
		t.Errorf("two installations: %v", err)
	}
	if got, err := Agents([]corev1.Pod{here, there}, "cilium-test"); err != nil || len(got) != 1 || got["n2"].Pod != "b" {
		t.Errorf("chosen by namespace: %v %v", got, err)
	}
	bare := agentPod("default", "x", "c", "n3", func(p *corev1.Pod) { p.OwnerReferences = nil })
	other := agentPod("default", "x", "d", "n3", func(p *corev1.Pod) { p.Spec.Containers = p.Spec.Containers[:1] })
	envoy := agentPod("kube-system", "cilium-envoy", "e", "n3", func(p *corev1.Pod) { p.Labels["k8s-app"] = "cilium-envoy" })
	for _, ns := range []string{"", "nowhere"} {
		if _, err := Agents([]corev1.Pod{bare, other, envoy}, ns); !errors.Is(err, source.ErrAbsent) || !errors.Is(err, ErrNoAgents) {
			t.Errorf("no agent in %q: %v", ns, err)
		}
	}
}

func TestPlainLine(t *testing.T) {
	for in, want := range map[string]string{" a\tb\x1b[1mc\n": "a b [1mc", "äöü€": "äöü…", "\xff": "", "": ""} {
		limit := 20
		if in == "äöü€" {
			limit = 3
		}
		if got := PlainLine(in, limit); strings.TrimSpace(got) != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
