package checkpoint

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/report"
)

func at(minutes int) time.Time { return time.Date(2026, 12, 1, 0, minutes, 0, 0, time.UTC) }

// TestSoakGoesOn: a soak that was interrupted goes on with its file, and shows
// when nobody looked; a line that a crash cut is as if it were not written.
func TestSoakGoesOn(t *testing.T) {
	name := filepath.Join(t.TempDir(), "soak.jsonl")
	first, err := Resume(name, 5*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []int{0, 5, 10} {
		if err := first.Add(name, Look{Time: at(m), Outcome: "ok", Text: "fine"}); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"time":"2026-12-`); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Resume(name, 5*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first.Looks, again.Looks); diff != "" {
		t.Fatalf("(-wrote +read):\n%s", diff)
	}
	if err := again.Add(name, Look{Time: at(40), Outcome: "found", Text: "worse"}); err != nil {
		t.Fatal(err)
	}
	last, err := Resume(name, 5*time.Minute)
	if err != nil || len(last.Looks) != 4 {
		t.Fatalf("%d looks, %v; want 4", len(last.Looks), err)
	}
	if diff := cmp.Diff([]Gap{{at(10), at(40)}}, last.Gaps()); diff != "" {
		t.Errorf("gaps (-want +got):\n%s", diff)
	}
	if last.Lasted() != 40*time.Minute || last.Count(report.OK) != 3 || last.Count(report.Found) != 1 {
		t.Errorf("lasted %s, %d ok, %d found", last.Lasted(), last.Count(report.OK), last.Count(report.Found))
	}
}

func TestSoakRefusesOtherFiles(t *testing.T) {
	for _, text := range []string{"hello\n", "{\"a\":1}\n{\"b\":2}\n", "x\n" + `{"time":"2026-12-01T00:00:00Z","outcome":"ok"}` + "\n"} {
		name := filepath.Join(t.TempDir(), "other")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Resume(name, time.Minute); err == nil || !strings.Contains(err.Error(), "not a look") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestSoakRun: a look that fails has seen nothing and does not end the soak;
// the end of the context does.
func TestSoakRun(t *testing.T) {
	s := &Soak{interval: time.Nanosecond}
	n := 0
	err := s.Run(context.Background(), time.Now, "", 2*time.Minute, func(context.Context) (Look, error) {
		n++
		if n == 2 {
			return Look{}, errors.New("no route")
		}
		return Look{Time: time.Now().Add(time.Duration(n-1) * time.Minute), Outcome: "ok"}, nil
	}, func(Look) {})
	if err != nil || len(s.Looks) != 3 || s.Count(report.Unknown) != 1 {
		t.Errorf("%+v %v", s.Looks, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	endless := &Soak{interval: time.Hour}
	err = endless.Run(ctx, time.Now, "", time.Hour, func(context.Context) (Look, error) { return Look{Time: at(0), Outcome: "ok"}, nil }, func(Look) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want canceled", err)
	}
}
