package diag

import (
	"context"
	"slices"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// fewNodes are asked for their lists at once: sums would cost a second round.
const fewNodes = 8

// electRounds is how often another node of a kind is asked for its lists where
// one did not answer.
const electRounds = 3

// collect asks for what the facts need. With sums it asks in two steps: every
// node for sums of its lists, and then one of each kind, and each that is of no
// kind, for the lists.
func collect(ctx context.Context, src source.Source, store *fact.Store, facts []fact.Named, sums bool) error {
	queries, take := store.Queries(facts...), store.Taker(append(facts, fact.LBDigest)...)
	isList := func(q source.Query) bool { return slices.Contains(fact.Digested(), q.Topic) }
	if !sums || len(store.Cluster().Nodes()) <= fewNodes || !slices.ContainsFunc(queries, isList) {
		return src.Collect(ctx, queries, take)
	}
	var first, lists, after []source.Query
	for _, q := range queries {
		switch {
		case isList(q):
			lists = append(lists, q)
		case q.Topic == source.ServicesAfter || q.Topic == source.EndpointSlicesAfter:
			after = append(after, q)
		default:
			first = append(first, q)
		}
	}
	if err := src.Collect(ctx, append(first, store.Queries(fact.LBDigest)...), take); err != nil {
		return err
	}
	asked := map[string]bool{}
	for round := 1; ; round++ {
		twins := store.Twins()
		ask := slices.Clone(lists)
		ask = slices.DeleteFunc(ask, func(q source.Query) bool { return twins[q.Node] != "" || asked[q.Node] })
		for _, q := range ask {
			asked[q.Node] = true
		}
		if err := src.Collect(ctx, append(ask, after...), take); err != nil {
			return err
		}
		store.StandIn(twins)
		if round == electRounds || !store.Dismiss() {
			return nil
		}
		store.StandIn(nil)
	}
}
