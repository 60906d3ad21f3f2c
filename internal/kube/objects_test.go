package kube

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// TestObjects lists a custom resource by its preferred version, over two pages,
// and tells a resource that is not there from one that may not be read.
func TestObjects(t *testing.T) {
	answers := map[string]any{
		"/apis": metav1.APIGroupList{Groups: []metav1.APIGroup{{
			Name: "argoproj.io", PreferredVersion: metav1.GroupVersionForDiscovery{GroupVersion: "argoproj.io/v1alpha1", Version: "v1alpha1"},
		}}},
		"/apis/argoproj.io/v1alpha1": metav1.APIResourceList{APIResources: []metav1.APIResource{{Name: "applications", Kind: "Application", Namespaced: true}, {Name: "rollouts", Kind: "Rollout"}}},
	}
	page := func(name, next string) map[string]any {
		return map[string]any{
			"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationList", "metadata": map[string]any{"continue": next},
			"items": []any{map[string]any{"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": map[string]any{"name": name, "namespace": "argocd"}}},
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		var answer any
		switch {
		case r.URL.Path == "/apis/argoproj.io/v1alpha1/applications" && r.URL.Query().Get("continue") == "":
			answer = page("one", "more")
		case r.URL.Path == "/apis/argoproj.io/v1alpha1/applications":
			answer = page("two", "")
		case r.URL.Path == "/apis/argoproj.io/v1alpha1/rollouts":
			w.WriteHeader(http.StatusForbidden)
			answer = metav1.Status{Status: "Failure", Reason: metav1.StatusReasonForbidden, Code: 403, Message: "no"}
		case answers[r.URL.Path] != nil:
			answer = answers[r.URL.Path]
		default:
			w.WriteHeader(http.StatusNotFound)
			answer = metav1.Status{Status: "Failure", Reason: metav1.StatusReasonNotFound, Code: 404}
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	defer server.Close()
	c, err := New(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	note := func(u *unstructured.Unstructured) error {
		got = append(got, u.GetNamespace()+"/"+u.GetName())
		return nil
	}
	if err := c.Objects(context.Background(), "applications.argoproj.io", "", note); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"argocd/one", "argocd/two"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for resource, want := range map[string]error{"backups.velero.io": source.ErrAbsent, "other.argoproj.io": source.ErrAbsent, "rollouts.argoproj.io": source.ErrForbidden} {
		if err := c.Objects(context.Background(), resource, "", note); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", resource, err, want)
		}
	}
}
