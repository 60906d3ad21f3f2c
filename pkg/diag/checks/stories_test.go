package checks_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/checks"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

var update = flag.Bool("update", false, "write what the stories give as what they want")

// A story is a snapshot in a txtar file, testdata/stories/RULE/KIND-WORDS.txtar,
// with a file "want" that says what the check of that rule makes of it. Its
// kind is fires, silent or unknown.

type story struct {
	rule, kind, path string
	result           diag.Result
	got, want        string
}

// TestStories runs every story and compares.
func TestStories(t *testing.T) {
	for _, s := range tell(t) {
		t.Run(s.rule+"/"+filepath.Base(s.path), func(t *testing.T) {
			if diff := cmp.Diff(s.want, s.got); diff != "" {
				t.Errorf("run with -update if this is right (-want +got):\n%s", diff)
			}
			fired := slices.ContainsFunc(s.result.Findings, func(f diag.Finding) bool { return f.Rule.Name == s.rule || s.result.Check.Name == s.rule })
			switch {
			case s.kind == "fires" && !fired:
				t.Error("a story of kind fires, and the rule does not fire")
			case s.kind == "silent" && (fired || s.result.Outcome == diag.Unknown):
				t.Errorf("a story of kind silent ends in %s", s.result.Outcome)
			case s.kind == "unknown" && len(s.result.Gaps) == 0:
				t.Error("a story of kind unknown has no gap")
			}
		})
	}
}

// TestStoriesAreComplete holds that each rule has a story of each kind, that
// checks read no more than they declare, and that each need is read in a story.
func TestStoriesAreComplete(t *testing.T) {
	kinds := map[string]bool{}
	reads := map[string][]fact.ID{}
	for _, s := range tell(t) {
		kinds[s.rule+"/"+s.kind] = true
		reads[s.result.Check.Name] = append(reads[s.result.Check.Name], s.result.Reads...)
	}
	for _, c := range checks.All() {
		for _, r := range c.Rules {
			for _, kind := range []string{"fires", "silent", "unknown"} {
				if !kinds[r.Name+"/"+kind] {
					t.Errorf("rule %s has no story of kind %s", r.Name, kind)
				}
			}
		}
		declared := map[fact.ID]bool{}
		for _, f := range c.Facts() {
			declared[f.ID()] = true
		}
		for _, id := range reads[c.Name] {
			if !declared[id] {
				t.Errorf("check %s reads %s and does not declare it", c.Name, id)
			}
		}
		for _, f := range c.Facts() {
			if !slices.Contains(reads[c.Name], f.ID()) {
				t.Errorf("check %s declares %s, and no story reads it", c.Name, f.ID())
			}
		}
	}
}

// TestDeclarations holds what every check has to say of itself.
func TestDeclarations(t *testing.T) {
	names := map[string]bool{}
	for _, c := range checks.All() {
		if err := c.Valid(); err != nil {
			t.Error(err)
		}
		if names[c.Name] {
			t.Errorf("two checks are named %s", c.Name)
		}
		names[c.Name] = true
	}
}

func tell(t *testing.T) []story {
	t.Helper()
	paths, err := filepath.Glob("testdata/stories/*/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	var out []story
	for _, path := range paths {
		s := story{path: path, rule: filepath.Base(filepath.Dir(path))}
		s.kind, _, _ = strings.Cut(filepath.Base(path), "-")
		// A folder is named after a rule or, where several checks share one, after
		// the check.
		i := slices.IndexFunc(checks.All(), func(c *diag.Check) bool { return c.Name == s.rule })
		if i < 0 {
			i = slices.IndexFunc(checks.All(), func(c *diag.Check) bool {
				return slices.ContainsFunc(c.Rules, func(r *diag.Rule) bool { return r.Name == s.rule })
			})
		}
		if i < 0 {
			t.Fatalf("%s: no check has rule %s", path, s.rule)
		}
		s.run(t, checks.All()[i])
		out = append(out, s)
	}
	return out
}

func (s *story) run(t *testing.T, c *diag.Check) {
	t.Helper()
	archive, err := txtar.ParseFile(s.path)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, f := range archive.Files {
		if f.Name == "want" {
			s.want = string(f.Data)
			continue
		}
		write(t, filepath.Join(dir, f.Name), f.Data)
	}
	src, err := source.OpenSnapshot(dir)
	if err != nil {
		t.Fatalf("%s: %v", s.path, err)
	}
	run, err := diag.Do(context.Background(), src, diag.Selection{}, []*diag.Check{c})
	if err != nil {
		t.Fatalf("%s: %v", s.path, err)
	}
	s.result = run.Results[0]
	s.got = lines(s.result)
	if *update && s.got != s.want {
		i := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == "want" })
		if i < 0 {
			archive.Files = append(archive.Files, txtar.File{Name: "want"})
			i = len(archive.Files) - 1
		}
		archive.Files[i].Data = []byte(s.got)
		write(t, s.path, txtar.Format(archive))
		s.want = s.got
	}
}

func lines(r diag.Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "outcome: %s\n", r.Outcome)
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%s %s %s: %s\n", f.Severity, f.Rule.Name, f.Subject, f.Message)
	}
	for _, g := range r.Gaps {
		fmt.Fprintf(&b, "gap %s: %s, %s\n", g.Node, g.What, g.Class)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "note %s\n", n)
	}
	return b.String()
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}
