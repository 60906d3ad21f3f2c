package migrate

import (
	"fmt"

	"github.com/kubectl-kpr/kubectl-kpr/internal/plan"
)

// Kind is the kind of plans made here, as journals name it.
const Kind = "migration"

// The names of the stages.
const (
	Stage1 = "1"
	Stage2 = "2"
	Stage3 = "3"
)

// Gates are the questions before and after stages, by the number of the stage
// whose state they ask for. The one that opens the plan also asks what matters
// only before the first change.
type Gates func(stage int, opens bool) plan.Gate

// New makes the plan of inputs for the cluster named target.
func New(in *Inputs, w *World, gates Gates, target string) (*plan.Plan, error) {
	if err := in.Valid(); err != nil {
		return nil, err
	}
	raw, err := in.JSON()
	if err != nil {
		return nil, fmt.Errorf("inputs: %w", err)
	}
	var takeOver []plan.Step
	for _, c := range in.Changes() {
		takeOver = append(takeOver, agentStep(w, c, in.Nodes))
	}
	return &plan.Plan{Kind: Kind, Target: target, Inputs: raw, Stages: []plan.Stage{
		{
			Name: Stage1, Gate: gates(0, true), Steps: takeOver, Checkpoint: gates(1, false),
			// Without kube-proxy on every node the replacement must not go: the
			// way back from stage 2 ends with its proof.
			BackGate: gates(1, false), BackCheckpoint: gates(0, false),
		},
		{Name: Stage2, Gate: gates(1, false), Steps: proxySteps(w, in), Checkpoint: gates(2, false), BackCheckpoint: gates(1, false)},
		{Name: Stage3, Gate: gates(2, false), Checkpoint: gates(3, false)},
	}}, nil
}
