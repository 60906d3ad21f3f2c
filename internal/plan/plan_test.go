package plan

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func engine(j Journal) *Engine {
	return &Engine{ID: "t", Journal: j, Now: func() time.Time { return time.Unix(0, 0) }, Operator: Operator{User: "u", Tool: "v1"}}
}

func events(t *testing.T, j Journal) []string {
	t.Helper()
	entries, err := j.Entries(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, strings.TrimSpace(fmt.Sprint(e.Event, " ", e.Step)))
	}
	return out
}

// TestOrder: every line of the journal is before what it announces, and the
// way back goes through stages and steps from the last.
func TestOrder(t *testing.T) {
	j, w := &Memory{}, start()
	f := fated{quiet(), w, j}
	if _, err := engine(j).Run(t.Context(), f.plan(), Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := engine(j).Rollback(t.Context(), f.plan(), Options{}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"opened", "session",
		"gated", "begun first/n1", "done first/n1", "begun first/n2", "done first/n2", "passed",
		"gated", "begun second", "done second", "passed",
		"session",
		"returning", "undoing second", "undone second", "returned",
		"returning", "undoing first/n2", "undone first/n2", "undoing first/n1", "undone first/n1", "returned",
	}
	if diff := cmp.Diff(want, events(t, j)); diff != "" {
		t.Error(diff)
	}
}

// TestVerified: a step whose effect is not there is not done, whatever Apply
// thinks, and a step whose effect cannot be seen is not done either.
func TestVerified(t *testing.T) {
	for name, test := range map[string]struct {
		verify error
		class  error
	}{
		"not there": {errors.New("no"), ErrRefused},
		"unseen":    {fmt.Errorf("agent silent: %w", ErrUnverified), ErrUnverified},
	} {
		t.Run(name, func(t *testing.T) {
			j := &Memory{}
			p := fated{quiet(), start(), j}.plan()
			p.Stages[0].Steps[1].Verify = func(context.Context, Record) error { return test.verify }
			stand, err := engine(j).Run(t.Context(), p, Options{})
			var at *Failure
			if !errors.Is(err, test.class) || !errors.As(err, &at) || at.Step != "first/n2" || at.Phase != PhaseVerify {
				t.Fatalf("%v", err)
			}
			if n, all := stand.Count(Complete); n != 1 || all != 3 {
				t.Errorf("%d of %d complete", n, all)
			}
			if s := stand.Stages[0].Steps[1]; s.State != Halfway || !strings.HasPrefix(s.Failed, "verify: ") {
				t.Errorf("%+v", s)
			}
			if got := events(t, j); got[len(got)-1] != "failed first/n2" {
				t.Errorf("%v", got)
			}
		})
	}
}

// TestGates: what is refused leaves no trace, a reason for its rule lets it
// pass and is in the journal, and what was not seen is no permission.
func TestGates(t *testing.T) {
	stops := []Stop{{Rule: "kube-chains", Message: "two nodes"}, {Rule: "agent-down", Message: "n2", Unknown: true}}
	gate := func(context.Context) (GateResult, error) {
		return GateResult{Stops: stops, Notes: []string{"slow"}}, nil
	}
	for name, test := range map[string]struct {
		accept map[string]string
		class  error
	}{
		"none accepted":         {nil, ErrRefused},
		"the wrong one":         {map[string]string{"agent-up": "x"}, ErrRefused},
		"only the unseen left":  {map[string]string{"kube-chains": "known"}, ErrUnverified},
		"only the refused left": {map[string]string{"agent-down": "known"}, ErrRefused},
		"all":                   {map[string]string{"agent-down": "known", "kube-chains": "cleaned tomorrow"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			j, w := &Memory{}, start()
			p := fated{quiet(), w, j}.plan()
			p.Stages[0].Gate = gate
			_, err := engine(j).Run(t.Context(), p, Options{Accept: test.accept, Note: "change 12"})
			if !errors.Is(err, test.class) {
				t.Fatalf("%v", err)
			}
			entries, _ := j.Entries(t.Context())
			if test.class != nil {
				if len(entries) != 0 {
					t.Errorf("a refused plan wrote %v", entries)
				}
				returned(t, name, w)
				return
			}
			gated := entries[2]
			if len(gated.Accepted) != 2 || gated.Accepted[0].Reason != "cleaned tomorrow" || gated.Accepted[0].Message != "two nodes" || gated.Text != "slow" {
				t.Errorf("%+v", gated)
			}
			if s := entries[1]; s.Text != "change 12" || s.Operator.User != "u" || s.Verb != "run" {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestCheckpointOfACompleteStage: running it again applies nothing and asks the
// checkpoint again.
func TestCheckpointOfACompleteStage(t *testing.T) {
	j := &Memory{}
	p := fated{quiet(), start(), j}.plan()
	asked := 0
	p.Stages[0].Checkpoint = func(context.Context) (GateResult, error) { asked++; return GateResult{}, nil }
	for range 2 {
		if _, err := engine(j).Run(t.Context(), p, Options{Stages: []string{"one"}}); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(events(t, j), ","); asked != 2 || strings.Count(got, "begun first/n1") != 1 {
		t.Errorf("asked %d times, %s", asked, got)
	}
}

func TestStagesComeInOrder(t *testing.T) {
	j := &Memory{}
	p := fated{quiet(), start(), j}.plan()
	if _, err := engine(j).Run(t.Context(), p, Options{Stages: []string{"two"}}); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "stage one comes first") {
		t.Errorf("%v", err)
	}
	if _, err := engine(j).Run(t.Context(), p, Options{Stages: []string{"three"}}); err == nil {
		t.Error("an unknown stage")
	}
	if _, err := engine(j).Run(t.Context(), p, Options{Stages: []string{"one"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := engine(j).Close(t.Context(), p, Options{}); !errors.Is(err, ErrRefused) {
		t.Errorf("closed halfway: %v", err)
	}
	if _, err := engine(j).Run(t.Context(), p, Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := engine(j).Close(t.Context(), p, Options{Note: "soaked"}); err != nil {
		t.Fatal(err)
	}
	if _, err := engine(j).Rollback(t.Context(), p, Options{}); !errors.Is(err, ErrRefused) {
		t.Errorf("after it was closed: %v", err)
	}
}

// TestOneStageBack: only the stage that is named and those behind it.
func TestOneStageBack(t *testing.T) {
	j, w := &Memory{}, start()
	p := fated{quiet(), w, j}.plan()
	if _, err := engine(j).Run(t.Context(), p, Options{}); err != nil {
		t.Fatal(err)
	}
	p.Stages[0].BackGate = func(context.Context) (GateResult, error) {
		return GateResult{Stops: []Stop{{Rule: "outage", Message: "no"}}}, nil
	}
	if _, err := engine(j).Rollback(t.Context(), p, Options{Stages: []string{"two"}}); err != nil {
		t.Fatal(err)
	}
	if w["second.a"] != "old second.a" || w["firstn1.a"] != "new" {
		t.Errorf("%v", w)
	}
	if _, err := engine(j).Rollback(t.Context(), p, Options{}); !errors.Is(err, ErrRefused) {
		t.Errorf("past its gate: %v", err)
	}
	if _, err := engine(j).Rollback(t.Context(), p, Options{Accept: map[string]string{"outage": "window"}}); err != nil {
		t.Fatal(err)
	}
	returned(t, "with the reason", w)
}

// TestOtherSteps: a journal is never continued with steps it was not made for,
// and what it holds decides nothing else.
func TestOtherSteps(t *testing.T) {
	j := &Memory{}
	f := fated{quiet(), start(), j}
	if _, err := engine(j).Run(t.Context(), f.plan(), Options{Stages: []string{"one"}}); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Plan){
		"doc":    func(p *Plan) { p.Stages[0].Steps[0].Doc = "sets three keys" },
		"input":  func(p *Plan) { p.Stages[1].Steps[0].Input = []byte("x") },
		"inputs": func(p *Plan) { p.Inputs = []byte(`{"nodes":1}`) },
		"order":  func(p *Plan) { s := p.Stages[0].Steps; s[0], s[1] = s[1], s[0] },
		"fewer":  func(p *Plan) { p.Stages[0].Steps = p.Stages[0].Steps[:1] },
		"target": func(p *Plan) { p.Target = "another" },
		"kind":   func(p *Plan) { p.Kind = "other" },
	} {
		p := f.plan()
		change(p)
		for _, verb := range []func(*Engine, context.Context, *Plan, Options) (*Stand, error){(*Engine).Run, (*Engine).Rollback} {
			if _, err := verb(engine(j), t.Context(), p, Options{}); !errors.Is(err, ErrChanged) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	entries, _ := j.Entries(t.Context())
	for _, bad := range []Entry{{Event: Done, Stage: "one", Step: "other"}, {Event: "sudo", Stage: "one", Step: "first/n1"}, {Event: "sudo", Stage: "one"}} {
		bad.Seq = len(entries)
		forged := &Memory{entries: append(entries[:len(entries):len(entries)], bad)}
		if _, err := engine(forged).Run(t.Context(), f.plan(), Options{}); !errors.Is(err, ErrChanged) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// TestTwoOperators: the one who was overtaken writes nothing more, and so does
// nothing more.
func TestTwoOperators(t *testing.T) {
	j, w := &Memory{}, start()
	p := fated{quiet(), w, j}.plan()
	apply := p.Stages[0].Steps[0].Apply
	p.Stages[0].Steps[0].Apply = func(ctx context.Context, r Record) error { // the other one, meanwhile
		if _, err := engine(j).Run(ctx, fated{quiet(), w, j}.plan(), Options{Stages: []string{"one"}}); err != nil {
			t.Fatal(err)
		}
		return apply(ctx, r)
	}
	p.Stages[0].Steps[1].Apply = func(context.Context, Record) error { t.Error("the second step began"); return nil }
	if _, err := engine(j).Run(t.Context(), p, Options{}); !errors.Is(err, ErrConflict) {
		t.Errorf("%v", err)
	}
}

// full has room for so many entries.
type full struct {
	*Memory
	room int
}

func (f full) Append(ctx context.Context, e Entry) error {
	if e.Seq >= f.room {
		return ErrFull
	}
	return f.Memory.Append(ctx, e)
}

// TestJournalFull: without a line there is no effect that goes unrecorded, and
// with room the plan goes on.
func TestJournalFull(t *testing.T) {
	for room := range 12 {
		j, w := &Memory{}, start()
		f := fated{quiet(), w, j}
		if _, err := engine(full{j, room}).Run(t.Context(), f.plan(), Options{}); !errors.Is(err, ErrFull) {
			t.Fatalf("room %d: %v", room, err)
		}
		if room < 4 {
			returned(t, fmt.Sprint("room ", room), w)
		}
		if _, err := engine(j).Rollback(t.Context(), f.plan(), Options{}); err != nil {
			t.Fatal(err)
		}
		returned(t, fmt.Sprint("room ", room, ", taken back"), w)
	}
}

func TestHoldIsLost(t *testing.T) {
	j := &Memory{}
	p := fated{quiet(), start(), j}.plan()
	lost := errors.New("the lease was taken by v")
	ctx, cancel := context.WithCancelCause(t.Context())
	released := 0
	e := engine(j)
	e.Hold = func(context.Context) (context.Context, func(), error) { return ctx, func() { released++ }, nil }
	p.Stages[0].Steps[0].Apply = func(ctx context.Context, _ Record) error { cancel(lost); return ctx.Err() }
	if _, err := e.Run(t.Context(), p, Options{}); !errors.Is(err, lost) || released != 1 {
		t.Errorf("%v, released %d times", err, released)
	}
	e.Hold = func(context.Context) (context.Context, func(), error) { return nil, nil, lost }
	if _, err := e.Run(t.Context(), p, Options{}); !errors.Is(err, lost) {
		t.Errorf("%v", err)
	}
}

func TestPlansThatCannotBe(t *testing.T) {
	good := fated{quiet(), start(), nil}.step("a", "")
	bad := good
	bad.Undo = nil
	for name, stages := range map[string][]Stage{
		"twice":    {{Name: "s", Steps: []Step{good, good}}},
		"no undo":  {{Name: "s", Steps: []Step{bad}}},
		"stage":    {{Name: "s"}, {Name: "s"}},
		"nameless": {{}},
	} {
		if _, err := engine(&Memory{}).Run(t.Context(), &Plan{Kind: "k", Stages: stages}, Options{}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
