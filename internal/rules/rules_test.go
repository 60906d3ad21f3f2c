package rules

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPagesAreFresh holds that docs/rules is what the rules say, and nothing
// else.
func TestPagesAreFresh(t *testing.T) {
	const dir = "../../docs/rules"
	pages := Pages()
	for name, want := range pages {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("docs/rules/%s is not what the rule says (%v): run `go generate ./internal/rules`", name, err)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if _, ok := pages[f.Name()]; !ok {
			t.Errorf("docs/rules/%s is of no rule: run `go generate ./internal/rules`", f.Name())
		}
	}
}

// TestEveryRuleCanBeExplained holds what a reader needs at night: a meaning, a
// way to prove it, a thing to do, and what is read for it.
func TestEveryRuleCanBeExplained(t *testing.T) {
	for _, e := range All() {
		if e.Title == "" || e.Doc == "" || e.Remedy == "" {
			t.Errorf("%s: title, doc or remedy is missing", e.Name)
		}
		if len(e.Proof) == 0 && e.Check != nil {
			t.Errorf("%s: no way to prove it by hand", e.Name)
		}
		if e.Check != nil && len(e.Reads) == 0 {
			t.Errorf("%s: nothing is read", e.Name)
		}
		if strings.HasSuffix(e.Title, ".") {
			t.Errorf("%s: the title ends in a period", e.Name)
		}
	}
}

func TestFind(t *testing.T) {
	for name, want := range map[string]string{"backend-stale": "backend-stale", "BACKEND_STALE": "backend-stale", "nothing": ""} {
		if e, ok := Find(name); ok != (want != "") || ok && e.Name != want {
			t.Errorf("%s: %v", name, e.Rule)
		}
	}
	for name, want := range map[string]string{"backend-stael": "backend-stale", "stale": "backend-stale", "kpr": "kpr-mode", "socket-lb": "socketlb"} {
		if near := Near(name); !slices.Contains(near, want) {
			t.Errorf("near %s: %v, want %s among them", name, near, want)
		}
	}
	if near := Near("xyzzy-plugh"); len(near) > 0 {
		t.Errorf("near nothing: %v", near)
	}
}
