package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/stage"
)

// Stage is where a cluster stands on the way from kube-proxy to KPR.
type Stage struct {
	Number  int      `json:"number"` // that was looked at
	Name    string   `json:"name"`
	Wants   string   `json:"wants"`   // what holds there
	Reached bool     `json:"reached"` // on every node, as far as is known, with nothing found
	Next    string   `json:"next"`    // what to do once it is reached
	Stands  []Stand  `json:"stands"`  // equal nodes together
	Weights []Weight `json:"weights"` // how findings count here
}

// Stand is where some nodes stand.
type Stand struct {
	Stage int      `json:"stage"` // -1: between stages, or not known
	Words string   `json:"words"`
	Nodes []string `json:"nodes"`
}

// Weight is how the findings of a rule count at a stage.
type Weight struct {
	Rule string `json:"rule"`
	As   string `json:"as"` // expected: an info; strict: a warning is an error
	Why  string `json:"why"`
}

// StageFacts are what tells where nodes stand.
func StageFacts() []fact.Named { return stage.Facts() }

func stageOf(v *fact.View, s stage.Stage) *Stage {
	out := &Stage{Number: s.Number, Name: s.Name, Wants: s.Wants, Next: s.Next, Stands: []Stand{}, Weights: []Weight{}}
	for _, w := range s.Weights {
		out.Weights = append(out.Weights, Weight{Rule: w.Rule, As: w.As.String(), Why: w.Why})
	}
	slices.SortFunc(out.Weights, func(a, b Weight) int { return cmp.Compare(a.Rule, b.Rule) })
	for _, n := range v.Nodes() {
		stand := stage.StandOf(v.On(n.Name))
		i := slices.IndexFunc(out.Stands, func(x Stand) bool { return x.Words == stand.Words && x.Stage == stand.Stage })
		if i < 0 {
			i = len(out.Stands)
			out.Stands = append(out.Stands, Stand{Stage: stand.Stage, Words: stand.Words})
		}
		out.Stands[i].Nodes = append(out.Stands[i].Nodes, n.Name)
	}
	slices.SortStableFunc(out.Stands, func(a, b Stand) int {
		return cmp.Or(cmp.Compare(len(b.Nodes), len(a.Nodes)), cmp.Compare(a.Words, b.Words))
	})
	return out
}

// stateOfStage is the answer of preflight and verify, and notes it in the
// document: a stage counts as reached only when nothing was found and nothing
// is unknown.
func stateOfStage(d *Document, v Verdict) string {
	s := d.Stage
	s.Reached = v.Outcome == OK
	switch {
	case d.Command == "preflight" && s.Reached:
		return "this cluster may begin the migration"
	case d.Command == "preflight" && len(s.Stands) == 1 && s.Stands[0].Stage > 0:
		return fmt.Sprintf("nothing to begin: every node is past stage 0 already, at stage %d", s.Stands[0].Stage)
	case d.Command == "preflight" && v.Outcome == Unknown:
		return "whether this cluster may begin the migration is not known"
	case d.Command == "preflight":
		return "this cluster must not begin the migration yet"
	case s.Reached && s.Number == 3:
		return "what stage 3 wants holds at this moment"
	case s.Reached:
		return fmt.Sprintf("stage %d is reached", s.Number)
	case v.Outcome == Unknown:
		return fmt.Sprintf("whether stage %d is reached is not known", s.Number)
	}
	return fmt.Sprintf("stage %d is not reached", s.Number)
}
