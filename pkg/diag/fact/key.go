package fact

import (
	"fmt"
	"iter"
	"slices"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// ID names a fact, in kebab case.
type ID string

// Named is a Key without its type: enough to declare that something is needed
// and to know which evidence that costs.
type Named interface {
	ID() ID
	// PerNode reports whether the fact is one of each node.
	PerNode() bool
	// Topics lists the evidence that the fact and everything below it reads.
	Topics() []source.Topic
	fact() *spec
}

// Key gives typed access to one fact.
type Key[T any] struct{ s *spec }

// spec is what a Key is, without the type.
type spec struct {
	id      ID
	perNode bool
	topic   source.Topic // of facts that read evidence, else ""
	decode  func(source.Artifact) (any, error)
	needs   []Named
	derive  func(*View) (any, error)
}

// Read makes a key whose fact is decoded from one topic. decode may return a
// value together with an error: the value is what could be read, the error
// what could not.
func Read[T any](topic source.Topic, decode func(source.Artifact) (T, error)) Key[T] {
	sp, _ := source.SpecOf(topic)
	return Key[T]{&spec{
		id: ID(topic), perNode: sp.Node, topic: topic,
		decode: func(a source.Artifact) (any, error) { return decode(a) },
	}}
}

// Define makes a key whose fact is derived from the facts it names; derive may
// read no others. A fact is per node if it says so.
func Define[T any](id ID, perNode bool, needs []Named, derive func(*View) (T, error)) Key[T] {
	return Key[T]{&spec{
		id: id, perNode: perNode, needs: needs,
		derive: func(v *View) (any, error) { return derive(v) },
	}}
}

// ID is the fact's name.
func (k Key[T]) ID() ID { return k.s.id }

// PerNode reports whether the fact is one of each node.
func (k Key[T]) PerNode() bool { return k.s.perNode }

func (k Key[T]) fact() *spec { return k.s }

// Topics lists the evidence that the fact and everything below it reads,
// sorted.
func (k Key[T]) Topics() []source.Topic { return topicsOf(k.s) }

func topicsOf(s *spec) []source.Topic {
	var out []source.Topic
	if s.topic != "" {
		out = append(out, s.topic)
	}
	for _, n := range s.needs {
		out = append(out, topicsOf(n.fact())...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// From is the fact as seen from v. The error says what was not read and why;
// it wraps one of the source's errors where the evidence is missing. With
// decoding errors the value is what could be read.
func (k Key[T]) From(v *View) (T, error) {
	value, err := v.get(k.s)
	t, ok := value.(T)
	if !ok && err == nil {
		err = fmt.Errorf("%s: no value", k.s.id)
	}
	return t, err
}

// Result is one node's fact.
type Result[T any] struct {
	Value T
	Err   error
}

// Each walks over the fact of every node, in the order of names.
func (k Key[T]) Each(v *View) iter.Seq2[string, Result[T]] {
	return func(yield func(string, Result[T]) bool) {
		for _, n := range v.Nodes() {
			value, err := k.From(v.On(n.Name))
			if !yield(n.Name, Result[T]{value, err}) {
				return
			}
		}
	}
}

// Refs names the evidence that the fact was made from, as seen from v.
func (k Key[T]) Refs(v *View) []Ref { return v.refsOf(k.s) }
