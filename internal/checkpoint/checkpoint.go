// Package checkpoint asks a cluster whether it stands where a stage of the
// migration wants it: all checks, weighed by the stage, and the objects of the
// cluster against the baseline. preflight and verify print the answer, and the
// stages of migrate are gated by it.
package checkpoint

import (
	"context"
	"fmt"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/internal/baseline"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/checks"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/report"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/stage"
)

// Options are what is asked.
type Options struct {
	Select diag.Selection
	// Stage is the stage that is wanted; stage.Undecided becomes the one that
	// the cluster stands at.
	Stage stage.Stage
	// Before is what objects are compared with, nil to compare nothing.
	Before *stage.Baseline
	// Objects lists the cluster's objects, nil where there is only recorded
	// evidence. Items are what is listed of them.
	Objects baseline.Lister
	Items   []baseline.Item
	// Settle is after how long to look again at what may pass by itself.
	Settle time.Duration
	// BackupWithin, if positive, demands a backup of Velero no older.
	BackupWithin time.Duration
	Report       report.Options // its Stage and Nodes are set here
}

// Answer is what came of it.
type Answer struct {
	Document *report.Document
	Stage    stage.Stage
	Now      []stage.Group // the objects, nil where they were not listed
	Restarts map[string]stage.Restart
}

// Ask runs all checks and weighs them.
func Ask(ctx context.Context, src source.Source, o Options) (*Answer, error) {
	a := &Answer{Stage: o.Stage}
	if o.Objects != nil && len(o.Items) > 0 {
		var err error
		if a.Now, err = baseline.Settled(ctx, o.Objects, o.Items, o.Before, o.Settle); err != nil {
			return nil, fmt.Errorf("objects of the cluster: %w", err)
		}
	}
	all := append(checks.All(), a.Stage.Checkpoint(o.Before))
	if o.Before != nil && a.Now != nil {
		all = append(all, stage.Compare(o.Before, a.Now))
	}
	if o.BackupWithin > 0 {
		all = append(all, backedUp(ctx, o))
	}
	run, err := diag.Do(ctx, src, o.Select, all, append(report.Facts(true), report.StageFacts()...)...)
	if err != nil {
		return nil, err
	}
	run.Settle(ctx, src, o.Settle)
	a.Stage.Weigh(run.Results)
	o.Report.Nodes, o.Report.Stage = true, &a.Stage
	a.Document = report.Build(run, o.Report)
	if o.Before != nil && a.Now == nil {
		a.Document.Notes = append(a.Document.Notes, "the baseline's objects were not compared: recorded evidence does not hold them")
	}
	a.Restarts = restarts(run.Store.Cluster())
	return a, nil
}

func restarts(v *fact.View) map[string]stage.Restart {
	out := map[string]stage.Restart{}
	for node, r := range fact.AgentOf.Each(v) {
		if r.Err == nil && r.Value.Pod != "" {
			out[node] = stage.Restart{Pod: r.Value.Pod, Count: r.Value.Restarts}
		}
	}
	return out
}

// Baseline is what is worth keeping of the answer.
func (a *Answer) Baseline() *stage.Baseline {
	d := a.Document
	b := &stage.Baseline{
		Schema: stage.BaselineSchema, Time: d.Time, Tool: d.Tool, Source: d.Source, Verdict: d.Verdict.Text,
		Findings: []string{}, Restarts: a.Restarts, Objects: a.Now,
	}
	for _, f := range d.Findings {
		b.Findings = append(b.Findings, f.Key)
	}
	return b
}
