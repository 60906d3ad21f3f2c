package residue

import (
	"context"
	"fmt"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/internal/plan"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/stage"
)

// Candidate is a node that was asked for, and where it stands.
type Candidate struct {
	Input
	Stand stage.Stand
}

// Candidates asks where nodes stand.
func Candidates(ctx context.Context, src source.Source, sel diag.Selection) ([]Candidate, error) {
	run, err := diag.Do(ctx, src, sel, nil, append(stage.Facts(), fact.Nodes)...)
	if err != nil {
		return nil, err
	}
	v := run.Store.Cluster()
	var out []Candidate
	for _, n := range v.Nodes() {
		at := v.On(n.Name)
		out = append(out, Candidate{Input{Node: n.Name, Kubelet: fact.KubeletShares(at)}, stage.StandOf(at)})
	}
	return out, nil
}

// Stops are the reasons not to touch nodes, none of which can be accepted: a
// node needs kube-proxy's rules unless it is proven that it does not.
func Stops(all []Candidate) []plan.Stop {
	var stops []plan.Stop
	for _, c := range all {
		switch {
		case c.Stand.Apart, c.Stand.Stage == 2:
		case c.Stand.Missing != nil:
			stops = append(stops, plan.Stop{Unknown: true, Message: fmt.Sprintf("node %s: %s: %v", c.Node, c.Stand.Words, c.Stand.Missing)})
		default:
			stops = append(stops, plan.Stop{Message: fmt.Sprintf("node %s: %s", c.Node, c.Stand.Words)})
		}
	}
	return stops
}

// Judge is the error of stops, nil for none. It has them all, one a line.
func Judge(stops []plan.Stop) error {
	if len(stops) == 0 {
		return nil
	}
	class := plan.ErrUnverified
	var lines []string
	for _, s := range stops {
		if !s.Unknown {
			class = plan.ErrRefused
		}
		lines = append(lines, "  "+s.Message)
	}
	const many = 10
	if more := len(lines) - many; more > 0 {
		lines = append(lines[:many], fmt.Sprintf("  +%d more", more))
	}
	return fmt.Errorf("%w: it must be proven that a node does without kube-proxy (KPR True, kube-proxy not running), and it is not:\n%s", class, strings.Join(lines, "\n"))
}

// ReadyBy asks a node anew where it stands.
func ReadyBy(src source.Source) func(context.Context, string) error {
	return func(ctx context.Context, node string) error {
		fresh, ok := src.Again()
		if !ok {
			return fmt.Errorf("node %s cannot be asked again: %w", node, plan.ErrUnverified)
		}
		all, err := Candidates(ctx, fresh, diag.Selection{Nodes: []string{node}})
		if err != nil {
			return fmt.Errorf("%w: %w", plan.ErrUnverified, err)
		}
		return Judge(Stops(all))
	}
}
