package fact

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// Ref points at the evidence behind a fact. The evidence itself is gone; what
// is kept is enough to find it again and to tell whether it is the same.
type Ref struct {
	Topic  source.Topic `json:"topic"`
	Node   string       `json:"node,omitempty"`
	Origin string       `json:"origin"`
	Size   int          `json:"size"`
	SHA256 string       `json:"sha256,omitempty"`
	Read   time.Time    `json:"read,omitzero"`
}

// Store holds the facts of one run. It is not safe for concurrent use.
type Store struct {
	nodes  []source.Node
	cells  map[cell]*entry
	within string
	twins  map[string]string // see StandIn
}

type cell struct {
	id   ID
	node string
}

type entry struct {
	value any
	err   error
	refs  []Ref
	busy  bool
}

// NewStore makes a store for the given nodes, which it sorts by name.
func NewStore(nodes []source.Node) *Store {
	nodes = slices.Clone(nodes)
	slices.SortFunc(nodes, func(a, b source.Node) int { return strings.Compare(a.Name, b.Name) })
	return &Store{nodes: nodes, cells: map[cell]*entry{}}
}

// Within restricts what is derived of load balancing to the Services of one
// namespace and to what stands at their addresses: who asks about one Service
// of thousands on a thousand nodes need not compare them all. It has to be
// called before anything is derived.
func (s *Store) Within(namespace string) { s.within = namespace }

// Queries lists what a source must be asked to know the given facts: cluster
// topics once, node topics for each node of the store.
func (s *Store) Queries(facts ...Named) []source.Query {
	topics := map[source.Topic]bool{}
	for _, f := range facts {
		for _, t := range f.Topics() {
			topics[t] = true
		}
	}
	var qs []source.Query
	for _, sp := range source.Topics() {
		switch {
		case !topics[sp.Topic]:
		case !sp.Node:
			qs = append(qs, source.Query{Topic: sp.Topic})
		default:
			for _, n := range s.nodes {
				qs = append(qs, source.Query{Topic: sp.Topic, Node: n.Name, Arg: sp.Arg})
			}
		}
	}
	return qs
}

// Taker decodes artifacts of the given facts into the store.
func (s *Store) Taker(facts ...Named) func(source.Artifact, error) {
	readers := map[source.Topic]*spec{}
	var walk func(*spec)
	walk = func(sp *spec) {
		if sp.topic != "" {
			readers[sp.topic] = sp
		}
		for _, n := range sp.needs {
			walk(n.fact())
		}
	}
	for _, f := range facts {
		walk(f.fact())
	}
	return func(a source.Artifact, err error) {
		if sp := readers[a.Query.Topic]; sp != nil {
			s.take(sp, a, err)
		}
	}
}

// take decodes one answer and keeps the value and where it came from.
func (s *Store) take(sp *spec, a source.Artifact, err error) {
	e := &entry{}
	switch {
	case err != nil:
		e.err = err // a source names the topic and the node itself
	default:
		sum := sha256.Sum256(a.Data)
		e.refs = []Ref{{
			Topic: a.Query.Topic, Node: a.Query.Node, Origin: a.Origin,
			Size: len(a.Data), SHA256: hex.EncodeToString(sum[:]), Read: a.Read,
		}}
		e.value, e.err = sp.decode(a)
		if e.err != nil {
			e.err = fmt.Errorf("%s: %w", a.Origin, e.err)
		}
	}
	s.cells[cell{sp.id, a.Query.Node}] = e
}

// Cluster is the view of the cluster as a whole.
func (s *Store) Cluster() *View { return &View{store: s} }

// View looks at a store from a node, or from the cluster.
type View struct {
	store  *Store
	node   string
	reads  func(ID) // told of each fact that is read directly
	within *spec    // the fact being derived, which may read only what it declared
	into   *entry   // collects the refs of what is read
}

// Nodes lists the nodes of the run, sorted by name.
func (v *View) Nodes() []source.Node { return v.store.nodes }

// Within is the namespace that load balancing is restricted to, "" for none.
func (v *View) Within() string { return v.store.within }

// Node is the name of the node that v looks from, "" for the cluster.
func (v *View) Node() string { return v.node }

// Source is the node that v looks from, as the source told of it.
func (v *View) Source() source.Node {
	i, ok := slices.BinarySearchFunc(v.store.nodes, v.node, func(n source.Node, name string) int { return strings.Compare(n.Name, name) })
	if !ok {
		return source.Node{Name: v.node}
	}
	return v.store.nodes[i]
}

// On is the same view from a node.
func (v *View) On(node string) *View {
	w := *v
	w.node = node
	return &w
}

// Watched is the same view with each direct read told to f.
func (v *View) Watched(f func(ID)) *View {
	w := *v
	w.reads = f
	return &w
}

// ErrUndeclared is a fault of this program: a fact was read by one that had
// not declared it.
var ErrUndeclared = errors.New("read without being declared")

func (v *View) get(sp *spec) (any, error) {
	if v.reads != nil {
		v.reads(sp.id)
	}
	if v.within != nil && !slices.ContainsFunc(v.within.needs, func(n Named) bool { return n.fact() == sp }) {
		return nil, fmt.Errorf("%s in %s: %w", sp.id, v.within.id, ErrUndeclared)
	}
	e := v.entry(sp)
	if v.into != nil {
		v.into.refs = append(v.into.refs, e.refs...)
	}
	return e.value, e.err
}

func (v *View) refsOf(sp *spec) []Ref { return slices.Clone(v.entry(sp).refs) }

// entry finds or derives a fact.
func (v *View) entry(sp *spec) *entry {
	at := cell{id: sp.id}
	if sp.perNode {
		at.node = v.node
	}
	if sp.perNode && v.node == "" {
		return &entry{err: fmt.Errorf("%s: a fact of nodes, asked of the cluster", sp.id)}
	}
	if twin := v.store.twins[at.node]; twin != "" && v.store.stoodIn(sp) {
		return v.standIn(sp, twin)
	}
	if e := v.store.cells[at]; e != nil {
		if e.busy {
			return &entry{err: fmt.Errorf("%s: derived from itself", sp.id)}
		}
		return e
	}
	if sp.derive == nil {
		return &entry{err: fmt.Errorf("%s: not asked for: %w", sp.id, source.ErrAbsent)}
	}
	e := &entry{busy: true}
	v.store.cells[at] = e
	e.value, e.err = sp.derive(&View{store: v.store, node: at.node, within: sp, into: e})
	e.refs = uniqueRefs(e.refs)
	e.busy = false
	return e
}

func uniqueRefs(refs []Ref) []Ref {
	seen := map[Ref]bool{}
	return slices.DeleteFunc(refs, func(r Ref) bool {
		was := seen[r]
		seen[r] = true
		return was
	})
}

// Err is why a fact is not known as seen from v, nil if it is.
func (v *View) Err(f Named) error {
	_, err := v.get(f.fact())
	return err
}

// Refs names the evidence behind a fact as seen from v.
func (v *View) Refs(f Named) []Ref { return v.refsOf(f.fact()) }
