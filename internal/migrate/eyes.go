package migrate

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/stage"
)

// Looking is Eyes of a running cluster: each look asks the nodes anew.
type Looking struct {
	Open func() (source.Source, error)
}

// See asks the nodes' agents.
func (l Looking) See(ctx context.Context, nodes []string) (map[string]Seen, error) {
	src, err := l.Open()
	if err != nil {
		return nil, err
	}
	if c, ok := src.(io.Closer); ok {
		defer func() { _ = c.Close() }()
	}
	facts := append(stage.Facts(), fact.APIServer)
	run, err := diag.Do(ctx, src, diag.Selection{Nodes: nodes}, nil, slices.Compact(facts)...)
	if err != nil {
		return nil, err
	}
	out := map[string]Seen{}
	for _, n := range nodes {
		out[n] = seen(run.Store.Cluster().On(n))
	}
	return out, nil
}

func seen(v *fact.View) Seen {
	stand := stage.StandOf(v)
	s := Seen{Missing: stand.Missing, Said: Want{Mode: string(stand.Mode)}}
	switch stand.Proxy {
	case fact.Yes:
		s.Proxy = "yes"
	case fact.No:
		s.Proxy = "no"
	}
	status, err := fact.Status.From(v)
	if status == nil {
		if s.Missing == nil {
			s.Missing = fmt.Errorf("the agent's status: %w", err)
		}
		return s
	}
	s.Said.Masquerade, s.Said.HostRouting = status.Masquerade.Mode, status.HostRouting
	if api, err := fact.APIServer.From(v); err == nil {
		s.Said.APIServer = api.String()
	}
	return s
}
