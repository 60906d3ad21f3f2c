package live

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-kpr/kubectl-kpr/internal/live/livetest"
)

// An operator is asked for where it sits, at its own address; without one of
// its own it dials the ClusterIP.
func TestOperatorAddresses(t *testing.T) {
	server := livetest.New(t)
	for _, node := range []string{"n1", "n2", "n3", "n4"} {
		server.AddAgent(node, "1.20.2", nil).Unasked = true
	}
	pod := func(node string, hostNetwork bool, env ...corev1.EnvVar) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "cilium-operator-" + node, Namespace: "kube-system", Labels: map[string]string{"io.cilium/app": "operator"}},
			Spec:       corev1.PodSpec{NodeName: node, HostNetwork: hostNetwork, Containers: []corev1.Container{{Name: "cilium-operator", Env: env}}},
		}
	}
	host := func(h string) corev1.EnvVar { return corev1.EnvVar{Name: "KUBERNETES_SERVICE_HOST", Value: h} }
	server.Add(
		pod("n1", true, host("172.30.0.11"), corev1.EnvVar{Name: "KUBERNETES_SERVICE_PORT", Value: "6443"}),
		pod("n2", true), pod("n3", false, host("172.30.0.11")), pod("n4", true, host("$(reboot)")),
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "kubernetes", Namespace: "default", Labels: map[string]string{"component": "apiserver"}},
			Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.1", Ports: []corev1.ServicePort{{Port: 443}}}},
	)
	s := open(t, server, nil)
	r, err := s.roster(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const by = "environment of the operator"
	for node, want := range map[string][]address{
		"n1": {{"172.30.0.11", "6443", by}}, "n2": {{"10.96.0.1", "443", by}}, "n3": nil, "n4": nil, "n5": nil,
	} {
		if diff := cmp.Diff(want, s.operatorAddresses(t.Context(), r, node), cmp.AllowUnexported(address{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", node, diff)
		}
	}
}
