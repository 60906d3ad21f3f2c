package distro

import (
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestOf(t *testing.T) {
	for want, n := range map[string]corev1.Node{
		"":        {Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.34.3", OSImage: "Debian GNU/Linux 12"}}},
		"k3s":     {ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"k3s.io/node-args": "[]", "kubeadm.alpha.kubernetes.io/cri-socket": "x"}}},
		"RKE2":    {Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.33.1+rke2r1"}}},
		"k0s":     {Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.31.2+k0s"}}},
		"Talos":   {Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.30.3", OSImage: "Talos (v1.7.5)"}}},
		"EKS":     {Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.31.2-eks-94953ac"}}},
		"GKE":     {Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.31.2-gke.1000"}}},
		"AKS":     {ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"kubernetes.azure.com/cluster": "x"}}},
		"kOps":    {ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"kops.k8s.io/instancegroup": "nodes"}}},
		"kind":    {ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"kubeadm.alpha.kubernetes.io/cri-socket": "x"}}, Spec: corev1.NodeSpec{ProviderID: "kind://docker/kind/kind-worker"}},
		"kubeadm": {ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"kubeadm.alpha.kubernetes.io/cri-socket": "x"}}},
	} {
		d := Of(&n)
		if d.Name != want || (d.Because == "") != (want == "") {
			t.Errorf("%q: %+v", want, d)
		}
	}
	for _, d := range All() {
		if d.Name == "" || d.Proxy == "" || d.Stop == "" || d.Return == "" {
			t.Errorf("half a distribution: %+v", d)
		}
	}
}

func TestSwitched(t *testing.T) {
	for text, want := range map[string][2]bool{
		`["server","--disable-kube-proxy"]`:                               {true, false},
		`["server","--disable-kube-proxy","true","--disable","traefik"]`:  {true, false},
		`["server","--disable-kube-proxy","disable-cloud-controller"]`:    {true, false},
		`["server","--disable-kube-proxy=false"]`:                         {false, false},
		`["server","--disable","kube-proxy"]`:                             {false, true},
		`["server","--disable=traefik,kube-proxy","--flannel-backend=x"]`: {false, true},
		`["agent"]`: {false, false},
		`not json`:  {false, false},
	} {
		off, byList := Switched(Args(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"k3s.io/node-args": text}}}))
		if [2]bool{off, byList} != want {
			t.Errorf("%s: %t %t, want %v", text, off, byList, want)
		}
	}
}

func TestPageIsFresh(t *testing.T) {
	page, err := os.ReadFile("../../docs/distributions.md")
	if err != nil || string(page) != Markdown() {
		t.Errorf("docs/distributions.md is not what the values say (%v): run `go generate ./internal/distro`", err)
	}
}
