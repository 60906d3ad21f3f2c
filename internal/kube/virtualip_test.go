package kube

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestVirtualIPKeepsItsAddressAndNoSecret(t *testing.T) {
	spec := corev1.PodSpec{Containers: []corev1.Container{{
		Name: "kube-vip", Image: "ghcr.io/kube-vip/kube-vip:v1.0.1", Command: []string{"SECRET"}, Args: []string{"manager", "--leaderElectionType=etcd", "--token=SECRET"},
		Env:          []corev1.EnvVar{{Name: "address", Value: "172.30.0.100"}, {Name: "bgp_peerpass", Value: "SECRET"}, {Name: "bgp_peers", Value: "172.30.0.1:65000:SECRET:false"}},
		VolumeMounts: []corev1.VolumeMount{{Name: "k", MountPath: "/etc/kubernetes/admin.conf"}},
	}}}
	mirror := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "kube-vip-cp-1", Annotations: map[string]string{corev1.MirrorPodAnnotationKey: "h", lastApplied: "SECRET"}}, Spec: *spec.DeepCopy()}
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "kube-vip-ds"}, Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{Spec: *spec.DeepCopy()}}}
	for _, o := range []Object{mirror, set} {
		if !IsVirtualIP(o) {
			t.Errorf("%T is not kube-vip", o)
		}
		data, err := encode(o)
		if err != nil {
			t.Fatal(err)
		}
		s := string(data)
		for _, want := range []string{"172.30.0.100", "leaderElectionType=etcd", "admin.conf"} {
			if !strings.Contains(s, want) {
				t.Errorf("%T lost %s: %s", o, want, s)
			}
		}
		if strings.Contains(s, "SECRET") {
			t.Errorf("%T kept %s", o, s)
		}
	}
	if IsVirtualIP(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "kube-vip-ds-x7z"}}) || IsVirtualIP(&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "metallb"}}) {
		t.Error("others are kube-vip")
	}
}
