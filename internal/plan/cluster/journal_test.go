package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-kpr/kubectl-kpr/internal/kube/write"
	"github.com/kubectl-kpr/kubectl-kpr/internal/plan"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// server is a Store that does as an API server does: versions, and a megabyte
// for an object.
type server struct {
	objects map[string]*corev1.ConfigMap
	version int
	puts    int
	bytes   int
	largest int
	// fails, if not nil, is asked before (true) and after each write.
	fails func(before bool) error
}

func (s *server) Get(_ context.Context, name string) (*corev1.ConfigMap, error) {
	cm, ok := s.objects[name]
	if !ok {
		return nil, fmt.Errorf("get %s: %w", name, source.ErrAbsent)
	}
	return cm.DeepCopy(), nil
}

func (s *server) List(context.Context, string) ([]corev1.ConfigMap, error) {
	var out []corev1.ConfigMap
	for _, cm := range s.objects {
		if cm.Labels[labelKind] != "" {
			out = append(out, *cm)
		}
	}
	return out, nil
}

func (s *server) Put(_ context.Context, cm *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	if s.fails != nil {
		if err := s.fails(true); err != nil {
			return nil, err
		}
	}
	old, ok := s.objects[cm.Name]
	if ok != (cm.ResourceVersion != "") || ok && old.ResourceVersion != cm.ResourceVersion {
		return nil, fmt.Errorf("put %s: %w", cm.Name, write.ErrChanged)
	}
	size := 0
	for k, v := range cm.Data {
		size += len(k) + len(v)
	}
	if size > 1<<20 {
		return nil, write.ErrTooLarge
	}
	cm = cm.DeepCopy()
	if !ok || !maps.Equal(old.Data, cm.Data) { // what changes nothing keeps its version
		s.version++
		cm.ResourceVersion = strconv.Itoa(s.version)
	}
	s.puts, s.bytes, s.largest = s.puts+1, s.bytes+size, max(s.largest, size)
	s.objects[cm.Name] = cm
	if s.fails != nil {
		if err := s.fails(false); err != nil {
			return nil, err
		}
	}
	return cm.DeepCopy(), nil
}

func empty() *server { return &server{objects: map[string]*corev1.ConfigMap{}} }

func entry(seq int) plan.Entry {
	if seq == 0 {
		return plan.Entry{Event: plan.Opened, Plan: &plan.Opening{ID: "a", Kind: "test"}}
	}
	return plan.Entry{Seq: seq, Event: plan.Begun, Stage: "s", Step: fmt.Sprint("clean/n", seq), Record: []byte(`"` + strings.Repeat("x", 20<<10) + `"`)}
}

func read(t *testing.T, s *server) []plan.Entry {
	t.Helper()
	got, err := New(s, "a").Entries(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestCrashes: an entry is in the journal as a whole or not at all, at
// whichever write it ends; who comes after reads all that was acknowledged and
// goes on. Entries are large, so that chunks are opened on the way.
func TestCrashes(t *testing.T) {
	const all = 8
	errDead := errors.New("dead")
	run := func(s *server) int { // how many entries were acknowledged
		j := New(s, "a")
		for seq := range all {
			if j.Append(t.Context(), entry(seq)) != nil {
				return seq
			}
		}
		return all
	}
	whole := empty()
	if run(whole) != all || len(read(t, whole)) != all || len(whole.objects) < 4 {
		t.Fatalf("undisturbed: %d objects", len(whole.objects))
	}
	for at := range whole.puts {
		for _, before := range []bool{true, false} {
			s, n := empty(), 0
			s.fails = func(b bool) error {
				if b != before {
					return nil
				}
				if n++; n > at {
					return errDead
				}
				return nil
			}
			acknowledged := run(s)
			s.fails = nil
			got := read(t, s)
			if len(got) < acknowledged || len(got) > acknowledged+1 {
				t.Fatalf("write %d, before %v: %d were acknowledged, %d are there", at, before, acknowledged, len(got))
			}
			j := New(s, "a")
			for seq := len(got); seq < all; seq++ {
				if err := j.Append(t.Context(), entry(seq)); err != nil {
					t.Fatalf("write %d, before %v: entry %d: %v", at, before, seq, err)
				}
			}
			if !reflect.DeepEqual(read(t, whole), read(t, s)) {
				t.Fatalf("write %d, before %v: other entries", at, before)
			}
		}
	}
}

// TestTwoWriters: the one from before gets nothing in, at whichever of his
// writes the other one came, and nothing of the later one is lost.
func TestTwoWriters(t *testing.T) {
	for at := range 14 {
		s := empty()
		first := New(s, "a")
		for seq := range 4 {
			if err := first.Append(t.Context(), entry(seq)); err != nil {
				t.Fatal(err)
			}
		}
		n, done := 0, false
		s.fails = func(before bool) error {
			if n++; n != at+1 || done {
				return nil
			}
			done = true
			hook := s.fails
			s.fails = nil
			second := New(s, "a")
			have, err := second.Entries(t.Context())
			for seq := len(have); err == nil && seq < 7; seq++ {
				e := entry(seq)
				e.Text = "second"
				err = second.Append(t.Context(), e)
			}
			if err != nil {
				t.Fatalf("at %d: the later writer: %v", at, err)
			}
			s.fails = hook
			return nil
		}
		acknowledged := 0
		for seq := 4; seq < 8; seq++ {
			e := entry(seq)
			e.Text = "first"
			if err := first.Append(t.Context(), e); err != nil {
				if !errors.Is(err, plan.ErrConflict) {
					t.Fatalf("at %d: %v", at, err)
				}
				break
			}
			acknowledged = seq
		}
		s.fails = nil
		for i, e := range read(t, s) {
			if i >= 4 && i <= acknowledged && e.Text != "first" && acknowledged > 4 {
				t.Fatalf("at %d: entry %d was acknowledged to the first and is %q", at, i, e.Text)
			}
		}
	}
}

// TestAThousandNodes runs a plan with a step for each of a thousand nodes.
func TestAThousandNodes(t *testing.T) {
	s := empty()
	p := &plan.Plan{Kind: "test", Target: "c", Stages: []plan.Stage{{Name: "nodes"}}}
	nothing := func(context.Context, plan.Record) error { return nil }
	for n := range 1000 {
		p.Stages[0].Steps = append(p.Stages[0].Steps, plan.Step{
			Name: "clean", Node: fmt.Sprintf("ip-10-0-%d-%d.eu-central-1.compute.internal", n/250, n%250),
			Capture: func(context.Context) (plan.Record, error) {
				return []byte(`{"path":"/var/lib/kubectl-kpr/residue-20261201-120000.json","sha256":"` + strings.Repeat("0", 64) + `","size":18345}`), nil
			},
			Apply: nothing, Verify: nothing, Undo: nothing, Undone: nothing,
		})
	}
	e := &plan.Engine{ID: "a", Journal: New(s, "a"), Now: func() time.Time { return time.Unix(0, 0) }}
	if _, err := e.Run(t.Context(), p, plan.Options{}); err != nil {
		t.Fatal(err)
	}
	entries := read(t, s)
	fresh := &plan.Engine{ID: "a", Journal: New(s, "a"), Now: e.Now}
	stand, err := fresh.Stand(t.Context(), p)
	if err != nil || !stand.Complete() || len(entries) != 2004 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	t.Logf("%d entries in %d objects, the largest %d bytes; %d writes of %d bytes in all", len(entries), len(s.objects), s.largest, s.puts, s.bytes)
	if s.largest > 256<<10 {
		t.Errorf("an object of %d bytes", s.largest)
	}
	if _, err := fresh.Rollback(t.Context(), p, plan.Options{}); err != nil {
		t.Fatal(err)
	}
}

// TestFull: the server's refusal is the journal's.
func TestFull(t *testing.T) {
	s := empty()
	j := New(s, "a")
	if err := j.Append(t.Context(), entry(0)); err != nil {
		t.Fatal(err)
	}
	e := entry(1)
	e.Record = []byte(`"` + strings.Repeat("x", 1<<20) + `"`)
	if err := j.Append(t.Context(), e); !errors.Is(err, plan.ErrFull) {
		t.Fatalf("%v", err)
	}
	if err := j.Append(t.Context(), entry(1)); err != nil || len(read(t, s)) != 2 {
		t.Fatalf("afterwards: %v", err)
	}
}

func TestFind(t *testing.T) {
	s := empty()
	for _, id := range []string{"a", "b"} {
		j := New(s, id)
		if err := j.Append(t.Context(), entry(0)); err != nil {
			t.Fatal(err)
		}
		if id == "b" {
			if err := j.Append(t.Context(), plan.Entry{Seq: 1, Event: plan.Closed}); err != nil {
				t.Fatal(err)
			}
		}
	}
	found, err := Find(t.Context(), s, "test")
	if err != nil || len(found) != 2 {
		t.Fatalf("%v %v", found, err)
	}
	for _, f := range found {
		if f.Kind != "test" || f.Closed != (f.ID == "b") {
			t.Errorf("%+v", f)
		}
	}
}

// TestDamaged: what somebody has edited is told, not guessed at.
func TestDamaged(t *testing.T) {
	for name, damage := range map[string]func(*server){
		"chunk gone":    func(s *server) { delete(s.objects, "kpr-journal-a-0000") },
		"entry gone":    func(s *server) { s.objects["kpr-journal-a-0000"].Data[keyEntries] = "" },
		"index":         func(s *server) { s.objects["kpr-journal-a"].Data[keyEntries] = "many" },
		"no more lines": func(s *server) { s.objects["kpr-journal-a"].Data[keyChunks] = "-1" },
		"not JSON":      func(s *server) { s.objects["kpr-journal-a-0000"].Data[keyEntries] = "x\n" },
	} {
		s := empty()
		if err := New(s, "a").Append(t.Context(), entry(0)); err != nil {
			t.Fatal(err)
		}
		damage(s)
		if _, err := New(s, "a").Entries(t.Context()); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
