package migrate

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/internal/checkpoint"
	"github.com/kubectl-kpr/kubectl-kpr/internal/plan"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/report"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/stage"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/exec"
)

// Asking makes the gates of a plan: the same checkpoints that verify shows.
type Asking struct {
	Inputs  *Inputs
	Open    func() (source.Source, error)
	Options checkpoint.Options // its Stage is set here
	Now     func() time.Time
	// Exec runs an argv in the agent of a node.
	Exec func(ctx context.Context, node string, argv []string, s exec.Streams) (int, error)
	// Command runs a check of the operator's.
	Command func(ctx context.Context, argv []string) error
}

// Gate is the question whether the cluster stands at a stage. The one that
// opens the plan also asks what matters only before the first change.
func (a *Asking) Gate(number int, opens bool) plan.Gate {
	return func(ctx context.Context) (plan.GateResult, error) {
		var g plan.GateResult
		want, err := stage.Of(number)
		if err != nil {
			return g, err
		}
		src, err := a.Open()
		if err != nil {
			return g, err
		}
		o := a.Options
		o.Stage, o.Report.Now = want, a.Now()
		answer, err := checkpoint.Ask(ctx, src, o)
		if err != nil {
			return g, fmt.Errorf("%w: %w", plan.ErrUnverified, err)
		}
		g = stops(answer.Document)
		if opens {
			a.before(ctx, answer.Document, &g)
		}
		for _, c := range a.Inputs.Checks {
			if err := a.Command(ctx, c.Argv); err != nil {
				g.Stops = append(g.Stops, plan.Stop{Rule: "check", Message: "your check " + c.Name + " failed: " + err.Error()})
			}
		}
		return g, nil
	}
}

// stops are the errors and gaps of a report.
func stops(d *report.Document) plan.GateResult {
	var g plan.GateResult
	for _, f := range d.Findings {
		where := f.Subject
		if f.Node != "" && f.Subject != "node/"+f.Node {
			where += " on " + f.Node
		}
		text := where + ": " + f.Message
		switch {
		case f.Rule == "incomplete":
		case f.Severity == "error":
			g.Stops = append(g.Stops, plan.Stop{Rule: f.Rule, Message: text})
		case f.Severity == "warning":
			g.Notes = append(g.Notes, f.Rule+": "+text)
		}
	}
	for _, x := range d.Gaps {
		where := x.Node
		if where == "" {
			where = "cluster"
		}
		g.Stops = append(g.Stops, plan.Stop{Rule: "incomplete", Message: where + ": " + x.What + ": " + x.Reason, Unknown: true})
	}
	return g
}

// before asks what has to hold before the first change.
func (a *Asking) before(ctx context.Context, d *report.Document, g *plan.GateResult) {
	if a.Inputs.Driver.Kind == "helm" {
		for _, f := range d.Findings {
			if f.Rule == "release-owner" && f.Severity == "info" {
				g.Stops = append(g.Stops, plan.Stop{Rule: f.Rule, Message: f.Message + "; use --driver emit"})
			}
		}
	}
	t := a.Inputs.Target
	if t.APIHost == "" {
		return
	}
	for _, node := range a.Inputs.Nodes {
		if why, unknown := a.reach(ctx, node, t.APIHost, t.APIPort); why != "" {
			g.Stops = append(g.Stops, plan.Stop{Rule: "apiserver-addr", Message: node + ": " + net.JoinHostPort(t.APIHost, t.APIPort) + ": " + why, Unknown: unknown})
		}
	}
}

// reach connects from the node's own network, where the agent will. The host
// and the port are words of an argv, and no shell reads them.
func (a *Asking) reach(ctx context.Context, node, host, port string) (why string, unknown bool) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	var errs bytes.Buffer
	code, err := a.Exec(ctx, node, []string{"timeout", "-k", "2", "5", "bash", "-c", `exec 3<>"/dev/tcp/$1/$2"`, "kpr", host, port}, exec.Streams{Stderr: &errs})
	switch {
	case err != nil:
		return "could not be tried: " + err.Error(), true
	case code == 124 || code == 137:
		return "no answer within 5s", false
	case code != 0:
		said := strings.TrimSpace(errs.String())
		if i := strings.LastIndex(said, ": "); i >= 0 {
			said = said[i+2:]
		}
		return "does not answer: " + said, false
	}
	return "", false
}
