package stage_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/checks"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/stage"
)

const fixtures = "../../../test/fixtures/"

func judge(t *testing.T, fixture string, c *diag.Check) diag.Result {
	t.Helper()
	src, err := source.OpenSnapshot(fixtures + fixture)
	if err != nil {
		t.Fatal(err)
	}
	run, err := diag.Do(context.Background(), src, diag.Selection{}, []*diag.Check{c})
	if err != nil {
		t.Fatal(err)
	}
	return run.Results[0]
}

// TestCheckpoint asks recorded clusters for every stage.
func TestCheckpoint(t *testing.T) {
	for _, tc := range []struct {
		fixture string
		want    [4]string // by stage
		stands  int
	}{
		{"lab-kpr", [4]string{"found", "ok", "ok", "ok"}, 2},
		{"lab-kube-proxy-nft", [4]string{"ok", "found", "found", "found"}, 0},
		{"kpr-with-kube-proxy", [4]string{"found", "unknown", "found", "found"}, 1},
		{"lab-agent-down", [4]string{"found", "found", "found", "found"}, 2},
	} {
		for n, want := range tc.want {
			s, err := stage.Of(n)
			if err != nil {
				t.Fatal(err)
			}
			if got := judge(t, tc.fixture, s.Checkpoint(nil)); got.Outcome.String() != want {
				t.Errorf("%s at stage %d: %s, want %s: %+v %+v", tc.fixture, n, got.Outcome, want, got.Findings, got.Gaps)
			}
		}
		s := stage.Undecided()
		judge(t, tc.fixture, s.Checkpoint(nil))
		if s.Number != tc.stands {
			t.Errorf("%s stands at stage %d, want %d", tc.fixture, s.Number, tc.stands)
		}
	}
}

// TestCheckpointUnknown: a node whose agent says nothing is at no stage.
func TestCheckpointUnknown(t *testing.T) {
	s, _ := stage.Of(2)
	r := judge(t, "lab-agent-down", s.Checkpoint(nil))
	if !slices.ContainsFunc(r.Gaps, func(g diag.Gap) bool { return g.Node == "kpr-w1" }) {
		t.Errorf("no gap for the node whose agent is down: %+v", r.Gaps)
	}
}

// TestWeigh holds that a stage turns severities both ways, keeps every finding,
// and leaves alone what it has no word on.
func TestWeigh(t *testing.T) {
	make := func() []diag.Result {
		f := func(rule string, s diag.Severity) diag.Finding {
			return diag.Finding{Rule: &diag.Rule{Name: rule}, Severity: s}
		}
		return []diag.Result{{Findings: []diag.Finding{
			f("kube-proxy-running", diag.Warning), f("config-drift", diag.Warning), f("config-drift", diag.Info), f("backend-stale", diag.Error),
		}}}
	}
	for _, tc := range []struct {
		stage int
		want  []diag.Severity
	}{
		{0, []diag.Severity{diag.Info, diag.Error, diag.Info, diag.Error}},
		{1, []diag.Severity{diag.Info, diag.Error, diag.Info, diag.Error}},
		{2, []diag.Severity{diag.Error, diag.Error, diag.Info, diag.Error}},
		{3, []diag.Severity{diag.Error, diag.Error, diag.Info, diag.Error}},
	} {
		s, _ := stage.Of(tc.stage)
		results := make()
		s.Weigh(results)
		var got []diag.Severity
		for _, f := range results[0].Findings {
			got = append(got, f.Severity)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("stage %d (-want +got):\n%s", tc.stage, diff)
		}
	}
}

// TestWeightsNameRules holds that each weight speaks of a rule that exists,
// once.
func TestWeightsNameRules(t *testing.T) {
	names := map[string]bool{}
	for _, r := range checks.Rules() {
		names[r.Name] = true
	}
	for _, s := range stage.All() {
		seen := map[string]bool{}
		for _, w := range s.Weights {
			if !names[w.Rule] || seen[w.Rule] || w.Why == "" {
				t.Errorf("stage %d: weight of %q: no such rule, or there twice, or without a reason", s.Number, w.Rule)
			}
			seen[w.Rule] = true
		}
	}
}

func TestBaselineReadsWhatItWrote(t *testing.T) {
	b := &stage.Baseline{
		Schema: stage.BaselineSchema, Time: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC), Findings: []string{"a|b"},
		Restarts: map[string]stage.Restart{"n": {Pod: "x/y", Count: 2}},
		Objects:  []stage.Group{{Resource: "nodes", Objects: map[string]stage.Health{"n": {Good: true, Words: "Ready=True"}}}},
	}
	var out bytes.Buffer
	if err := b.Write(&out); err != nil {
		t.Fatal(err)
	}
	got, err := stage.ReadBaseline("x", &out)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b, got); diff != "" {
		t.Errorf("(-wrote +read):\n%s", diff)
	}
	for text, want := range map[string]string{`{"schema":"other"}`: "preflight --save", "hello": "not written by preflight --save"} {
		if _, err := stage.ReadBaseline("x", strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestCompare judges each way in which objects can differ from a baseline.
func TestCompare(t *testing.T) {
	good := func(s string) stage.Health { return stage.Health{Good: true, Words: s} }
	bad := func(s string) stage.Health { return stage.Health{Words: s} }
	before := &stage.Baseline{Time: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC), Objects: []stage.Group{
		{Resource: "externalsecrets.external-secrets.io", Objects: map[string]stage.Health{
			"shop/db": good("Ready=True"), "shop/old": bad("Ready=False"), "shop/kept": good("Ready=True"), "shop/well-now": bad("Ready=False"),
		}},
		{Resource: "applications.argoproj.io", Objects: map[string]stage.Health{"argocd/shop": good("Synced, Healthy")}},
		{Resource: "certificates.cert-manager.io", Absent: true},
		{Resource: "deployments.apps", Unread: "forbidden"},
		{Resource: "nodes", Objects: map[string]stage.Health{"n": good("Ready=True")}},
	}}
	now := []stage.Group{
		{Resource: "externalsecrets.external-secrets.io", Objects: map[string]stage.Health{
			"shop/db": bad("Ready=False (SecretSyncedError)"), "shop/old": bad("Ready=False"), "shop/kept": good("Ready=True"),
			"shop/well-now": good("Ready=True"), "shop/new": bad("Ready=False"),
		}},
		{Resource: "applications.argoproj.io", Objects: map[string]stage.Health{}},
		{Resource: "certificates.cert-manager.io", Objects: map[string]stage.Health{"a/b": bad("Ready=False")}},
		{Resource: "deployments.apps"},
		{Resource: "nodes", Unread: "forbidden"},
	}
	r := judge(t, "lab-kpr", stage.Compare(before, now))
	var got []string
	for _, f := range r.Findings {
		got = append(got, f.Severity.String()+" "+f.Subject+": "+f.Message)
	}
	want := []string{
		"error externalsecrets.external-secrets.io/shop/db: Ready=False (SecretSyncedError); at 2026-12-01T00:00:00Z it was Ready=True",
		"warning externalsecrets.external-secrets.io/shop/new: new since the baseline, and Ready=False",
		"error applications.argoproj.io/argocd/shop: gone; at 2026-12-01T00:00:00Z it was there and Synced, Healthy",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(r.Gaps) != 1 || r.Gaps[0].What != "nodes" {
		t.Errorf("gaps %+v, want one for the nodes that could not be listed", r.Gaps)
	}
	if len(r.Notes) != 1 {
		t.Errorf("notes %q, want one for what the baseline lacks", r.Notes)
	}
}
