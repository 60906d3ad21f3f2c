package cli

import (
	"context"
	"errors"

	"github.com/kubectl-kpr/kubectl-kpr/internal/kube"
	"github.com/kubectl-kpr/kubectl-kpr/internal/live"
	"github.com/kubectl-kpr/kubectl-kpr/internal/probe"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/report"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/request"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/trace"
)

// beside makes requests on the paths of the trace and puts them into its
// document. It only execs in agents: a pod whose network namespace cannot be
// entered is not known here, and the command probe has other ways.
func (l *tracing) beside(ctx context.Context, src source.Source, done *diag.Run, target trace.Target, from trace.Client, d *report.Document, failOn diag.Severity) error {
	agents, ok := src.(*live.Source)
	if !ok || from.Kind == trace.OutsideClient {
		return errors.New("--probe: a request from outside has to be made outside; name a pod or node with --from")
	}
	config, err := l.app.flags.ToRESTConfig()
	if err != nil {
		return err
	}
	reader, err := kube.New(config)
	if err != nil {
		return err
	}
	who := []string{probe.AllNodes}
	switch from.Kind {
	case trace.PodClient:
		who = []string{"pod/" + from.Namespace + "/" + from.Name}
	case trace.NodeClient:
		who = []string{"node/" + from.Name}
	}
	clients, err := probe.Clients(ctx, struct {
		*kube.Client
		*live.Source
	}{reader, agents}, who, from.Namespace)
	if err != nil {
		return err
	}
	p := &probe.Prober{Agents: agents, Policies: reader, Now: l.app.env.Now, Concurrency: l.from.concurrency, Watch: true}
	v := done.Store.Cluster()
	tried := &request.Probe{Target: target.String(), Tries: 3}
	for _, c := range clients {
		t, err := probe.Trace(v, target, c)
		if err != nil {
			continue // of a node that was left out by --node
		}
		tried.Paths = append(tried.Paths, probe.Paths(v, t, c, probe.Wish{Remote: true})...)
	}
	tried.Paths, tried.More = probe.Bound(tried.Paths, 2000)
	if err := p.Run(ctx, tried.Paths, clients); err != nil {
		return err
	}
	probe.Blame(ctx, reader, tried.Paths)
	d.Beside(tried, failOn)
	return nil
}
