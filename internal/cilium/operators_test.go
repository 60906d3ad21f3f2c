package cilium

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestOperators(t *testing.T) {
	pod := func(name string, labels map[string]string, c corev1.Container) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "kube-system", Labels: labels}, Spec: corev1.PodSpec{NodeName: "n1", HostNetwork: true, Containers: []corev1.Container{c}}}
	}
	told := corev1.Container{Name: OperatorContainer, Env: []corev1.EnvVar{{Name: "KUBERNETES_SERVICE_HOST", Value: "172.30.0.11"}, {Name: "KUBERNETES_SERVICE_PORT", Value: "6443"}}}
	chart := pod("cilium-operator-7d9f4c6b8-x2v5k", map[string]string{"io.cilium/app": "operator", "pod-template-hash": "7d9f4c6b8"}, told)
	chart.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "cilium-operator-7d9f4c6b8"}}
	chart.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: OperatorContainer, LastTerminationState: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{Message: "a line\nlevel=fatal \x1b[31mmsg=\"no route to host\"\n"}}}}
	ref := pod("b", map[string]string{"name": "cilium-operator"}, corev1.Container{Name: OperatorContainer, Env: []corev1.EnvVar{{Name: "KUBERNETES_SERVICE_HOST",
		ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "api"}}}}}})
	leaving := pod("c", chart.Labels, told)
	leaving.DeletionTimestamp = &metav1.Time{}
	got := Operators([]corev1.Pod{ref, leaving, chart, pod("d", chart.Labels, corev1.Container{Name: "other"}), pod("e", map[string]string{"app": "x"}, told)})
	want := []Operator{
		{Namespace: "kube-system", Pod: "b", Node: "n1", HostNetwork: true, Host: "(ConfigMap api)"},
		{Namespace: "kube-system", Pod: "cilium-operator-7d9f4c6b8-x2v5k", Node: "n1", Deployment: "cilium-operator", HostNetwork: true,
			Host: "172.30.0.11", Port: "6443", Ended: `level=fatal  [31mmsg="no route to host"`},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
