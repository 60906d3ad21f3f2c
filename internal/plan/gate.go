package plan

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// ask runs a gate or a checkpoint, nil being one that lets everything pass, and
// writes the event if it does.
func (s *session) ask(ctx context.Context, stage string, gate Gate, phase Phase, event Event) error {
	s.tell(stage, "", phase, "")
	if err := ctx.Err(); err != nil {
		return err
	}
	var found GateResult
	if gate != nil {
		var err error
		if found, err = gate(ctx); err != nil {
			return s.fail(ctx, stage, "", phase, err)
		}
	}
	accepted, err := accept(found.Stops, s.options.Accept)
	if err != nil {
		return s.fail(ctx, stage, "", phase, err)
	}
	for _, n := range found.Notes {
		s.tell(stage, "", PhaseNote, n)
	}
	e := Entry{Event: event, Stage: stage, Accepted: accepted, Text: clip(strings.Join(found.Notes, "\n"))}
	if err := s.write(ctx, e); err != nil {
		return s.lost(stage, "", phase, err)
	}
	return nil
}

// accept lets those stops pass that the operator gave a reason for. What is
// left is an error: ErrRefused, or ErrUnverified where nothing was seen to be
// wrong and something could not be seen.
func accept(stops []Stop, reasons map[string]string) ([]Accepted, error) {
	var passed []Accepted
	var left []string
	class := ErrUnverified
	for _, x := range stops {
		if reason, ok := reasons[x.Rule]; ok && x.Rule != "" {
			passed = append(passed, Accepted{Rule: x.Rule, Reason: reason, Message: clip(x.Message)})
			continue
		}
		if !x.Unknown {
			class = ErrRefused
		}
		words := x.Message
		if x.Rule != "" {
			words = x.Rule + ": " + words
		}
		left = append(left, words)
	}
	if len(left) == 0 {
		return passed, nil
	}
	return nil, &Stopped{Reasons: left, class: class}
}

// Stopped is a gate's or a checkpoint's no, with every reason. It wraps
// ErrRefused or ErrUnverified.
type Stopped struct {
	Reasons []string
	class   error
}

// Error has the first reasons.
func (s *Stopped) Error() string {
	const most = 3
	told := strings.Join(s.Reasons[:min(len(s.Reasons), most)], "; ")
	if more := len(s.Reasons) - most; more > 0 {
		told += fmt.Sprintf("; and %d more", more)
	}
	return fmt.Sprintf("%v: %s", s.class, told)
}

// Unwrap is ErrRefused or ErrUnverified.
func (s *Stopped) Unwrap() error { return s.class }

// refused makes what failed a look at the cluster a refusal, unless it is that
// nothing could be seen or that the time is over.
func refused(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil || errors.Is(err, ErrUnverified) || errors.Is(err, ErrRefused) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrRefused, err)
}
