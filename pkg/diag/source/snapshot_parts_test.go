package source_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source/sourcetest"
)

// TestParts reads a topic that lies in several files, whole or in parts.
func TestParts(t *testing.T) {
	dir := t.TempDir()
	for name, data := range map[string]string{
		"n1/healthcheck-31000.txt":   "HTTP/1.1 200 OK\n",
		"n1/healthcheck-30000.txt":   "HTTP/1.1 503 x",
		"n1/healthcheck-.txt":        "no name",
		"n1/healthcheck-30000.json":  "{}",
		"n10/healthcheck-30000.txt":  "another node\n",
		"n2/healthcheck.txt":         "# file: healthcheck-1.txt\n",
		"n2/healthcheck-30000.txt":   "the whole comes first\n",
		"n3/status.txt":              "",
		"n4/healthcheck-30000.txt/x": "a folder\n",
	} {
		path := filepath.Join(dir, "nodes", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := source.OpenSnapshot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	var qs []source.Query
	for _, n := range []string{"n1", "n2", "n3", "n4"} {
		qs = append(qs, source.Query{Topic: source.HealthChecks, Node: n})
	}
	got := map[string]string{}
	for q, a := range sourcetest.Collect(t, s, qs) {
		got[q.Node] = string(a.Artifact.Data)
		if a.Err != nil {
			if !errors.Is(a.Err, source.ErrAbsent) {
				t.Error(a.Err)
			}
			continue
		}
		got[q.Node] += "from " + a.Artifact.Origin
	}
	want := map[string]string{
		"n1": "# file: healthcheck-30000.txt\nHTTP/1.1 503 x\n# file: healthcheck-31000.txt\nHTTP/1.1 200 OK\nfrom nodes/n1/healthcheck-30000.txt and 1 more of the kind",
		"n2": "# file: healthcheck-1.txt\nfrom nodes/n2/healthcheck.txt",
		"n3": "", "n4": "",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"nodes/n1/healthcheck-.txt", "nodes/n1/healthcheck-30000.json", "nodes/n4/healthcheck-30000.txt/x"}, s.Unknown()); diff != "" {
		t.Errorf("unknown files: -want +got:\n%s", diff)
	}
}

// TestTooManyParts refuses rather than answer with some of them.
func TestTooManyParts(t *testing.T) {
	dir := t.TempDir()
	node := filepath.Join(dir, "nodes", "n1")
	if err := os.MkdirAll(node, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range 5001 {
		if err := os.WriteFile(filepath.Join(node, fmt.Sprintf("healthcheck-%d.txt", i+1)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := source.OpenSnapshot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	q := source.Query{Topic: source.HealthChecks, Node: "n1"}
	if a := sourcetest.Collect(t, s, []source.Query{q})[q]; !errors.Is(a.Err, source.ErrCut) || a.Artifact.Data != nil {
		t.Errorf("%d bytes, error %v", len(a.Artifact.Data), a.Err)
	}
}
