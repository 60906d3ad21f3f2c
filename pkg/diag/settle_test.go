package diag_test

import (
	"context"
	"testing"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source/sourcetest"
)

var passing = &diag.Rule{Name: "passing", Title: "t", Doc: "d", Remedy: "r", Settles: true}

// shortVersions finds nodes whose version is short, a fault that may pass.
func shortVersions() *diag.Check {
	c := check(func(p *diag.Pass) error {
		if v, _ := version.From(p.View()); v == "short" {
			p.Find(passing, diag.Report{Subject: "node/" + p.Node(), Severity: diag.Error, Message: "m", Proof: []fact.Named{version}})
		}
		return nil
	})
	c.Rules = []*diag.Rule{passing}
	return c
}

func TestSettle(t *testing.T) {
	first := func(next *sourcetest.Memory) *sourcetest.Memory {
		return &sourcetest.Memory{Next: next, Files: map[string]string{"nodes/a/version.txt": "short", "nodes/b/version.txt": "long"}}
	}
	still := &sourcetest.Memory{Files: map[string]string{"nodes/a/version.txt": "short", "nodes/b/version.txt": "short"}}
	gone := &sourcetest.Memory{Files: map[string]string{"nodes/a/version.txt": "long", "nodes/b/version.txt": "short"}}
	blind := &sourcetest.Memory{Files: still.Files, Errors: map[source.Query]error{{Topic: source.Version, Node: "a"}: source.ErrUnreachable}}
	for name, tc := range map[string]struct {
		next    *sourcetest.Memory
		wait    time.Duration
		want    int
		outcome diag.Outcome
		notes   int
	}{
		"it stays":           {still, time.Millisecond, 1, diag.Found, 0},
		"it has passed":      {gone, time.Millisecond, 0, diag.OK, 0},
		"it cannot be seen":  {blind, time.Millisecond, 1, diag.Found, 1},
		"nothing can change": {nil, time.Millisecond, 1, diag.Found, 0},
		"no look was asked":  {gone, 0, 1, diag.Found, 0},
		"the node has gone":  {&sourcetest.Memory{Files: map[string]string{"nodes/b/version.txt": "long"}}, time.Millisecond, 1, diag.Found, 1},
	} {
		t.Run(name, func(t *testing.T) {
			src := first(tc.next)
			run, err := diag.Do(context.Background(), src, diag.Selection{}, []*diag.Check{shortVersions()})
			if err != nil {
				t.Fatal(err)
			}
			run.Settle(context.Background(), src, tc.wait)
			r := run.Results[0]
			if len(r.Findings) != tc.want || r.Outcome != tc.outcome {
				t.Errorf("%d findings, %s", len(r.Findings), r.Outcome)
			}
			if n := len(run.Results[len(run.Results)-1].Notes); n != tc.notes {
				t.Errorf("%d notes", n)
			}
		})
	}
}

func TestSettleEndsWithItsTime(t *testing.T) {
	src := &sourcetest.Memory{Next: &sourcetest.Memory{}, Files: map[string]string{"nodes/a/version.txt": "short"}}
	run, err := diag.Do(context.Background(), src, diag.Selection{}, []*diag.Check{shortVersions()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	run.Settle(ctx, src, time.Hour)
	if len(run.Results[0].Findings) != 1 {
		t.Errorf("%+v", run.Results[0])
	}
}
