package live

import (
	"context"
	"fmt"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/internal/cilium"
	"github.com/kubectl-kpr/kubectl-kpr/internal/evidence"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// drops watches the drops of a node for as long as the options say, beside
// whatever else the node is asked. That the time is over is its good end.
func (s *Source) drops(ctx context.Context, on cilium.Agent, q source.Query) (source.Artifact, error) {
	if s.options.Drops <= 0 {
		return source.Artifact{Query: q}, fmt.Errorf("not watched, --drops does: %w", source.ErrAbsent)
	}
	ask, _ := cilium.AskFor(q.Topic)
	item, _ := evidence.Of(q.Topic)
	item.Timeout = s.options.Drops
	ctx, cancel := context.WithTimeout(ctx, s.options.Drops+10*time.Second)
	defer cancel()
	one := question{q, ask, item, nil}
	replies, _ := s.attempt(ctx, on, []question{one})
	if out := &replies[0].out; out.ended && out.code == 124 && ask.Endless {
		out.code = 0
	}
	a, err := replies[0].artifact(one)
	a.Origin = fmt.Sprintf("%s, for %s", a.Origin, s.options.Drops)
	return a, err
}
