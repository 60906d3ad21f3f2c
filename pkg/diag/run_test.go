package diag_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source/sourcetest"
)

var rule = &diag.Rule{Name: "too-short", Title: "t", Doc: "d", Remedy: "r"}

// version needs a version's text on each node and finds those named "short".
var version = fact.Read(source.Version, func(a source.Artifact) (string, error) { return string(a.Data), nil })

func check(run func(*diag.Pass) error) *diag.Check {
	return &diag.Check{Name: "length", Doc: "d", Scope: diag.OfNode, Rules: []*diag.Rule{rule}, Needs: []fact.Named{version}, Run: run}
}

func shortOnes(p *diag.Pass) error {
	if v, _ := version.From(p.View()); v == "short" {
		p.Find(rule, diag.Report{Subject: "node/" + p.Node(), Severity: diag.Error, Message: "m", Proof: []fact.Named{version}})
	}
	return nil
}

func memory() *sourcetest.Memory {
	return &sourcetest.Memory{
		Files: map[string]string{
			"nodes/a/version.txt": "long", "nodes/b/version.txt": "short", "nodes/c/status.txt": "x",
			"nodes.yaml": "kind: List\nitems:\n- metadata: {name: a, labels: {pool: x}}\n- metadata: {name: b}\n- metadata: {name: c, labels: {pool: x}}\n",
		},
		Errors: map[source.Query]error{{Topic: source.Version, Node: "c"}: source.ErrUnreachable},
	}
}

func do(t *testing.T, sel diag.Selection, c *diag.Check) *diag.Run {
	t.Helper()
	run, err := diag.Do(context.Background(), memory(), sel, []*diag.Check{c})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func TestOneBadNodeIsAGapAndTheOthersAreJudged(t *testing.T) {
	run := do(t, diag.Selection{}, check(shortOnes))
	r := run.Results[0]
	if r.Outcome != diag.Found || len(r.Findings) != 1 || len(r.Gaps) != 1 {
		t.Fatalf("%+v", r)
	}
	f, g := r.Findings[0], r.Gaps[0]
	if f.Key != "too-short|node/b|b|" || f.Node != "b" || len(f.Refs) != 1 {
		t.Errorf("%+v", f)
	}
	if g.Node != "c" || g.Class != "unreachable" || g.What != "version" {
		t.Errorf("%+v", g)
	}
	last := run.Results[len(run.Results)-1]
	if last.Check.Name != "incomplete" || len(last.Findings) != 1 || last.Findings[0].Node != "c" {
		t.Errorf("incomplete: %+v", last)
	}
}

func TestOutcomes(t *testing.T) {
	ok := func(*diag.Pass) error { return nil }
	notHere := check(ok)
	notHere.Applies = func(*fact.View) string { return "not here" }
	cluster := &diag.Check{Name: "c", Scope: diag.OfCluster, Rules: []*diag.Rule{rule}, Run: ok}
	for name, tc := range map[string]struct {
		c    *diag.Check
		only []string
		want diag.Outcome
	}{
		"ok":             {check(ok), []string{"a", "b"}, diag.OK},
		"unknown":        {check(ok), nil, diag.Unknown},
		"found wins":     {check(shortOnes), nil, diag.Found},
		"not applicable": {notHere, nil, diag.NotApplicable},
		"of the cluster": {cluster, nil, diag.OK},
		"a check fails":  {check(func(*diag.Pass) error { return errors.New("broken") }), []string{"a"}, diag.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			if got := do(t, diag.Selection{Nodes: tc.only}, tc.c).Results[0].Outcome; got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

func TestNoNodesIsUnknown(t *testing.T) {
	run, err := diag.Do(context.Background(), &sourcetest.Memory{}, diag.Selection{}, []*diag.Check{check(shortOnes)})
	if err != nil || run.Results[0].Outcome != diag.Unknown {
		t.Errorf("%v, %v", run, err)
	}
}

func TestSelection(t *testing.T) {
	pool, _ := labels.Parse("pool=x")
	none, _ := labels.Parse("pool=y")
	for name, tc := range map[string]struct {
		sel  diag.Selection
		want []string
		fail bool
	}{
		"all":      {diag.Selection{}, []string{"a", "b", "c"}, false},
		"name":     {diag.Selection{Nodes: []string{"b"}}, []string{"b"}, false},
		"glob":     {diag.Selection{Nodes: []string{"[ab]"}}, []string{"a", "b"}, false},
		"labels":   {diag.Selection{Labels: pool}, []string{"a", "c"}, false},
		"both":     {diag.Selection{Nodes: []string{"a", "b"}, Labels: pool}, []string{"a"}, false},
		"no name":  {diag.Selection{Nodes: []string{"z"}}, nil, true},
		"bad glob": {diag.Selection{Nodes: []string{"["}}, nil, true},
		"no label": {diag.Selection{Labels: none}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			run, err := diag.Do(context.Background(), memory(), tc.sel, nil)
			if (err != nil) != tc.fail {
				t.Fatal(err)
			}
			if tc.fail {
				return
			}
			var got []string
			for _, n := range run.Store.Cluster().Nodes() {
				got = append(got, n.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if run.Skipped != 3-len(got) {
				t.Errorf("%d left out", run.Skipped)
			}
		})
	}
}

func TestGapsAreMerged(t *testing.T) {
	a, b := check(shortOnes), check(shortOnes)
	b.Name = "other"
	run, err := diag.Do(context.Background(), memory(), diag.Selection{}, []*diag.Check{a, b})
	if err != nil {
		t.Fatal(err)
	}
	gaps := diag.Gaps(run.Results)
	if len(gaps) != 1 || !slices.Equal(gaps[0].Checks, []string{"length", "other"}) {
		t.Errorf("%+v", gaps)
	}
}
