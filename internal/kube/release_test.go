package kube

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// TestHelmRelease lists metadata, reads the newest revision and no other
// Secret.
func TestHelmRelease(t *testing.T) {
	var asked []string
	refuse := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.Path)
		w.Header().Set("Content-Type", "application/json")
		switch {
		case refuse:
			w.WriteHeader(http.StatusForbidden)
			_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: metav1.StatusReasonForbidden, Code: 403, Message: "secrets is forbidden"})
		case strings.HasSuffix(r.URL.Path, "/secrets"):
			if !strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadataList") {
				t.Errorf("list asks for %q: the data of Secrets is not wanted", r.Header.Get("Accept"))
			}
			list := metav1.PartialObjectMetadataList{}
			if r.URL.Query().Get("labelSelector") == "name=cilium,owner=helm,status=deployed" {
				for _, v := range []string{"2", "10", "9"} {
					list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "sh.helm.release.v1.cilium.v" + v, Labels: map[string]string{"version": v}}})
				}
			}
			_ = json.NewEncoder(w).Encode(list)
		default:
			s := corev1.Secret{TypeMeta: metav1.TypeMeta{Kind: "Secret", APIVersion: "v1"}, Data: map[string][]byte{"release": []byte("x")}}
			_ = json.NewEncoder(w).Encode(s)
		}
	}))
	t.Cleanup(server.Close)
	c, err := New(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	data, path, err := c.HelmRelease(t.Context(), "kube-system", "cilium")
	if err != nil || string(data) != "x" || path != "/api/v1/namespaces/kube-system/secrets/sh.helm.release.v1.cilium.v10" {
		t.Errorf("%q from %s: %v", data, path, err)
	}
	if len(asked) != 2 || asked[1] != "GET "+path {
		t.Errorf("asked %v", asked)
	}
	if _, _, err := c.HelmRelease(t.Context(), "kube-system", "other"); !errors.Is(err, source.ErrAbsent) {
		t.Errorf("no such release: %v", err)
	}
	refuse = true
	if _, _, err := c.HelmRelease(t.Context(), "kube-system", "cilium"); !errors.Is(err, source.ErrForbidden) {
		t.Errorf("refused: %v", err)
	}
}
