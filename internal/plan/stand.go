package plan

import (
	"fmt"
	"time"
)

// State is where a step or a stage stands.
type State string

// The states. A step that is Halfway has begun and was not verified; one that
// is Returning has begun to be undone. A stage is Halfway from its gate to its
// checkpoint.
const (
	Waiting   State = "waiting"
	Halfway   State = "halfway"
	Complete  State = "complete"
	GoingBack State = "going-back"
)

// Stand is where a plan stands by its journal.
type Stand struct {
	// Opening is nil where the journal is empty.
	Opening  *Opening
	Closed   bool
	Stages   []StageStand
	Sessions []Entry // who ran it, in order
	Last     *Entry  // the newest entry
	entries  int
	stages   map[string]*StageStand
	steps    map[string]*StepStand // by key
}

// StageStand is where a stage stands.
type StageStand struct {
	Name  string
	State State
	Steps []StepStand
}

// StepStand is where a step stands.
type StepStand struct {
	Step   *Step
	State  State
	Since  time.Time // the zero time while it waits
	Record Record    // of the attempt that is halfway, complete or going back
	Failed string    // why the last attempt stopped, "" if it did not
}

// Begun holds where something was done and not taken back.
func (s *Stand) Begun() bool {
	for i := range s.Stages {
		for j := range s.Stages[i].Steps {
			if s.Stages[i].Steps[j].State != Waiting {
				return true
			}
		}
	}
	return false
}

// Complete holds where every stage is.
func (s *Stand) Complete() bool {
	for i := range s.Stages {
		if s.Stages[i].State != Complete {
			return false
		}
	}
	return true
}

// Count is how many steps there are, and how many are in a state.
func (s *Stand) Count(of State) (n, all int) {
	for i := range s.Stages {
		for j := range s.Stages[i].Steps {
			all++
			if s.Stages[i].Steps[j].State == of {
				n++
			}
		}
	}
	return n, all
}

// StandOf reads a journal for a plan. It wraps ErrChanged where the journal is
// of another plan, or of the same plan with other steps.
func StandOf(p *Plan, entries []Entry) (*Stand, error) {
	if err := p.validate(); err != nil {
		return nil, err
	}
	s := &Stand{entries: len(entries), stages: map[string]*StageStand{}, steps: map[string]*StepStand{}}
	for i := range p.Stages {
		x := &p.Stages[i]
		at := StageStand{Name: x.Name, State: Waiting, Steps: make([]StepStand, len(x.Steps))}
		for j := range x.Steps {
			at.Steps[j] = StepStand{Step: &x.Steps[j], State: Waiting}
			s.steps[x.Steps[j].Key()] = &at.Steps[j]
		}
		s.Stages = append(s.Stages, at)
	}
	for i := range s.Stages {
		s.stages[s.Stages[i].Name] = &s.Stages[i]
	}
	for i := range entries {
		e := &entries[i]
		s.Last = e
		if i == 0 {
			if e.Event != Opened || e.Plan == nil {
				return nil, fmt.Errorf("entry 0 of the journal is %q, not the opening of a plan: %w", e.Event, ErrChanged)
			}
			if err := matches(p, e.Plan); err != nil {
				return nil, err
			}
			s.Opening = e.Plan
			continue
		}
		if err := s.take(e); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func matches(p *Plan, o *Opening) error {
	switch {
	case o.Kind != p.Kind:
		return fmt.Errorf("journal %s is of a plan %q, this is %q: %w", o.ID, o.Kind, p.Kind, ErrChanged)
	case o.Target != p.Target:
		return fmt.Errorf("journal %s is of cluster %s, this is %s: %w", o.ID, o.Target, p.Target, ErrChanged)
	case o.Digest != p.Digest():
		return fmt.Errorf("journal %s was opened by kubectl-kpr %s for other steps (digest %.12s, here %.12s); go on with that version: %w", o.ID, o.Tool, o.Digest, p.Digest(), ErrChanged)
	}
	return nil
}

func (s *Stand) take(e *Entry) error {
	switch e.Event {
	case Session:
		s.Sessions = append(s.Sessions, *e)
		return nil
	case Closed:
		s.Closed = true
		return nil
	}
	stage, step := s.stages[e.Stage], s.steps[e.Step]
	if stage == nil || e.Step != "" && step == nil {
		return fmt.Errorf("entry %d of the journal is about stage %q, step %q, which the plan does not have: %w", e.Seq, e.Stage, e.Step, ErrChanged)
	}
	if step == nil {
		switch e.Event {
		case Gated:
			stage.State = Halfway
		case Passed:
			stage.State = Complete
		case Returning:
			stage.State = GoingBack
		case Returned:
			stage.State = Waiting
		case Failed:
		default:
			return fmt.Errorf("entry %d of the journal: %q of stage %s is unknown: %w", e.Seq, e.Event, e.Stage, ErrChanged)
		}
		return nil
	}
	switch e.Event {
	case Begun:
		step.State, step.Record = Halfway, e.Record
	case Done:
		step.State = Complete
	case Undoing:
		step.State = GoingBack
	case Undone:
		step.State, step.Record = Waiting, nil
	case Failed:
		step.Failed = e.Text
		return nil
	default:
		return fmt.Errorf("entry %d of the journal: %q of step %s is unknown: %w", e.Seq, e.Event, e.Step, ErrChanged)
	}
	step.Failed, step.Since = "", e.Time
	if step.State == Waiting {
		step.Since = time.Time{}
	}
	return nil
}
