package probe

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/report"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/request"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/trace"
)

// Question is what one probe is asked.
type Question struct {
	Target  trace.Target
	Clients []Client
	Wish    Wish
}

// Answer is what came of it, with the evidence of the trace beside it.
type Answer struct {
	Probe  *request.Probe
	Traces []*trace.Trace // one for each client, in their order
	Run    *diag.Run
	Notes  []string
}

// ErrShared says that the addresses of the Service are wanted in two namespaces,
// so that one alone does not tell who has them.
var ErrShared = errors.New("an address is wanted in two namespaces")

// Ask traces the target for each client and makes the requests. Errors are
// those of the question and of a cluster that does not answer; what goes wrong
// with single paths is theirs.
func (p *Prober) Ask(ctx context.Context, src source.Source, q Question, within string) (*Answer, error) {
	sel := diag.Selection{Within: within}
	for _, c := range q.Clients {
		sel.Nodes = append(sel.Nodes, c.Node)
	}
	facts := append(report.Facts(true), trace.Facts()...)
	done, err := diag.Do(ctx, src, sel, nil, facts...)
	if err != nil {
		return nil, err
	}
	v := done.Store.Cluster()
	if within != "" && trace.Shared(v, q.Target) {
		return nil, ErrShared
	}
	a := &Answer{Run: done, Probe: &request.Probe{Target: q.Target.String(), Tries: p.pace().tries}}
	for _, c := range q.Clients {
		t, err := Trace(v, q.Target, c)
		if err != nil {
			return nil, err
		}
		a.Traces = append(a.Traces, t)
		a.Probe.Paths = append(a.Probe.Paths, Paths(v, t, c, q.Wish)...)
	}
	a.Probe.Paths, a.Probe.More = Bound(a.Probe.Paths, q.Wish.Max)
	if p.Long > 0 {
		a.Probe.Watch, a.Probe.Tries = p.Long, 0
		w := p.Start(ctx, a.Probe.Paths, q.Clients)
		w.Wait()
		if a.Probe.Paths = w.Stop(); ctx.Err() != nil {
			return nil, ctx.Err()
		}
	} else if err := p.Run(ctx, a.Probe.Paths, q.Clients); err != nil {
		return nil, err
	}
	Blame(ctx, p.Policies, a.Probe.Paths)
	return a, nil
}

// Options are the Document's.
type Options struct {
	Tool   string
	Now    time.Time
	FailOn diag.Severity
}

// Document is the answer as a report.
func (a *Answer) Document(o Options) *report.Document {
	d := report.Build(a.Run, report.Options{Command: "probe", Tool: o.Tool, Now: o.Now, FailOn: o.FailOn})
	d.Try(a.Probe, o.FailOn)
	d.Notes = append(d.Notes, a.Notes...)
	if len(a.Probe.Paths) == 0 && len(a.Traces) > 0 {
		d.Verdict.Text = fmt.Sprintf("nothing to dial: %s", a.Traces[0].Verdict.Text)
	}
	return d
}
