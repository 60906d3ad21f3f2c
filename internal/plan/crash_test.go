package plan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"
)

// fate decides what becomes of the k-th call of journal and world, counted
// from 1. Every call is two points: before its effect and after it.
type fate struct {
	at   int
	how  how
	seen int
	stop context.CancelFunc
}

type how int

const (
	never  how = iota
	killed     // the process ends there
	failed     // the call fails there: before the effect, or after it, its answer lost
	gone       // that call and all after it fail
	cancel     // Ctrl-C there
)

// died is what a killed process panics with in these tests.
type died struct{}

var errAPI = errors.New("connection refused")

func (f *fate) point() error {
	f.seen++
	switch {
	case f.how == gone && f.seen >= f.at, f.how == failed && f.seen == f.at:
		return errAPI
	case f.seen != f.at:
	case f.how == killed:
		panic(died{})
	case f.how == cancel:
		f.stop()
	}
	return nil
}

// around makes a call of it that has its effect between two points.
func (f *fate) around(ctx context.Context, effect func() error) error {
	if err := f.point(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := effect(); err != nil {
		return err
	}
	return f.point()
}

// world is what steps change; it outlives the process.
type world map[string]string

type fated struct {
	*fate
	world   world
	journal Journal
}

func (f fated) get(ctx context.Context, key string) (v string, err error) {
	err = f.around(ctx, func() error { v = f.world[key]; return nil })
	return v, err
}

func (f fated) set(ctx context.Context, key, v string) error {
	return f.around(ctx, func() error { f.world[key] = v; return nil })
}

func (f fated) Append(ctx context.Context, e Entry) error {
	return f.around(ctx, func() error { return f.journal.Append(ctx, e) })
}

func (f fated) Entries(ctx context.Context) (es []Entry, err error) {
	err = f.around(ctx, func() error { es, err = f.journal.Entries(ctx); return err })
	return es, err
}

// step sets two keys, one after the other, so that it can be half done.
func (f fated) step(name, node string) Step {
	keys := []string{name + node + ".a", name + node + ".b"}
	all := func(ctx context.Context, want func(key string) string) error {
		for _, k := range keys {
			if v, err := f.get(ctx, k); err != nil {
				return err
			} else if v != want(k) {
				return fmt.Errorf("%s is %q, want %q", k, v, want(k))
			}
		}
		return nil
	}
	read := func(r Record) (map[string]string, error) {
		var m map[string]string
		return m, json.Unmarshal(r, &m)
	}
	return Step{
		Name: name, Node: node, Doc: "sets two keys",
		Ready: func(ctx context.Context) error { return all(ctx, func(k string) string { return "old " + k }) },
		Capture: func(ctx context.Context) (Record, error) {
			m := map[string]string{}
			for _, k := range keys {
				var err error
				if m[k], err = f.get(ctx, k); err != nil {
					return nil, err
				}
			}
			return json.Marshal(m)
		},
		Apply: func(ctx context.Context, _ Record) error {
			for _, k := range keys {
				if err := f.set(ctx, k, "new"); err != nil {
					return err
				}
			}
			return nil
		},
		Verify: func(ctx context.Context, _ Record) error { return all(ctx, func(string) string { return "new" }) },
		Undo: func(ctx context.Context, r Record) error {
			m, err := read(r)
			if err != nil {
				return err
			}
			for _, k := range keys {
				if err := f.set(ctx, k, m[k]); err != nil {
					return err
				}
			}
			return nil
		},
		Undone: func(ctx context.Context, r Record) error {
			m, err := read(r)
			if err != nil {
				return err
			}
			return all(ctx, func(k string) string { return m[k] })
		},
	}
}

func (f fated) plan() *Plan {
	return &Plan{Kind: "test", Target: "cluster", Stages: []Stage{
		{Name: "one", Steps: []Step{f.step("first", "n1"), f.step("first", "n2")}},
		{Name: "two", Steps: []Step{f.step("second", "")}, BackInOrder: true},
	}}
}

func start() world {
	w := world{}
	for _, s := range []string{"firstn1", "firstn2", "second"} {
		w[s+".a"], w[s+".b"] = "old "+s+".a", "old "+s+".b"
	}
	return w
}

// process is a fresh one, which knows world and journal only.
func process(w world, j Journal, f *fate, verb func(*Engine, context.Context, *Plan, Options) (*Stand, error)) (err error, alive bool) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	f.stop = stop
	alive = true
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(died); !ok {
				panic(p)
			}
			err, alive = nil, false
		}
	}()
	at := fated{f, w, j}
	e := &Engine{ID: "t", Journal: at, Now: func() time.Time { return time.Unix(0, 0) }, Operator: Operator{User: "u"}}
	_, err = verb(e, ctx, at.plan(), Options{})
	return err, true
}

func finished(t *testing.T, at string, w world) {
	t.Helper()
	for k, v := range w {
		if v != "new" {
			t.Fatalf("%s: %s is %q", at, k, v)
		}
	}
}

func returned(t *testing.T, at string, w world) {
	t.Helper()
	if !maps.Equal(w, start()) {
		t.Fatalf("%s: %v", at, w)
	}
}

func quiet() *fate { return &fate{how: never} }

// points is how many points an undisturbed run of verb has.
func points(t *testing.T, w world, j Journal, verb func(*Engine, context.Context, *Plan, Options) (*Stand, error)) int {
	t.Helper()
	f := quiet()
	if err, _ := process(w, j, f, verb); err != nil {
		t.Fatal(err)
	}
	return f.seen
}

// TestCrashes ends a run at every point in every way. A fresh process then
// completes it; another one, from the same state, takes it back.
func TestCrashes(t *testing.T) {
	all := points(t, start(), &Memory{}, (*Engine).Run)
	if all < 60 {
		t.Fatalf("%d points: the calls are not counted", all)
	}
	for way, h := range map[string]how{"killed": killed, "call fails": failed, "API gone": gone, "Ctrl-C": cancel} {
		t.Run(way, func(t *testing.T) {
			for k := 1; k <= all; k++ {
				at := fmt.Sprintf("%s at %d of %d", way, k, all)
				w, j := start(), &Memory{}
				err, alive := process(w, j, &fate{at: k, how: h}, (*Engine).Run)
				if alive && err == nil && h != cancel {
					t.Fatalf("%s: it noticed nothing", at)
				}
				w2, j2 := maps.Clone(w), &Memory{entries: slices.Clip(j.entries)}
				if err, _ := process(w, j, quiet(), (*Engine).Run); err != nil {
					t.Fatalf("%s: resumed: %v", at, err)
				}
				finished(t, at, w)
				if err, _ := process(w, j, quiet(), (*Engine).Rollback); err != nil {
					t.Fatalf("%s: resumed, then taken back: %v", at, err)
				}
				returned(t, at+", resumed, then taken back", w)
				if err, _ := process(w2, j2, quiet(), (*Engine).Rollback); err != nil {
					t.Fatalf("%s: taken back: %v", at, err)
				}
				returned(t, at+", taken back", w2)
			}
		})
	}
}

// TestCrashesOfTheWayBack does the same with a rollback, of a plan that was
// left at every point of its run.
func TestCrashesOfTheWayBack(t *testing.T) {
	all := points(t, start(), &Memory{}, (*Engine).Run)
	for k := 1; k <= all; k++ {
		w0, j0 := start(), &Memory{}
		if _, alive := process(w0, j0, &fate{at: k, how: killed}, (*Engine).Run); alive {
			t.Fatalf("alive after %d", k)
		}
		back := points(t, maps.Clone(w0), &Memory{entries: slices.Clip(j0.entries)}, (*Engine).Rollback)
		for _, h := range []how{killed, []how{failed, gone, cancel}[k%3]} {
			for i := 1; i <= back; i++ {
				at := fmt.Sprintf("killed at %d of %d, going back %d at %d of %d", k, all, h, i, back)
				w, j := maps.Clone(w0), &Memory{entries: slices.Clip(j0.entries)}
				process(w, j, &fate{at: i, how: h}, (*Engine).Rollback)
				err, _ := process(w, j, quiet(), (*Engine).Run)
				if err != nil && !errors.Is(err, ErrHalfway) {
					t.Fatalf("%s: run: %v", at, err)
				}
				if err == nil {
					finished(t, at, w)
				}
				if err, _ := process(w, j, quiet(), (*Engine).Rollback); err != nil {
					t.Fatalf("%s: %v", at, err)
				}
				returned(t, at, w)
				if err, _ := process(w, j, quiet(), (*Engine).Run); err != nil {
					t.Fatalf("%s: a second time: %v", at, err)
				}
				finished(t, at+", a second time", w)
			}
		}
	}
}
