package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
)

// maxRecord is how much a step may capture, in bytes: an entry must fit into
// one object of the cluster beside others.
const maxRecord = 512 << 10

// Run runs stages from where they stand: what is complete is skipped, what is
// halfway is applied again. It stops at the first step that fails, and says in
// the error where; the Stand is where it stopped.
func (e *Engine) Run(ctx context.Context, p *Plan, o Options) (*Stand, error) {
	return e.begin(ctx, p, o, "run", func(ctx context.Context, s *session) error { return s.run(ctx) })
}

func (s *session) run(ctx context.Context) error {
	for i := range s.stand.Stages {
		if s.stand.Stages[i].State == GoingBack {
			return fmt.Errorf("stage %s: %w; finish it first", s.stand.Stages[i].Name, ErrHalfway)
		}
	}
	wanted := s.options.Stages
	for _, name := range wanted {
		if _, err := s.plan.stage(name); err != nil {
			return err
		}
	}
	for i := range s.plan.Stages {
		stage, at := &s.plan.Stages[i], &s.stand.Stages[i]
		if len(wanted) > 0 && !slices.Contains(wanted, stage.Name) {
			if at.State != Complete && slices.ContainsFunc(s.plan.Stages[i:], func(later Stage) bool { return slices.Contains(wanted, later.Name) }) {
				return fmt.Errorf("stage %s comes first and is not complete: %w", stage.Name, ErrRefused)
			}
			continue
		}
		if at.State == Waiting {
			if err := s.ask(ctx, stage.Name, stage.Gate, PhaseGate, Gated); err != nil {
				return err
			}
		}
		for j := range stage.Steps {
			if err := s.forward(ctx, stage.Name, &at.Steps[j]); err != nil {
				return err
			}
		}
		if err := s.ask(ctx, stage.Name, stage.Checkpoint, PhaseCheckpoint, Passed); err != nil {
			return err
		}
	}
	return nil
}

// forward brings one step to its end.
func (s *session) forward(ctx context.Context, stage string, at *StepStand) error {
	step, key := at.Step, at.Step.Key()
	if at.State == Complete {
		s.tell(stage, key, PhaseSkipped, "")
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if at.State == Waiting {
		if err := s.start(ctx, stage, at); err != nil {
			return err
		}
	}
	s.tell(stage, key, PhaseApply, "")
	if err := step.Apply(ctx, at.Record); err != nil {
		return s.fail(ctx, stage, key, PhaseApply, err)
	}
	s.tell(stage, key, PhaseVerify, "")
	if err := refused(ctx, step.Verify(ctx, at.Record)); err != nil {
		return s.fail(ctx, stage, key, PhaseVerify, err)
	}
	if err := s.after(ctx, Entry{Event: Done, Stage: stage, Step: key}); err != nil {
		return s.lost(stage, key, PhaseDone, fmt.Errorf("it is done and verified, but not in the journal: %w", err))
	}
	s.tell(stage, key, PhaseDone, "")
	return nil
}

// start makes sure that the step may begin and that there is a way back.
func (s *session) start(ctx context.Context, stage string, at *StepStand) error {
	step, key := at.Step, at.Step.Key()
	if step.Ready != nil {
		s.tell(stage, key, PhaseReady, "")
		if err := refused(ctx, step.Ready(ctx)); err != nil {
			return s.fail(ctx, stage, key, PhaseReady, err)
		}
	}
	var record Record
	if step.Capture != nil {
		s.tell(stage, key, PhaseCapture, "")
		var err error
		if record, err = step.Capture(ctx); err != nil {
			return s.fail(ctx, stage, key, PhaseCapture, err)
		}
		if len(record) > maxRecord || record != nil && !json.Valid(record) {
			return s.fail(ctx, stage, key, PhaseCapture, fmt.Errorf("a record of %d bytes is no JSON of up to %d bytes", len(record), maxRecord))
		}
	}
	if err := s.write(ctx, Entry{Event: Begun, Stage: stage, Step: key, Record: record}); err != nil {
		return s.lost(stage, key, PhaseCapture, err)
	}
	return nil
}

// Close ends a plan: nothing of it is resumed or undone after that.
func (e *Engine) Close(ctx context.Context, p *Plan, o Options) (*Stand, error) {
	return e.begin(ctx, p, o, "close", func(ctx context.Context, s *session) error {
		if s.stand.Begun() && !s.stand.Complete() {
			return fmt.Errorf("plan %s is neither complete nor taken back: %w", p.Kind, ErrRefused)
		}
		return s.write(ctx, Entry{Event: Closed, Text: clip(o.Note)})
	})
}
