package monitor

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
)

func names() *Names {
	port := int32(8080)
	return NewNames(
		[]corev1.Service{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: corev1.ServiceSpec{ClusterIPs: []string{"10.96.0.9"}, Ports: []corev1.ServicePort{{Port: 80}}}}},
		[]discoveryv1.EndpointSlice{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
			Ports:      []discoveryv1.EndpointPort{{Port: &port}},
			Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{"10.0.1.5"}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: "web-1"}}},
		}},
		[]corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "w-1"}, Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Address: "172.30.0.12"}}}}},
	)
}

func event(kind agent.EventKind, from, to string) agent.Event {
	return agent.Event{Kind: kind, From: netip.MustParseAddrPort(from), To: netip.MustParseAddrPort(to), Protocol: "tcp", Flags: "SYN"}
}

// TestRecords: addresses get the names that the API knows, others are looked
// up once, and strangers outside never.
func TestRecords(t *testing.T) {
	n := names()
	asked := 0
	n.Find = func(_ context.Context, ip netip.Addr) string {
		asked++
		if ip.String() == "10.0.2.7" {
			return "pod/shop/client"
		}
		return ""
	}
	target := Target{Pod: "shop/web-1", Node: "w-1"}
	denied := event(agent.Verdict, "10.0.2.7:4000", "10.0.1.5:8080")
	denied.Action, denied.Direction, denied.Match, denied.Remote = "deny", "ingress", "none", "remote-node"
	dropped := event(agent.Dropped, "10.0.2.7:4000", "10.0.1.5:8080")
	dropped.Reason = "Policy denied"
	sum := NewSum()
	var got []string
	for _, e := range []agent.Event{
		denied, dropped, event(agent.Traced, "8.8.8.8:53", "10.0.1.5:8080"), event(agent.Traced, "172.30.0.12:7", "10.96.0.9:80"),
		event(agent.Dropped, "[fe80::1]:0", "[ff02::2]:0"), {Kind: agent.Lost, Count: 3},
	} {
		r := n.Name(t.Context(), target, e, time.Time{})
		sum.Add(r)
		got = append(got, r.Word()+" "+r.Says())
	}
	want := []string{
		"DENY ingress: 10.0.2.7:4000 (pod/shop/client) -> 10.0.1.5:8080 (pod/shop/web-1) tcp SYN, matched none, the other end is remote-node, backend of shop/web",
		"DROP Policy denied: 10.0.2.7:4000 (pod/shop/client) -> 10.0.1.5:8080 (pod/shop/web-1) tcp SYN, backend of shop/web",
		"packet : 8.8.8.8:53 -> 10.0.1.5:8080 (pod/shop/web-1) tcp SYN, backend of shop/web",
		"packet : 172.30.0.12:7 (node/w-1) -> 10.96.0.9:80 (svc/shop/web) tcp SYN",
		"DROP : fe80::1 -> ff02::2 tcp SYN",
		"lost the monitor could not keep up: 3 events are missing",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if asked != 1 {
		t.Errorf("%d look-ups, want one for the one unknown address of the cluster", asked)
	}
	if sum.Missing != 3 || sum.Events != 5 || len(sum.Denied) != 2 {
		t.Errorf("%+v: what a kernel sends to its neighbours must not count", sum)
	}
}

type lister map[string][]map[string]any

func (l lister) Objects(_ context.Context, resource, _ string, each func(*unstructured.Unstructured) error) error {
	for _, o := range l[resource] {
		if err := each(&unstructured.Unstructured{Object: o}); err != nil {
			return err
		}
	}
	return nil
}

// TestPolicies finds those that select the pod, in all spellings of a label.
func TestPolicies(t *testing.T) {
	policy := func(name, field string, labels map[string]any) map[string]any {
		return map[string]any{"metadata": map[string]any{"name": name}, "spec": map[string]any{field: map[string]any{"matchLabels": labels}}}
	}
	l := lister{
		"networkpolicies.networking.k8s.io": {policy("all", "podSelector", map[string]any{}), policy("other", "podSelector", map[string]any{"app": "x"})},
		"ciliumnetworkpolicies.cilium.io": {
			policy("typed", "endpointSelector", map[string]any{"k8s:app": "web"}), policy("nodes", "nodeSelector", map[string]any{}),
			{"metadata": map[string]any{"name": "several"}, "specs": []any{map[string]any{"endpointSelector": map[string]any{"matchLabels": map[string]any{"any:app": "web"}}}}},
		},
	}
	got, all := Policies(t.Context(), l, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Labels: map[string]string{"app": "web"}}})
	if diff := cmp.Diff([]string{"cnp/several", "cnp/typed", "networkpolicy/all"}, got); diff != "" || !all {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestTargets: pods without an endpoint are refused with what to do instead.
func TestTargets(t *testing.T) {
	for want, p := range map[string]corev1.Pod{
		"on no node yet":    {},
		"on its node's":     {Spec: corev1.PodSpec{NodeName: "w", HostNetwork: true}},
		"it has ended":      {Spec: corev1.PodSpec{NodeName: "w"}, Status: corev1.PodStatus{Phase: corev1.PodSucceeded}},
		"it has no address": {Spec: corev1.PodSpec{NodeName: "w"}},
	} {
		if _, err := TargetOf(&p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	got, err := TargetOf(&corev1.Pod{Spec: corev1.PodSpec{NodeName: "w"}, Status: corev1.PodStatus{PodIPs: []corev1.PodIP{{IP: "10.0.0.1"}, {IP: "fd00::1"}}}})
	if err != nil || len(got.IPs) != 2 {
		t.Errorf("%+v %v", got, err)
	}
}
