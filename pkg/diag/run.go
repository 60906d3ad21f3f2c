package diag

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// Selection narrows a run to some nodes.
type Selection struct {
	Nodes  []string        // names or globs as of path.Match; empty for all
	Labels labels.Selector // nil for all
	// Within narrows load balancing to the Services of a namespace, see
	// fact.Store.
	Within string
	// Sums lets nodes that hold the same send sums of their lists of Services,
	// and asks one of each kind for the lists. For what judges the agreement of
	// layers that is enough.
	Sums bool
}

// Run is a finished run: what was asked, known and found.
type Run struct {
	About   source.About
	Store   *fact.Store
	Results []Result
	Skipped int // nodes that the selection left out
	sums    bool
}

// Do asks src for all that the checks and extra facts declare and judges the
// checks. It fails only where nothing can be said at all.
func Do(ctx context.Context, src source.Source, sel Selection, checks []*Check, extra ...fact.Named) (*Run, error) {
	all, err := src.Nodes(ctx)
	if err != nil && len(all) == 0 {
		return nil, fmt.Errorf("list of nodes: %w", err)
	}
	var partly []Result
	if err != nil { // some nodes are known, others may be missing
		partly = append(partly, unlisted(err))
	}
	nodes, err := sel.choose(ctx, src, all)
	if err != nil {
		return nil, err
	}
	facts := slices.Clone(extra)
	for _, c := range checks {
		facts = append(facts, c.Facts()...)
	}
	store := fact.NewStore(nodes)
	store.Within(sel.Within)
	if err := collect(ctx, src, store, facts, sel.Sums); err != nil {
		return nil, err
	}
	run := &Run{About: src.About(), Store: store, Results: partly, Skipped: len(all) - len(nodes), sums: sel.Sums}
	for _, c := range checks {
		run.Results = append(run.Results, Judge(c, store))
	}
	run.Results = append(run.Results, incomplete(run.Results))
	if n := store.StoodIn(); n > 0 {
		run.note(fmt.Sprintf("%d nodes hold by their sums what one of the other %d holds, and only those sent their lists of Services", n, len(nodes)-n))
	}
	return run, nil
}

// choose applies the selection. A pattern that matches nothing is a mistake of
// the user, and the error names the nodes there are.
func (sel Selection) choose(ctx context.Context, src source.Source, all []source.Node) ([]source.Node, error) {
	keep := slices.Clone(all)
	for _, pattern := range sel.Nodes {
		hit, err := slices.ContainsFunc(all, func(n source.Node) bool { return matches(pattern, n.Name) }), badPattern(pattern)
		if err != nil {
			return nil, err
		}
		if !hit {
			return nil, fmt.Errorf("node %q: not among the %d nodes (%s)", pattern, len(all), someNames(all))
		}
	}
	if len(sel.Nodes) > 0 {
		keep = slices.DeleteFunc(keep, func(n source.Node) bool {
			return !slices.ContainsFunc(sel.Nodes, func(p string) bool { return matches(p, n.Name) })
		})
	}
	if sel.Labels == nil || sel.Labels.Empty() {
		return keep, nil
	}
	store := fact.NewStore(all)
	if err := src.Collect(ctx, store.Queries(fact.Nodes), store.Taker(fact.Nodes)); err != nil {
		return nil, err
	}
	objects, err := fact.Nodes.From(store.Cluster())
	if err != nil {
		return nil, fmt.Errorf("label selector %q: %w", sel.Labels, err)
	}
	chosen := map[string]bool{}
	for _, n := range objects {
		chosen[n.Name] = sel.Labels.Matches(labels.Set(n.Labels))
	}
	keep = slices.DeleteFunc(keep, func(n source.Node) bool { return !chosen[n.Name] })
	if len(keep) == 0 {
		return nil, fmt.Errorf("label selector %q: no node has these labels", sel.Labels)
	}
	return keep, nil
}

func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return err == nil && ok
}

func badPattern(pattern string) error {
	if _, err := path.Match(pattern, ""); err != nil {
		return fmt.Errorf("node pattern %q: %w", pattern, err)
	}
	return nil
}

func someNames(nodes []source.Node) string {
	var names []string
	for i, n := range nodes {
		if i == 8 {
			names = append(names, "…")
			break
		}
		names = append(names, n.Name)
	}
	return strings.Join(names, ", ")
}
