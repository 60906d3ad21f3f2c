package act

import (
	"context"
	"fmt"

	"github.com/kubectl-kpr/kubectl-kpr/internal/probe"
	"github.com/kubectl-kpr/kubectl-kpr/internal/probe/guest"
)

// all probes every kind of frontend.
func (r *probing) all(ctx context.Context) error {
	failOn, err := r.output.Validate()
	if err != nil {
		return err
	}
	sel, err := r.nodes.Selection()
	if err != nil {
		return err
	}
	s, err := r.open("")
	if err != nil {
		return err
	}
	defer r.cluster.Clear()
	s.prober.Ephemeral = nil // many pods are tried, and none of them was named
	looking, cancel := context.WithTimeout(ctx, r.cluster.Deadline()+r.budget())
	defer cancel()
	q := probe.MatrixQuestion{Nodes: sel.Nodes, Wish: r.wish()}
	if r.deploy {
		work, err := r.workload(looking, s)
		if work != nil {
			defer func() {
				if err := work.Remove(ctx); err != nil {
					_, _ = fmt.Fprintf(r.share.Env().ErrOut, "kubectl kpr: %v; remove it with kubectl delete namespace %s\n", err, work.Namespace)
				}
			}()
		}
		if err != nil {
			return err
		}
		q.Only = work.Namespace
	}
	answer, err := s.prober.Matrix(looking, s.Source, s.Client, q)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return err
	}
	r.cluster.Clear()
	return r.output.Write(r.share, answer.Document(r.options(failOn)))
}

// workload makes pods and Services of its own, after asking. What it returns
// has to be removed, also with an error.
func (r *probing) workload(ctx context.Context, s *session) (*guest.Workload, error) {
	config, err := r.share.Config()
	if err != nil {
		return nil, err
	}
	nodes, err := s.Nodes(ctx)
	if err != nil && len(nodes) == 0 {
		return nil, err
	}
	var names []string
	for _, n := range nodes {
		if n.Reason == "" {
			names = append(names, n.Name)
		}
	}
	work, err := guest.NewWorkload(config, s.AgentImage(ctx, r.image), r.share.Env().Now)
	if err != nil {
		return nil, err
	}
	if err := r.consent(ctx, work.Words(names)); err != nil {
		return nil, err
	}
	return work, work.Deploy(ctx, names)
}
