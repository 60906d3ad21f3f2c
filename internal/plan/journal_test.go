package plan

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func lines(n int) []Entry {
	out := []Entry{{Event: Opened, Plan: &Opening{ID: "a", Digest: "d", Inputs: []byte(`{"x":1}`)}}}
	for i := 1; i < n; i++ {
		out = append(out, Entry{Seq: i, Event: Begun, Stage: "s", Step: "x", Record: []byte(`{"k":"v"}`)})
	}
	return out
}

func fill(t *testing.T, j Journal, es []Entry) {
	t.Helper()
	if _, err := j.Entries(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, e := range es {
		if err := j.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFile: what was appended is read by another process; a line cut by a crash
// at any byte is as if it had not been written, and the next one takes its place.
func TestFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "journal.jsonl")
	want := lines(3)
	fill(t, NewFile(name), want)
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	last := bytes.LastIndexByte(bytes.TrimSpace(whole), '\n') + 1
	for cut := last; cut <= len(whole); cut++ {
		if err := os.WriteFile(name, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		f := NewFile(name)
		got, err := f.Entries(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n := len(got); n != 2 && cut < len(whole) || n != 3 && cut == len(whole) {
			t.Fatalf("cut at %d: %d entries", cut, n)
		}
		if len(got) == 2 {
			fill(t, f, nil)
			if err := f.Append(t.Context(), want[2]); err != nil {
				t.Fatal(err)
			}
		}
		again, err := NewFile(name).Entries(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, again); diff != "" {
			t.Fatalf("cut at %d: %s", cut, diff)
		}
	}
}

func TestFileRefuses(t *testing.T) {
	name := filepath.Join(t.TempDir(), "j")
	a, b := NewFile(name), NewFile(name)
	fill(t, a, lines(1))
	fill(t, b, nil)
	fill(t, a, lines(2)[1:])
	for who, j := range map[string]*File{"overtaken": b, "gap": a} {
		e := lines(2)[1]
		if who == "gap" {
			e.Seq = 9
		}
		if err := j.Append(t.Context(), e); !errors.Is(err, ErrConflict) {
			t.Errorf("%s: %v", who, err)
		}
	}
	for _, text := range []string{"hello\n", "{}\n", `{"seq":1,"event":"done"}` + "\n", "\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := NewFile(name).Entries(t.Context()); err == nil || !strings.Contains(err.Error(), "line 1") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestCopied: the copy catches up, and the copy of another run is refused.
func TestCopied(t *testing.T) {
	main, name := &Memory{}, filepath.Join(t.TempDir(), "copy")
	fill(t, main, lines(3))
	c := Copied{main, NewFile(name)}
	fill(t, c, nil)
	if err := c.Append(t.Context(), lines(4)[3]); err != nil {
		t.Fatal(err)
	}
	for who, j := range map[string]Journal{"main": main, "copy": NewFile(name)} {
		got, err := j.Entries(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(lines(4), got); diff != "" {
			t.Errorf("%s: %s", who, diff)
		}
	}
	other := &Memory{}
	es := lines(5)
	es[0].Plan = &Opening{ID: "b", Digest: "d"}
	fill(t, other, es)
	for _, m := range []*Memory{other, {}} {
		if _, err := (Copied{m, NewFile(name)}).Entries(t.Context()); !errors.Is(err, ErrChanged) {
			t.Errorf("%v", err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{"seq":0,"event":"opened","plan":{"id":"a"}}`, `{"seq":0,"event":"begun","record":{"a":[1]}}`, `[]`, `{"seq":0,"event":"done","time":"2026-12-01T00:00:00Z"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		e, err := Decode(line, 0)
		if err == nil && (e.Event == "" || e.Seq != 0) {
			t.Errorf("%q became %+v", line, e)
		}
		if err == nil {
			_, _ = StandOf(&Plan{Kind: "k", Stages: []Stage{{Name: "s"}}}, []Entry{e})
		}
	})
}
