package fact_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source/sourcetest"
)

var size = fact.Read(source.Status, func(a source.Artifact) (int, error) {
	if len(a.Data) == 0 {
		return -1, errors.New("nothing in it")
	}
	return len(a.Data), nil
})

func store(t *testing.T, facts ...fact.Named) *fact.Store {
	t.Helper()
	s := fact.NewStore([]source.Node{{Name: "n2"}, {Name: "n1"}, {Name: "n3"}})
	take := s.Taker(facts...)
	for node, data := range map[string]string{"n1": "abc", "n2": ""} {
		take(source.Artifact{Query: source.Query{Topic: source.Status, Node: node}, Data: []byte(data), Origin: "file of " + node}, nil)
	}
	take(source.Artifact{Query: source.Query{Topic: source.Status, Node: "n3"}}, source.ErrForbidden)
	take(source.Artifact{Query: source.Query{Topic: source.Version, Node: "n1"}, Data: []byte("x")}, nil) // nobody asked
	return s
}

func TestReadKeepsValuesErrorsAndOrigins(t *testing.T) {
	v := store(t, size).Cluster()
	if got, err := size.From(v.On("n1")); got != 3 || err != nil {
		t.Errorf("n1: %d, %v", got, err)
	}
	if got, err := size.From(v.On("n2")); got != -1 || err == nil {
		t.Errorf("n2: what could be read has to come with the error: %d, %v", got, err)
	}
	if _, err := size.From(v.On("n3")); !errors.Is(err, source.ErrForbidden) {
		t.Errorf("n3: %v", err)
	}
	if _, err := size.From(v); err == nil {
		t.Error("a fact of nodes was known to the cluster")
	}
	refs := size.Refs(v.On("n1"))
	if len(refs) != 1 || refs[0].Origin != "file of n1" || refs[0].Size != 3 || len(refs[0].SHA256) != 64 {
		t.Errorf("refs: %+v", refs)
	}
	var names []string
	for node := range size.Each(v) {
		names = append(names, node)
	}
	if diff := cmp.Diff([]string{"n1", "n2", "n3"}, names); diff != "" {
		t.Error(diff)
	}
}

func TestDeriveOnceAndWithRefs(t *testing.T) {
	runs := 0
	double := fact.Define("double", true, []fact.Named{size}, func(v *fact.View) (int, error) {
		runs++
		n, err := size.From(v)
		return 2 * n, err
	})
	v := store(t, double).Cluster()
	for range 3 {
		if got, err := double.From(v.On("n1")); got != 6 || err != nil {
			t.Fatalf("%d, %v", got, err)
		}
	}
	if runs != 1 {
		t.Errorf("derived %d times", runs)
	}
	if refs := double.Refs(v.On("n1")); len(refs) != 1 || refs[0].Node != "n1" {
		t.Errorf("refs: %+v", refs)
	}
	if diff := cmp.Diff([]source.Topic{source.Status}, double.Topics()); diff != "" {
		t.Error(diff)
	}
}

func TestDeriveMayReadOnlyWhatItDeclares(t *testing.T) {
	sneaky := fact.Define("sneaky", true, nil, func(v *fact.View) (int, error) { return size.From(v) })
	v := store(t, size, sneaky).Cluster()
	if _, err := sneaky.From(v.On("n1")); !errors.Is(err, fact.ErrUndeclared) {
		t.Errorf("%v", err)
	}
}

func TestQueries(t *testing.T) {
	s := fact.NewStore([]source.Node{{Name: "b"}, {Name: "a"}})
	want := []source.Query{
		{Topic: source.Nodes},
		{Topic: source.Status, Node: "a"},
		{Topic: source.Status, Node: "b"},
	}
	if diff := cmp.Diff(want, s.Queries(fact.Nodes, size, size)); diff != "" {
		t.Error(diff)
	}
}

// TestSpellingsOfLists reads the forms in which Kubernetes lists are found.
func TestSpellingsOfLists(t *testing.T) {
	for name, data := range map[string]string{
		"list":       "kind: List\nitems:\n- kind: Node\n  metadata: {name: n1}\n",
		"typed":      "kind: NodeList\nitems:\n- metadata: {name: n1}\n",
		"one object": "kind: Node\nmetadata: {name: n1}\n",
	} {
		t.Run(name, func(t *testing.T) {
			nodes, err := readNodes(t, data)
			if err != nil || len(nodes) != 1 || nodes[0] != "n1" {
				t.Errorf("%v, %v", nodes, err)
			}
		})
	}
	if nodes, err := readNodes(t, "kind: NodeList\nitems: []\n"); err != nil || len(nodes) != 0 {
		t.Errorf("empty list: %v, %v", nodes, err)
	}
	for name, data := range map[string]string{"no list": "a: 1\n", "no yaml": "\t{", "List without items": "kind: List\n", "wrong type": "kind: NodeList\nitems: 7\n"} {
		if nodes, err := readNodes(t, data); err == nil {
			t.Errorf("%s: read as %v", name, nodes)
		}
	}
}

func readNodes(t *testing.T, data string) ([]string, error) {
	t.Helper()
	src := &sourcetest.Memory{Files: map[string]string{"nodes.yaml": data}}
	s := fact.NewStore(nil)
	if err := src.Collect(context.Background(), s.Queries(fact.Nodes), s.Taker(fact.Nodes)); err != nil {
		t.Fatal(err)
	}
	nodes, err := fact.Nodes.From(s.Cluster())
	var names []string
	for _, n := range nodes {
		names = append(names, n.Name)
	}
	return names, err
}
