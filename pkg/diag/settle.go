package diag

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// Settle looks a second time, after a wait, at findings of rules that settle:
// what a cluster is just about to change may look like a fault. Such a finding
// stays only when the second look has its key again. What the second look could
// not see stays as well, with a note. Where nothing can change, as in a
// snapshot, there is no second look.
func (r *Run) Settle(ctx context.Context, src source.Source, wait time.Duration) {
	checks, nodes := r.unsettled()
	if len(checks) == 0 {
		return
	}
	again, ok := src.Again()
	if !ok {
		r.excuse(src)
		return
	}
	if wait <= 0 {
		return
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		r.note("no second look: the time was up; findings may be changes under way")
		return
	case <-timer.C:
	}
	second, err := Do(ctx, again, Selection{Nodes: nodes, Sums: r.sums}, checks)
	if err != nil {
		r.note(fmt.Sprintf("no second look: %v; findings may be changes under way", err))
		return
	}
	r.keep(second)
}

// mover is a source of one look that knows what changed during it.
type mover interface {
	Moving(subject string) (why string, ok bool)
}

// excuse lowers what may only have been a change under way, where there is no
// second look to tell.
func (r *Run) excuse(src source.Source) {
	m, ok := src.(mover)
	if !ok {
		return
	}
	for i := range r.Results {
		for j := range r.Results[i].Findings {
			f := &r.Results[i].Findings[j]
			if why, ok := m.Moving(f.Subject); ok && f.settles() && f.Severity > Warning {
				f.Severity = Warning
				f.Message += " (" + why + ": it may be no fault)"
			}
		}
	}
}

// unsettled are the checks with findings to look at again, and their nodes;
// none means all.
func (r *Run) unsettled() (checks []*Check, nodes []string) {
	everywhere := false
	for _, res := range r.Results {
		found := false
		for _, f := range res.Findings {
			if !f.settles() {
				continue
			}
			found = true
			everywhere = everywhere || f.Node == ""
			if !slices.Contains(nodes, f.Node) {
				nodes = append(nodes, f.Node)
			}
		}
		if found {
			checks = append(checks, res.Check)
		}
	}
	if everywhere {
		nodes = nil
	}
	return checks, nodes
}

func (f Finding) settles() bool { return f.Rule.Settles && f.Severity > Info }

// keep drops what the second look does not have.
func (r *Run) keep(second *Run) {
	seen := map[string]Finding{}
	blind := map[string]bool{} // check and node that the second look could not judge
	for _, res := range second.Results {
		for _, f := range res.Findings {
			seen[f.Key] = f
		}
		for _, g := range res.Gaps {
			blind[res.Check.Name+"|"+g.Node] = true
		}
	}
	unseen := 0
	for i := range r.Results {
		res := &r.Results[i]
		res.Findings = slices.DeleteFunc(res.Findings, func(f Finding) bool {
			if !f.settles() {
				return false
			}
			if _, ok := seen[f.Key]; ok {
				return false
			}
			if blind[res.Check.Name+"|"+f.Node] || blind[res.Check.Name+"|"] {
				unseen++
				return false
			}
			return true
		})
		for j, f := range res.Findings {
			if again, ok := seen[f.Key]; ok {
				res.Findings[j] = again
			}
		}
		if len(res.Findings) == 0 && res.Outcome == Found {
			res.Outcome = OK
			if len(res.Gaps) > 0 {
				res.Outcome = Unknown
			}
		}
	}
	if unseen > 0 {
		r.note(fmt.Sprintf("%d findings could not be looked at a second time; they may be changes under way", unseen))
	}
}

func (r *Run) note(s string) {
	if len(r.Results) > 0 {
		last := &r.Results[len(r.Results)-1]
		last.Notes = append(last.Notes, s)
	}
}
