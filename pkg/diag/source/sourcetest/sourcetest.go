// Package sourcetest holds what every Source must do, as a test that each of
// them runs, and a Source in memory for the tests of others.
package sourcetest

import (
	"cmp"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// Want is what a source under test is known to hold.
type Want struct {
	Kind  string
	Nodes []source.Node
	// Data are queries that are answered, with the answer. One is needed.
	Data map[source.Query]string
	// Gaps are queries that are not, with the class of their error.
	Gaps map[source.Query]error
	// Prompt bounds how long Collect takes to come back once its context has
	// ended; default 2s.
	Prompt time.Duration
}

// Answer is what a source said to one query.
type Answer struct {
	Artifact source.Artifact
	Err      error
}

// Conformance runs the suite. open gives a fresh source each time.
func Conformance(t *testing.T, open func(t *testing.T) source.Source, want Want) {
	t.Helper()
	want.Prompt = cmp.Or(want.Prompt, 2*time.Second)
	if len(want.Data) == 0 {
		t.Fatal("the suite needs at least one query that is answered")
	}
	s := suite{open: open, want: want}
	t.Run("about", s.about)
	t.Run("nodes", s.nodes)
	t.Run("answers", s.answers)
	t.Run("nothing asked", s.nothing)
	t.Run("asked twice", s.twice)
	t.Run("not at the same time", s.serial)
	t.Run("stopped before", s.stoppedBefore)
	t.Run("stopped within", s.stoppedWithin)
	t.Run("again", s.again)
}

// Queries asks every topic of the cluster, and every topic that takes no
// argument of each node.
func Queries(nodes []source.Node) []source.Query {
	var qs []source.Query
	for _, spec := range source.Topics() {
		switch {
		case !spec.Node:
			qs = append(qs, source.Query{Topic: spec.Topic})
		case spec.Topic != source.InitLog:
			for _, n := range nodes {
				qs = append(qs, source.Query{Topic: spec.Topic, Node: n.Name})
			}
		}
	}
	return qs
}

// Collect asks a source and fails the test unless each query is answered
// exactly once and every answer is well formed. The queries must differ.
func Collect(t *testing.T, src source.Source, qs []source.Query) map[source.Query]Answer {
	t.Helper()
	got := make(map[source.Query]Answer, len(qs))
	err := src.Collect(t.Context(), qs, func(a source.Artifact, err error) {
		if _, ok := got[a.Query]; ok {
			t.Errorf("%+v is answered twice", a.Query)
		}
		checkAnswer(t, a, err)
		got[a.Query] = Answer{a, err}
	})
	if err != nil {
		t.Fatalf("Collect: %v", err)
	}
	for _, q := range qs {
		if _, ok := got[q]; !ok {
			t.Errorf("%+v is not answered", q)
		}
	}
	if len(got) != len(qs) {
		t.Errorf("%d answers to %d queries", len(got), len(qs))
	}
	return got
}

func checkAnswer(t *testing.T, a source.Artifact, err error) {
	t.Helper()
	if err != nil {
		oneClass(t, string(a.Query.Topic), err)
		return
	}
	spec, ok := source.SpecOf(a.Query.Topic)
	if !ok {
		t.Errorf("%+v is answered, and the topic is not known", a.Query)
		return
	}
	if !slices.ContainsFunc(spec.Forms, func(f source.Form) bool { return f.Stem == a.Stem && f.Format == a.Format }) {
		t.Errorf("%+v: stem %q in %q is no form of the topic", a.Query, a.Stem, a.Format)
	}
	if a.Origin == "" {
		t.Errorf("%+v: no origin", a.Query)
	}
}

func oneClass(t *testing.T, what string, err error) {
	t.Helper()
	n := 0
	for _, class := range []error{source.ErrAbsent, source.ErrForbidden, source.ErrUnreachable, source.ErrCut} {
		if errors.Is(err, class) {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%s: error %q is of %d classes, want exactly one", what, err, n)
	}
}
