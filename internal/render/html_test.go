package render

import (
	"regexp"
	"strings"
	"testing"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/report"
)

// poisoned puts s wherever a cluster can put text.
func poisoned(s string) *report.Document {
	d := document()
	d.Verdict.Text, d.Source.Name, d.Source.Context, d.Notes = s, s, s, []string{s}
	for i := range d.Nodes {
		d.Nodes[i].Name += s
		d.Nodes[i].APIServer, d.Nodes[i].Agent.Pod = s, s
	}
	for i := range d.Findings {
		f := &d.Findings[i]
		f.Subject, f.Node, f.Message, f.Next = s, s, s, []string{"kubectl", s}
		f.Evidence[0].Origin = s
	}
	d.Gaps = []report.Gap{{What: "status", Node: s, Reason: s, Topic: s, Checks: []string{s}}}
	d.Stage = &report.Stage{Name: s, Wants: s, Stands: []report.Stand{{Words: s, Nodes: []string{s}}}}
	said := s
	d.Settings = &report.Settings{Chart: s, Rows: []report.Setting{{Key: s, ConfigMap: &said, Groups: []report.SettingGroup{{Runs: s, Known: true, Nodes: []string{s}}}}}}
	d.Waived = []report.Waived{{Finding: d.Findings[0], By: s, Reason: s}}
	return d
}

// TestPageIsHarmless: nothing of a cluster becomes part of the page's own
// language, and a browser would load nothing even if it did.
func TestPageIsHarmless(t *testing.T) {
	plain := draw(t, poisoned("x"), Options{Format: "html"})
	tags := regexp.MustCompile(`<[/a-zA-Z!][^>]*>`)
	for _, s := range []string{`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `{{.D}}`, `</style><b>`, `</title><i>`, "\x1b[2J\u202e", `javascript:alert(1)`, "' onclick='x"} {
		out := draw(t, poisoned(s), Options{Format: "html"})
		if got, want := tags.FindAllString(out, -1), tags.FindAllString(plain, -1); strings.Join(got, "") != strings.Join(want, "") {
			t.Errorf("%q changes the tags of the page", s)
		}
		if strings.ContainsAny(out, "\x1b\u202e") {
			t.Errorf("%q: control characters in the page", s)
		}
	}
	for _, want := range []string{"default-src 'none'", `name="referrer" content="no-referrer"`, `<html lang="en">`, `@media print`, `prefers-color-scheme:dark`} {
		if !strings.Contains(plain, want) {
			t.Errorf("%s is not in the page", want)
		}
	}
	for _, never := range []string{"<script", `href="h`, "src=", "@import", "url("} {
		if strings.Contains(plain, never) {
			t.Errorf("%s is in the page", never)
		}
	}
}

// TestPageSaysAll: the page holds what the text form says.
func TestPageSaysAll(t *testing.T) {
	out := draw(t, document(), Options{Format: "html"})
	for _, want := range []string{"KPR is active on 37 of 40 nodes", "37 of 40", "n00, n01, n02", "kpr-mode", "no replacement is active", "cilium-dbg status -o json", "kubectl kpr exec n00"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in the page", want)
		}
	}
}
