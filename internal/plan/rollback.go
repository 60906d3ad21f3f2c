package plan

import (
	"context"
	"fmt"
	"slices"
)

// Rollback undoes stages from where they stand, the last one first, down to the
// earliest of the options, or all of them. What never began is skipped, what is
// halfway in either direction is undone. It stops at the first step that fails.
func (e *Engine) Rollback(ctx context.Context, p *Plan, o Options) (*Stand, error) {
	return e.begin(ctx, p, o, "rollback", func(ctx context.Context, s *session) error { return s.back(ctx) })
}

func (s *session) back(ctx context.Context) error {
	first := 0
	for i, name := range s.options.Stages {
		at, err := s.plan.stage(name)
		if err != nil {
			return err
		}
		if i == 0 || at < first {
			first = at
		}
	}
	for i := len(s.plan.Stages) - 1; i >= first; i-- {
		stage, at := &s.plan.Stages[i], &s.stand.Stages[i]
		if at.State == Waiting {
			continue
		}
		if at.State != GoingBack {
			if err := s.ask(ctx, stage.Name, stage.BackGate, PhaseGate, Returning); err != nil {
				return err
			}
		}
		order := make([]*StepStand, len(at.Steps))
		for j := range at.Steps {
			order[j] = &at.Steps[j]
		}
		if !stage.BackInOrder {
			slices.Reverse(order)
		}
		for _, step := range order {
			if err := s.backward(ctx, stage.Name, step); err != nil {
				return err
			}
		}
		if err := s.ask(ctx, stage.Name, stage.BackCheckpoint, PhaseCheckpoint, Returned); err != nil {
			return err
		}
	}
	return nil
}

// backward brings one step back to what was captured.
func (s *session) backward(ctx context.Context, stage string, at *StepStand) error {
	step, key := at.Step, at.Step.Key()
	if at.State == Waiting {
		s.tell(stage, key, PhaseSkipped, "")
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if at.State != GoingBack {
		if err := s.write(ctx, Entry{Event: Undoing, Stage: stage, Step: key}); err != nil {
			return s.lost(stage, key, PhaseUndo, err)
		}
	}
	s.tell(stage, key, PhaseUndo, "")
	if err := step.Undo(ctx, at.Record); err != nil {
		return s.fail(ctx, stage, key, PhaseUndo, err)
	}
	s.tell(stage, key, PhaseUndone, "")
	if err := refused(ctx, step.Undone(ctx, at.Record)); err != nil {
		return s.fail(ctx, stage, key, PhaseUndone, err)
	}
	if err := s.after(ctx, Entry{Event: Undone, Stage: stage, Step: key}); err != nil {
		return s.lost(stage, key, PhaseUndone, fmt.Errorf("it is undone and verified, but not in the journal: %w", err))
	}
	s.tell(stage, key, PhaseBack, "")
	return nil
}
