package redact_test

import (
	"context"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/kubectl-kpr/kubectl-kpr/internal/redact"
	"github.com/kubectl-kpr/kubectl-kpr/internal/sysdump"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/checks"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/report"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// recordings are all snapshots of this repository.
func recordings(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, root := range []string{"../../test/fixtures", "../../test/corpus"} {
		entries, err := os.ReadDir(root)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.IsDir() {
				all = append(all, filepath.Join(root, e.Name()))
			}
		}
	}
	if len(all) < 60 {
		t.Fatalf("only %d recordings", len(all))
	}
	return all
}

func queries(t *testing.T, src source.Source) []source.Query {
	t.Helper()
	nodes, _ := src.Nodes(t.Context())
	return source.Everything(nodes)
}

func key(t *testing.T) redact.Key {
	t.Helper()
	k, err := redact.KeyOf([]byte("a key that is for tests alone"))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// open takes snapshots and sysdumps.
func open(t *testing.T, dir string) source.Source {
	t.Helper()
	s, err := sysdump.OpenRecorded(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.(io.Closer).Close() })
	return s
}

func judged(t *testing.T, src source.Source) *report.Document {
	t.Helper()
	run, err := diag.Do(context.Background(), src, diag.Selection{}, checks.All(), report.Facts(true)...)
	if err != nil {
		t.Fatal(err)
	}
	return report.Build(run, report.Options{Command: "check", Now: time.Unix(0, 0), FailOn: diag.Error, Nodes: true})
}

// TestFindings: what is found in a redacted recording is what is found in the
// original, by its other names.
func TestFindings(t *testing.T) {
	for _, dir := range recordings(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			compare(t, dir)
		})
	}
}

// TestStories: the same holds for the stories that checks are tested with.
func TestStories(t *testing.T) {
	paths, err := filepath.Glob("../../pkg/diag/checks/testdata/stories/*/*.txtar")
	if err != nil || len(paths) < 100 {
		t.Fatalf("%d stories: %v", len(paths), err)
	}
	if testing.Short() {
		paths = paths[:20]
	}
	for _, path := range paths {
		t.Run(filepath.Base(filepath.Dir(path))+"/"+filepath.Base(path), func(t *testing.T) {
			story, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			for _, f := range story.Files {
				name := filepath.Join(dir, f.Name)
				if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(name, f.Data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			compare(t, dir)
		})
	}
}

// compare judges a recording twice, as it is and redacted.
func compare(t *testing.T, dir string) {
	t.Helper()
	src := open(t, dir)
	red, err := redact.Of(t.Context(), src, queries(t, src), key(t))
	if err != nil {
		t.Fatal(err)
	}
	before, after := judged(t, src), judged(t, red)
	if d := cmp.Diff(told(before, red.Redactor().Text), told(after, func(s string) string { return s })); d != "" {
		t.Errorf("findings (-redacted words of the original, +found in the redacted one):\n%s", d)
	}
}

// told is what a report says, one line each. Lists in messages are in the order
// of their names, which is another after redaction, so words are sorted.
func told(d *report.Document, rename func(string) string) []string {
	lines := map[string]bool{}
	add := func(kind string, parts ...string) {
		for i, p := range parts {
			words := strings.FieldsFunc(rename(p), func(r rune) bool { return strings.ContainsRune(" ,;()", r) })
			for j := range words {
				words[j] = strings.TrimRight(words[j], ":.")
			}
			slices.Sort(words)
			parts[i] = strings.Join(words, " ")
		}
		lines[kind+" | "+strings.Join(parts, " | ")] = true
	}
	for _, f := range d.Findings {
		if f.Rule == diag.Incomplete.Name {
			f.Message = "" // it lists rules, which are words and no names
		}
		if strings.Contains(f.Message, " more") {
			f.Message = "" // the first of a list are others, in the order of their names
		}
		add("finding "+f.Rule+" "+f.Severity, f.Subject, f.Node, f.Address, f.Message)
	}
	for _, g := range d.Gaps {
		add("gap "+g.What+" "+g.Topic+" "+g.Class, g.Node)
	}
	for _, c := range d.Checks {
		add("check " + c.Name + " " + c.Outcome)
	}
	for _, n := range d.Nodes {
		add("node", n.Name, n.KubeProxy.Running, n.Agent.State, n.Agent.Version, n.APIServer)
	}
	return slices.Sorted(maps.Keys(lines))
}
