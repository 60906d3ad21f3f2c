package render

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/report"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// document has 40 nodes of which three stand out, a finding on most of them, and
// names that try to do harm.
func document() *report.Document {
	d := &report.Document{
		SchemaVersion: report.SchemaVersion, Command: "status", Tool: "test",
		Time:   time.Date(2026, 12, 1, 6, 0, 0, 0, time.UTC),
		Source: source.About{Kind: "cluster", Name: "prod", Server: "https://10.0.0.1:6443", Version: "v1.34.3"},
		Cilium: []string{"1.20.2"}, Gaps: []report.Gap{}, Notes: []string{}, Checks: []report.Check{{Name: "kpr-mode", Outcome: "found", Rules: []string{"kpr-mode"}}},
		Verdict:   report.Verdict{Outcome: report.Found, ExitCode: 2, Text: "KPR is active on 37 of 40 nodes", FailOn: "error", Errors: 3},
		NodeCount: 40,
	}
	for i := range 40 {
		n := report.Node{Name: fmt.Sprintf("n%02d", i), Agent: report.Agent{State: "running", Health: "Ok"},
			KPR: &report.KPR{Mode: "True"}, KubeProxy: report.KubeProxy{Running: "no"}, APIServer: "10.0.0.1:6443"}
		if i < 3 {
			n.KPR.Mode = "False"
			d.Findings = append(d.Findings, report.Finding{
				Key: "k" + n.Name, Rule: "kpr-mode", Severity: "error", Subject: "node/" + n.Name, Node: n.Name,
				Message: "no replacement is active \x1b[31m節点\u202e", Next: []string{"kubectl", "kpr", "exec", n.Name, "--", "sh", "-c", "it's"},
				Evidence: []fact.Ref{{Topic: source.Status, Node: n.Name, Origin: "cilium-dbg status -o json"}},
			})
		}
		d.Nodes = append(d.Nodes, n)
	}
	return d
}

func draw(t *testing.T, d *report.Document, o Options) string {
	t.Helper()
	var b strings.Builder
	if err := Document(&b, d, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTextSaysItOnceAndCaps(t *testing.T) {
	out := draw(t, document(), Options{Format: "text"})
	for _, want := range []string{
		"prod · https://10.0.0.1:6443 · Kubernetes v1.34.3 · Cilium 1.20.2 · 40 nodes · 2026-12-01T06:00:00Z\n",
		"✗ KPR is active on 37 of 40 nodes\n",
		"KPR mode    True           37 of 40\n            ! False        n00, n01, n02\n",
		"✗ error kpr-mode  n00, n01, n02\n",
		`next:  kubectl kpr exec n00 -- sh -c 'it'\''s'`,
		"More: kubectl kpr explain kpr-mode\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("missing %q in:\n%s", want, out)
		}
	}
	if n := strings.Count(out, "no replacement is active"); n != 1 {
		t.Errorf("the message stands there %d times", n)
	}
	if strings.ContainsAny(out, "\x1b\u202e") {
		t.Errorf("control characters came through:\n%q", out)
	}
	if out := draw(t, document(), Options{Format: "text", Quiet: true}); strings.Count(out, "\n") != 1 {
		t.Errorf("quiet is one line: %q", out)
	}
}

func TestTextCapsSubjects(t *testing.T) {
	d := document()
	d.Findings = nil
	for i := range 14 {
		d.Findings = append(d.Findings, report.Finding{Rule: "r", Severity: "error", Subject: fmt.Sprintf("service/a/s%d", i), Message: fmt.Sprintf("m%d", i)})
	}
	out := draw(t, d, Options{})
	if !strings.Contains(out, "r +4 more (-o wide)") || strings.Contains(out, "m10") {
		t.Errorf("14 subjects:\n%s", out)
	}
	if out := draw(t, d, Options{Format: "wide"}); !strings.Contains(out, "m13") || strings.Contains(out, "more (-o wide)") {
		t.Errorf("wide is capped:\n%s", out)
	}
}

// TestWidth holds that nothing is wider than the terminal but commands, which
// are there to be copied, and table columns that cannot be folded.
func TestWidth(t *testing.T) {
	d := document()
	d.Findings[0].Message = strings.Repeat("wörter 節点 ", 40)
	for _, columns := range []int{40, 80, 200} {
		for _, line := range strings.Split(draw(t, d, Options{Width: columns}), "\n") {
			if width(line) > columns && !strings.Contains(line, "next:") {
				t.Errorf("%d columns: %d in %q", columns, width(line), line)
			}
		}
	}
}

func TestColourOnlyRepeats(t *testing.T) {
	plain, colour := draw(t, document(), Options{}), draw(t, document(), Options{Color: true})
	for _, code := range []string{"31", "32", "33", "35", "36", "1", "0"} {
		colour = strings.ReplaceAll(colour, "\x1b["+code+"m", "")
	}
	if diff := cmp.Diff(plain, colour); diff != "" {
		t.Error(diff)
	}
}

func TestASCII(t *testing.T) {
	d := document()
	d.Findings = nil
	for _, r := range draw(t, d, Options{ASCII: true}) {
		if r > 126 {
			t.Fatalf("%q in ASCII output", r)
		}
	}
}

func TestJSONIsTheDocument(t *testing.T) {
	want := document()
	var got report.Document
	if err := json.Unmarshal([]byte(draw(t, want, Options{Format: "json"})), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(*want, got); diff != "" {
		t.Error(diff)
	}
}

func TestMarkdownEscapes(t *testing.T) {
	d := document()
	d.Findings[0].Message = "<script>alert(1)</script> | [x](http://y) `z` *b*"
	out := draw(t, d, Options{Format: "markdown"})
	for _, bad := range []string{"<script>", "[x](http", " `z`", " *b*"} {
		if strings.Contains(out, bad) {
			t.Errorf("%q is not escaped:\n%s", bad, out)
		}
	}
}

func TestEveryFormat(t *testing.T) {
	for _, f := range Formats() {
		if slices.Contains(templates, f) {
			continue // they need a template, and have tests of their own
		}
		if draw(t, document(), Options{Format: f}) == "" {
			t.Errorf("%s is empty", f)
		}
	}
	if err := Document(&strings.Builder{}, document(), Options{Format: "xml"}); err == nil {
		t.Error("an unknown format was drawn")
	}
}

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{"a b": "'a b'", "$(x)": "'$(x)'", "ok-1.2/x": "ok-1.2/x", "": "''", "it's": `'it'\''s'`} {
		if got := quote([]string{in}); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}
