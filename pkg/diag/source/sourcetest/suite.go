package sourcetest

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

type suite struct {
	open func(t *testing.T) source.Source
	want Want
}

func (s suite) about(t *testing.T) {
	if got := s.open(t).About(); got.Kind == "" || got.Name == "" || s.want.Kind != "" && got.Kind != s.want.Kind {
		t.Errorf("About() = %+v, want kind %q and a name", got, s.want.Kind)
	}
}

func (s suite) nodes(t *testing.T) {
	src := s.open(t)
	got, err := src.Nodes(t.Context())
	if err != nil {
		t.Fatalf("Nodes: %v", err)
	}
	if d := gocmp.Diff(s.want.Nodes, got); d != "" {
		t.Errorf("Nodes (-want +got):\n%s", d)
	}
	for i := 1; i < len(got); i++ {
		if got[i-1].Name >= got[i].Name {
			t.Errorf("nodes %q and %q are not in order, or the same", got[i-1].Name, got[i].Name)
		}
	}
	if len(got) > 0 {
		got[0].Name = "changed"
		if again, err := src.Nodes(t.Context()); err != nil || len(again) == 0 || again[0].Name == "changed" {
			t.Errorf("second Nodes = %v, %v: the caller's slice is the source's own", again, err)
		}
	}
}

func (s suite) answers(t *testing.T) {
	src := s.open(t)
	qs := s.everything()
	got := Collect(t, src, qs)
	for q, text := range s.want.Data {
		a := got[q]
		if a.Err != nil {
			t.Errorf("%v: %v, want an answer", q, a.Err)
		} else if d := gocmp.Diff(text, string(a.Artifact.Data)); d != "" {
			t.Errorf("%v (-want +got):\n%s", q, d)
		}
	}
	for q, class := range s.want.Gaps {
		if !errors.Is(got[q].Err, class) {
			t.Errorf("%v: error %v, want %v", q, got[q].Err, class)
		}
	}
	for _, q := range strange() {
		if got[q].Err == nil {
			t.Errorf("%+v is answered, and nothing can answer it", q)
		}
	}
	if _, live := src.Again(); live {
		return
	}
	// Whoever gets an answer may do with its bytes what they like.
	first := map[source.Query]source.Artifact{}
	for q, a := range got {
		kept := a.Artifact
		kept.Data = slices.Clone(kept.Data)
		first[q] = kept
		for i := range a.Artifact.Data {
			a.Artifact.Data[i] = '!'
		}
	}
	second := map[source.Query]source.Artifact{}
	for q, a := range Collect(t, src, qs) {
		second[q] = a.Artifact
	}
	if d := gocmp.Diff(first, second); d != "" {
		t.Errorf("second Collect (-first +second):\n%s", d)
	}
}

func (s suite) nothing(t *testing.T) {
	err := s.open(t).Collect(t.Context(), nil, func(a source.Artifact, err error) {
		t.Errorf("an answer to no query: %+v, %v", a.Query, err)
	})
	if err != nil {
		t.Errorf("Collect of nothing: %v", err)
	}
}

func (s suite) twice(t *testing.T) {
	q := s.one()
	var datas [][]byte
	err := s.open(t).Collect(t.Context(), []source.Query{q, q}, func(a source.Artifact, err error) {
		if err != nil || a.Query != q {
			t.Errorf("%+v, %v, want an answer to %+v", a.Query, err, q)
		}
		datas = append(datas, a.Data)
	})
	if err != nil || len(datas) != 2 {
		t.Fatalf("asked twice: %d answers, %v, want 2", len(datas), err)
	}
	if d := gocmp.Diff(datas[0], datas[1]); d != "" {
		t.Errorf("the two answers differ:\n%s", d)
	}
	if len(datas[0]) > 0 && &datas[0][0] == &datas[1][0] {
		t.Error("the two answers share their bytes")
	}
}

func (s suite) serial(t *testing.T) {
	var inside atomic.Int32
	n := 0
	err := s.open(t).Collect(t.Context(), s.everything(), func(source.Artifact, error) {
		if inside.Add(1) != 1 {
			t.Error("yield is called while it runs")
		}
		if n++; n <= 20 {
			time.Sleep(time.Millisecond)
		}
		inside.Add(-1)
	})
	if err != nil {
		t.Errorf("Collect: %v", err)
	}
}

func (s suite) stoppedBefore(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	src := s.open(t)
	if nodes, err := src.Nodes(ctx); err != nil {
		oneClass(t, "Nodes", err)
	} else if d := gocmp.Diff(s.want.Nodes, nodes); d != "" {
		t.Errorf("Nodes of an ended context says nothing of it and is not whole:\n%s", d)
	}
	s.stopped(t, src, ctx, func(int) {})
}

func (s suite) stoppedWithin(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.stopped(t, s.open(t), ctx, func(n int) {
		if n == 1 {
			cancel()
		}
	})
}

// stopped collects with a context that ends: either all queries are answered,
// most of them with an error, or Collect says that it could not ask.
func (s suite) stopped(t *testing.T, src source.Source, ctx context.Context, answered func(n int)) {
	qs := s.everything()
	seen := map[source.Query]int{}
	n := 0
	begin := time.Now()
	err := src.Collect(ctx, qs, func(a source.Artifact, err error) {
		n++
		seen[a.Query]++
		checkAnswer(t, a, err)
		answered(n)
	})
	if took := time.Since(begin); took > s.want.Prompt {
		t.Errorf("Collect took %v after its context had ended", took)
	}
	for _, q := range qs {
		if seen[q] > 1 || err == nil && seen[q] == 0 {
			t.Errorf("%+v is answered %d times, Collect says %v", q, seen[q], err)
		}
	}
}

func (s suite) again(t *testing.T) {
	next, ok := s.open(t).Again()
	if !ok {
		if next != nil {
			t.Error("Again gives a source and says there is none")
		}
		return
	}
	Collect(t, next, s.everything())
}

// one is a query that is answered.
func (s suite) one() source.Query {
	all := make([]source.Query, 0, len(s.want.Data))
	for q := range s.want.Data {
		all = append(all, q)
	}
	return slices.MinFunc(all, func(a, b source.Query) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Arg, b.Arg))
	})
}

// everything is each topic once, of every node, with what is known to be there
// and not to be, and with what no source can answer.
func (s suite) everything() []source.Query {
	seen := map[source.Query]bool{}
	for _, q := range Queries(s.want.Nodes) {
		seen[q] = true
	}
	for q := range s.want.Data {
		seen[q] = true
	}
	for q := range s.want.Gaps {
		seen[q] = true
	}
	for _, q := range strange() {
		seen[q] = true
	}
	all := make([]source.Query, 0, len(seen))
	for q := range seen {
		all = append(all, q)
	}
	slices.SortFunc(all, func(a, b source.Query) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Arg, b.Arg))
	})
	return all
}

func strange() []source.Query {
	return []source.Query{
		{Topic: "no-such-topic"},
		{Topic: "../../etc/passwd"},
		{Topic: source.Status},
		{Topic: source.Status, Node: "no-such-node"},
		{Topic: source.Status, Node: "../n1"},
		{Topic: source.Services, Node: "no-such-node"},
		{Topic: source.InitLog, Node: "no-such-node", Arg: "../x"},
	}
}
