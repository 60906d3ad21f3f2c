package plan

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Engine runs plans over one journal. Its functions take one run at a time.
type Engine struct {
	ID      string // the journal's, for its first entry
	Journal Journal
	// Now is the client's clock; Server, if not nil, the API server's.
	Now      func() time.Time
	Server   func() (time.Time, bool)
	Operator Operator
	// Hold keeps other operators out until release is called, nil where there
	// can be none. The context it gives ends when the hold is lost.
	Hold func(context.Context) (held context.Context, release func(), err error)
	// Tell hears of every phase before it begins; nil for silence.
	Tell func(Progress)
}

// Progress is a phase that begins.
type Progress struct {
	Stage, Step string // Step is its key, "" for the stage as a whole
	Phase       Phase
	Text        string // of PhaseFailed and PhaseNote
}

// Phase is what is being done.
type Phase string

// The phases. A step that is complete already is skipped.
const (
	PhaseGate       Phase = "gate"
	PhaseReady      Phase = "ready"
	PhaseCapture    Phase = "capture"
	PhaseApply      Phase = "apply"
	PhaseVerify     Phase = "verify"
	PhaseDone       Phase = "done"
	PhaseSkipped    Phase = "skipped"
	PhaseCheckpoint Phase = "checkpoint"
	PhaseUndo       Phase = "undo"
	PhaseUndone     Phase = "undone" // the step is being verified after Undo
	PhaseBack       Phase = "back"   // it is as it was
	PhaseNote       Phase = "note"
	PhaseFailed     Phase = "failed"
)

// Options are how to run.
type Options struct {
	// Stages are the stages to run, all if there is none. To go back it is the
	// earliest one to undo and all behind it are undone as well.
	Stages []string
	// Accept lets stops pass: the operator's reason by rule.
	Accept map[string]string
	Note   string
}

// Failure is where a run stopped.
type Failure struct {
	Stage, Step string
	Phase       Phase
	Err         error
}

// Error names the step, or the stage, and the phase.
func (f *Failure) Error() string {
	at := "stage " + f.Stage
	if f.Step != "" {
		at = "step " + f.Step
	}
	return fmt.Sprintf("%s: %s: %v", at, f.Phase, f.Err)
}

// Unwrap is what stopped it.
func (f *Failure) Unwrap() error { return f.Err }

// afterwards is how long what is told after an effect may take where the run
// itself is over: a line in the journal.
const afterwards = 10 * time.Second

// Stand reads where a plan stands.
func (e *Engine) Stand(ctx context.Context, p *Plan) (*Stand, error) {
	entries, err := e.Journal.Entries(ctx)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	return StandOf(p, entries)
}

// session is one run or rollback.
type session struct {
	engine  *Engine
	plan    *Plan
	stand   *Stand
	options Options
	verb    string
	opened  bool // its own first line is in the journal
}

// begin holds the plan, reads where it stands and calls do.
func (e *Engine) begin(ctx context.Context, p *Plan, o Options, verb string, do func(context.Context, *session) error) (*Stand, error) {
	if e.Hold != nil {
		held, release, err := e.Hold(ctx)
		if err != nil {
			return nil, err
		}
		defer release()
		ctx = held
	}
	stand, err := e.Stand(ctx, p)
	if err != nil {
		return nil, err
	}
	if stand.Closed {
		return stand, fmt.Errorf("journal %s is closed: %w", stand.Opening.ID, ErrRefused)
	}
	s := &session{engine: e, plan: p, stand: stand, options: o, verb: verb}
	err = do(ctx, s)
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w (%w)", err, cause) // why the hold was lost
	}
	return s.stand, err
}

// write appends an entry, with the session's own lines before the first.
func (s *session) write(ctx context.Context, e Entry) error {
	if !s.opened {
		if s.stand.Opening == nil {
			open := &Opening{ID: s.engine.ID, Kind: s.plan.Kind, Target: s.plan.Target, Digest: s.plan.Digest(), Tool: s.engine.Operator.Tool, Inputs: s.plan.Inputs}
			if err := s.append(ctx, Entry{Event: Opened, Plan: open}); err != nil {
				return err
			}
			s.stand.Opening = open
		}
		if err := s.append(ctx, Entry{Event: Session, Operator: &s.engine.Operator, Verb: s.verb, Text: s.options.Note}); err != nil {
			return err
		}
		s.opened = true
	}
	return s.append(ctx, e)
}

func (s *session) append(ctx context.Context, e Entry) error {
	e.Seq, e.Time = s.stand.entries, s.engine.Now().UTC().Truncate(time.Millisecond)
	if s.engine.Server != nil {
		if t, ok := s.engine.Server(); ok {
			t = t.UTC()
			e.Server = &t
		}
	}
	if err := s.engine.Journal.Append(ctx, e); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	s.stand.entries++
	s.stand.Last = &e
	if e.Event == Opened {
		return nil
	}
	return s.stand.take(&e)
}

// after writes what has happened, also where the run's own time is over.
func (s *session) after(ctx context.Context, e Entry) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterwards)
	defer cancel()
	return s.write(ctx, e)
}

// fail tells the journal, as far as it can be told, and is the error. Nothing
// is written before the plan has begun: what was refused leaves no trace.
func (s *session) fail(ctx context.Context, stage, step string, phase Phase, err error) error {
	f := &Failure{Stage: stage, Step: step, Phase: phase, Err: err}
	s.tell(stage, step, PhaseFailed, f.Error())
	if !s.opened {
		return f
	}
	if lost := s.after(ctx, Entry{Event: Failed, Stage: stage, Step: step, Text: clip(string(phase) + ": " + err.Error())}); lost != nil {
		f.Err = fmt.Errorf("%w (and the journal does not know: %w)", err, lost)
	}
	return f
}

// lost is the error where the journal itself failed, so that it cannot be told.
func (s *session) lost(stage, step string, phase Phase, err error) error {
	f := &Failure{Stage: stage, Step: step, Phase: phase, Err: err}
	s.tell(stage, step, PhaseFailed, f.Error())
	return f
}

// clip bounds a text for the journal.
func clip(s string) string {
	const most = 2000
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}

func (s *session) tell(stage, step string, phase Phase, text string) {
	if s.engine.Tell != nil {
		s.engine.Tell(Progress{stage, step, phase, text})
	}
}
