package live

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// Collect asks for everything at once: first the lists, then the nodes, then
// Services and EndpointSlices a second time, as they were after the agents
// had answered. Queries that ctx left no time for are answered with an error.
// It fails as a whole only where the API server does not answer at all.
func (s *Source) Collect(ctx context.Context, qs []source.Query, yield func(source.Artifact, error)) error {
	r, err := s.roster(ctx)
	if err != nil {
		return err
	}
	p := partition(qs)
	var mu sync.Mutex
	give := func(a source.Artifact, err error) {
		mu.Lock()
		defer mu.Unlock()
		for range p.times[a.Query] - 1 {
			double := a
			double.Data = bytes.Clone(a.Data)
			yield(double, err)
		}
		yield(a, err)
	}
	for _, q := range p.wrong {
		give(source.Artifact{Query: q}, fmt.Errorf("%s: no topic of that name for a node or the cluster: %w", q.Topic, source.ErrAbsent))
	}
	lists := func(qs []source.Query) {
		each(qs, 4, func(q source.Query) { give(s.cluster(ctx, r, q)) })
	}
	lists(p.lists)
	done := 0
	each(p.nodes, s.concurrency(qs), func(n nodeQueries) {
		s.node(ctx, r, n.node, n.queries, give)
		mu.Lock()
		defer mu.Unlock()
		if done++; s.options.Progress != nil {
			s.options.Progress(done, len(p.nodes))
		}
	})
	lists(p.after)
	return nil
}

// concurrency is how many nodes are asked at a time. Lists of Services are
// megabytes of each node, all of which are held while they are read.
func (s *Source) concurrency(qs []source.Query) int {
	switch {
	case s.options.Concurrency > 0:
		return s.options.Concurrency
	case slices.ContainsFunc(qs, func(q source.Query) bool { return q.Topic == source.ServiceList || q.Topic == source.MapList }):
		return 16
	}
	return 64
}

type nodeQueries struct {
	node    string
	queries []source.Query
}

// parts are the queries of one Collect by when they are asked. One that was
// given twice is asked once and answered twice.
type parts struct {
	lists, after, wrong []source.Query
	nodes               []nodeQueries // sorted
	times               map[source.Query]int
}

func partition(qs []source.Query) parts {
	p := parts{times: map[source.Query]int{}}
	byNode := map[string][]source.Query{}
	for _, q := range qs {
		if p.times[q]++; p.times[q] > 1 {
			continue
		}
		spec, ok := source.SpecOf(q.Topic)
		switch {
		case !ok, spec.Node != (q.Node != ""):
			p.wrong = append(p.wrong, q)
		case spec.Node:
			byNode[q.Node] = append(byNode[q.Node], q)
		case q.Topic == source.ServicesAfter || q.Topic == source.EndpointSlicesAfter:
			p.after = append(p.after, q)
		default:
			p.lists = append(p.lists, q)
		}
	}
	for node, queries := range byNode {
		p.nodes = append(p.nodes, nodeQueries{node, queries})
	}
	slices.SortFunc(p.nodes, func(a, b nodeQueries) int { return strings.Compare(a.node, b.node) })
	return p
}

// each runs do for every item, at most n at a time, and waits for them all.
func each[T any](items []T, n int, do func(T)) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, n)
	for _, item := range items {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			do(item)
		})
	}
	wg.Wait()
}
