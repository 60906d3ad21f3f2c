package evidence

import (
	"os"
	"strings"
	"testing"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

func TestPageIsFresh(t *testing.T) {
	for name, want := range Pages() {
		page, err := os.ReadFile("../../docs/" + name)
		if err != nil || string(page) != want {
			t.Errorf("docs/%s is not what the table says (%v): run `go generate ./internal/evidence`", name, err)
		}
	}
}

func TestItems(t *testing.T) {
	for _, it := range Items() {
		switch {
		case it.Spec.Recorded:
			if it.Live != "" || len(it.Access) != 0 || it.Needs != "" {
				t.Errorf("%s is read live: %+v", it.Spec.Topic, it)
			}
		case it.Live == "" || len(it.Access) == 0:
			t.Errorf("%s: no way to read it, or it costs nothing: %+v", it.Spec.Topic, it)
		case it.Spec.Node && (it.Cap <= 0 || it.Timeout <= 0):
			t.Errorf("%s: read without bounds", it.Spec.Topic)
		}
		for _, a := range it.Access {
			if !it.Spec.Host && a.Verb != "get" && a.Verb != "list" && !(a.Verb == "create" && a.Subresource == "exec" && a.InCilium) {
				t.Errorf("%s: %s is more than reading", it.Spec.Topic, a)
			}
		}
	}
	for _, a := range ForHost() {
		if !a.InCilium {
			t.Errorf("--host takes %s everywhere", a)
		}
	}
	if _, ok := Of("nonsense"); ok {
		t.Error("nonsense is in the table")
	}
	if it, _ := Of(source.MapsDump); it.Needs != "Cilium 1.18 or later" || it.Live != "cilium-dbg shell -- lb/maps-dump" {
		t.Errorf("maps dump: %+v", it)
	}
}

func TestAll(t *testing.T) {
	var got []string
	for _, a := range All() {
		s := a.String()
		if a.InCilium {
			s += " in cilium"
		}
		got = append(got, s)
	}
	want := "list nodes; list persistentvolumes; list pods; list services; list daemonsets.apps; list ciliumlocalredirectpolicies.cilium.io; list ciliumnodeconfigs.cilium.io; list endpointslices.discovery.k8s.io; " +
		"get configmaps cilium-config in cilium; get configmaps kube-proxy in cilium; get configmaps kubeadm-config in cilium; create pods/exec in cilium; get pods/exec in cilium; get pods/log in cilium"
	if s := strings.Join(got, "; "); s != want {
		t.Errorf("all permissions:\n%s\nwant\n%s", s, want)
	}
}
