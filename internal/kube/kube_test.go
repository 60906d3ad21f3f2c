package kube

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

func pod(labels map[string]string) *corev1.Pod {
	c := corev1.Container{Name: "c", Image: "i", Args: []string{"--token=SECRET"}, Command: []string{"SECRET"},
		Env:     []corev1.EnvVar{{Name: "E", Value: "SECRET"}},
		EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "SECRET"}}}}}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web-1", Namespace: "shop", Labels: labels,
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}},
			Annotations:   map[string]string{lastApplied: "SECRET", "keep": "this"}},
		Spec: corev1.PodSpec{InitContainers: []corev1.Container{c}, Containers: []corev1.Container{c},
			EphemeralContainers: []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon(c)}}},
	}
}

func TestSecretsOfOtherPodsAreDropped(t *testing.T) {
	data, err := encode(pod(nil))
	if err != nil {
		t.Fatal(err)
	}
	if s := string(data); strings.Contains(s, "SECRET") || strings.Contains(s, "managedFields") || !strings.Contains(s, `"keep":"this"`) || !strings.Contains(s, `"image":"i"`) {
		t.Errorf("kept %s", s)
	}
	for _, labels := range []map[string]string{{"k8s-app": "cilium"}, {"app.kubernetes.io/part-of": "cilium"}, {"component": "kube-proxy"}} {
		data, err := encode(pod(labels))
		if err != nil || !strings.Contains(string(data), "--token") || strings.Contains(string(data), lastApplied) {
			t.Errorf("%v: %v: %s", labels, err, data)
		}
	}
}

// Encoding must not reach into what the caller keeps beyond what it says.
func TestReduceWithoutAnnotations(t *testing.T) {
	s := &corev1.Service{}
	if data, err := encode(s); err != nil || !json.Valid(data) || s.Annotations != nil {
		t.Errorf("%s %v %v", data, err, s.Annotations)
	}
}

func TestIsKubeProxyPod(t *testing.T) {
	mirror := map[string]string{corev1.MirrorPodAnnotationKey: "h"}
	for _, tt := range []struct {
		name        string
		labels      map[string]string
		annotations map[string]string
		want        bool
	}{
		{"kube-proxy-x7z", map[string]string{"k8s-app": "kube-proxy"}, nil, true},
		{"anything", map[string]string{"component": "kube-proxy"}, nil, true},
		{"kube-proxy-node1", nil, mirror, true},
		{"kube-proxy-dashboard", nil, nil, false},
		{"etcd-node1", nil, mirror, false},
	} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: tt.name, Labels: tt.labels, Annotations: tt.annotations}}
		if got := IsKubeProxyPod(p); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

func TestClassify(t *testing.T) {
	services := schema.GroupResource{Resource: "services"}
	for name, tt := range map[string]struct{ err, class error }{
		"forbidden":    {apierrors.NewForbidden(services, "", errors.New("no")), source.ErrForbidden},
		"unauthorized": {apierrors.NewUnauthorized("who"), source.ErrForbidden},
		"absent":       {apierrors.NewNotFound(services, "x"), source.ErrAbsent},
		"timeout":      {apierrors.NewTimeoutError("slow", 1), source.ErrUnreachable},
		"anything":     {errors.New("dial tcp: refused"), source.ErrUnreachable},
	} {
		err := Classify("list", "services", tt.err)
		if !errors.Is(err, tt.class) || !errors.Is(err, tt.err) || !strings.HasPrefix(err.Error(), "list services: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if Classify("list", "services", nil) != nil {
		t.Error("no error became one")
	}
}

func TestResources(t *testing.T) {
	for name, path := range map[string]string{
		"services": "/api/v1/services", "daemonsets": "/apis/apps/v1/daemonsets", "ciliumnodeconfigs": "/apis/cilium.io/v2/ciliumnodeconfigs",
	} {
		if r, ok := ResourceOf(name); !ok || r.Path() != path {
			t.Errorf("%s: %s", name, r.Path())
		}
	}
	if _, ok := ResourceOf("secrets"); ok {
		t.Error("secrets can be listed")
	}
}

func TestNewLeavesTheConfigAlone(t *testing.T) {
	c := &rest.Config{Host: "http://127.0.0.1:1", QPS: 3}
	if _, err := New(c); err != nil || c.QPS != 3 || c.ContentType != "" || c.Timeout != 0 {
		t.Errorf("%v, config %+v", err, c)
	}
	if _, err := New(&rest.Config{Host: "::bad::"}); err == nil {
		t.Error("a bad host makes a Client")
	}
}
