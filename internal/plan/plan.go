package plan

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// Errors that tell how a run ended; all others mean that it failed.
var (
	// ErrRefused: a gate, a step's Ready or a checkpoint said no.
	ErrRefused = errors.New("refused")
	// ErrUnverified: whether it is as it should be could not be seen.
	ErrUnverified = errors.New("could not be verified")
	// ErrChanged: the journal is of another plan, or of other steps.
	ErrChanged = errors.New("the journal is of another plan")
	// ErrHalfway: steps were being taken back, so there is no way forward.
	ErrHalfway = errors.New("a rollback has begun")
	// ErrConflict: somebody else wrote the journal meanwhile.
	ErrConflict = errors.New("the journal was written by somebody else")
	// ErrFull: the journal takes no more.
	ErrFull = errors.New("the journal is full")
)

// Record is what a step captured, as JSON of the step's own form.
type Record = json.RawMessage

// Step is one change and the way back. Its functions end with their context.
type Step struct {
	Name string // kebab-case; with Node it is the step's only name in the plan
	Node string // the node that it changes, "" if it is not about one
	Doc  string // what it does, a sentence
	Risk string // what may go wrong meanwhile, in the user's words
	// Input is whatever else decides what the step does. It is part of the
	// plan's digest and may be nil.
	Input []byte

	// Ready fails where the step must not begin. An error that wraps
	// ErrUnverified means that this could not be seen. nil is always ready.
	Ready func(context.Context) error
	// Capture records what Undo needs. It is called once for each attempt, and
	// the record is in the journal before Apply is called. nil records nothing.
	Capture func(context.Context) (Record, error)
	Apply   func(context.Context, Record) error
	// Verify fails unless the effect is there, within a time of its own choice.
	Verify func(context.Context, Record) error
	Undo   func(context.Context, Record) error
	// Undone fails unless the captured state is there again.
	Undone func(context.Context, Record) error
}

// Key is the step's name in the plan: "clean", or "clean/worker-1" for a node.
func (s *Step) Key() string {
	if s.Node == "" {
		return s.Name
	}
	return s.Name + "/" + s.Node
}

// GateResult is what a gate or a checkpoint found.
type GateResult struct {
	Stops []Stop
	Notes []string // what the operator should know, and what does not stop
}

// Stop is a reason not to go on. It can be accepted by its rule's name.
type Stop struct {
	Rule    string
	Message string
	Unknown bool // it could not be seen; else it was seen
}

// Gate decides whether a stage may begin, or whether it has ended well.
type Gate func(context.Context) (GateResult, error)

// Stage is a part of a plan that is run, or taken back, as one.
type Stage struct {
	Name  string
	Gate  Gate // before its first step; not again when a run goes on
	Steps []Step
	// Checkpoint comes after its last step, and on every later run as well.
	Checkpoint Gate

	// BackGate and BackCheckpoint are the same for the way back.
	BackGate, BackCheckpoint Gate
	// BackInOrder undoes steps in the order they were applied in; else the last
	// one is undone first.
	BackInOrder bool
}

// Plan is what is to be done to one cluster.
type Plan struct {
	Kind   string // what it is a plan for: "migration", "residue-clean"
	Target string // the cluster, as the journal's first entry names it
	// Inputs is what this plan was made from, as JSON of its maker's form. It is
	// in the journal, so that the same plan can be made again.
	Inputs json.RawMessage
	Stages []Stage
}

// Digest identifies the plan: its kind, target and inputs, and the list of its
// steps with all they say of themselves. It is 64 hexadecimal digits.
func (p *Plan) Digest() string {
	h := sha256.New()
	say := func(words ...string) {
		for _, w := range words {
			_, _ = fmt.Fprintf(h, "%d:%s", len(w), w)
		}
	}
	say(p.Kind, p.Target, string(p.Inputs))
	for _, s := range p.Stages {
		say("stage", s.Name, fmt.Sprint(s.BackInOrder))
		for i := range s.Steps {
			x := &s.Steps[i]
			say("step", x.Name, x.Node, x.Doc, x.Risk, string(x.Input))
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// validate fails on plans that no journal could tell apart.
func (p *Plan) validate() error {
	steps, stages := map[string]bool{}, map[string]bool{}
	for i := range p.Stages {
		s := &p.Stages[i]
		if s.Name == "" || stages[s.Name] {
			return fmt.Errorf("plan %s: stage %q is there twice or has no name", p.Kind, s.Name)
		}
		stages[s.Name] = true
		for j := range s.Steps {
			x := &s.Steps[j]
			switch {
			case x.Name == "" || steps[x.Key()]:
				return fmt.Errorf("plan %s: step %q is there twice or has no name", p.Kind, x.Key())
			case x.Apply == nil || x.Verify == nil || x.Undo == nil || x.Undone == nil:
				return fmt.Errorf("plan %s: step %s cannot be applied, verified, undone and verified again", p.Kind, x.Key())
			}
			steps[x.Key()] = true
		}
	}
	return nil
}

// stage is the index of a stage by name.
func (p *Plan) stage(name string) (int, error) {
	i := slices.IndexFunc(p.Stages, func(s Stage) bool { return s.Name == name })
	if i < 0 {
		return 0, fmt.Errorf("stage %q: plan %s has none of that name", name, p.Kind)
	}
	return i, nil
}
