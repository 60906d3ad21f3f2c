package sourcetest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// Memory is a Source held in memory. Its files have the paths that a snapshot
// gives them, such as "services.yaml" or "nodes/n1/status.json". The zero
// Memory is an empty source.
type Memory struct {
	Info   source.About // Kind is "cluster" and Name "memory" if empty
	Files  map[string]string
	Exits  map[string]int // exit codes by path
	Read   time.Time      // of every artifact
	Errors map[source.Query]error
	// Reasons are the nodes without an agent. The other nodes are those that
	// have a file.
	Reasons map[string]string
	// Next is what Again gives, nil for a source that does not change.
	Next *Memory
}

// About is Info.
func (m *Memory) About() source.About {
	about := m.Info
	about.Kind = cmp.Or(about.Kind, "cluster")
	about.Name = cmp.Or(about.Name, "memory")
	return about
}

// Nodes lists the nodes of Files and Reasons.
func (m *Memory) Nodes(ctx context.Context) ([]source.Node, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("nodes: %w: %w", source.ErrUnreachable, err)
	}
	reasons := map[string]string{}
	for name := range m.Files {
		if rest, ok := strings.CutPrefix(name, "nodes/"); ok {
			reasons[path.Dir(rest)] = ""
		}
	}
	maps.Copy(reasons, m.Reasons)
	var all []source.Node
	for _, name := range slices.Sorted(maps.Keys(reasons)) {
		all = append(all, source.Node{Name: name, Reason: reasons[name]})
	}
	return all, nil
}

// Collect answers in the order of the queries.
func (m *Memory) Collect(ctx context.Context, qs []source.Query, yield func(source.Artifact, error)) error {
	for _, q := range qs {
		if err := ctx.Err(); err != nil {
			yield(source.Artifact{Query: q}, fmt.Errorf("%s: %w: %w", q.Topic, source.ErrUnreachable, err))
			continue
		}
		yield(m.answer(q))
	}
	return nil
}

func (m *Memory) answer(q source.Query) (source.Artifact, error) {
	none := source.Artifact{Query: q}
	if err, ok := m.Errors[q]; ok {
		return none, err
	}
	spec, ok := source.SpecOf(q.Topic)
	if !ok || spec.Node != (q.Node != "") {
		return none, fmt.Errorf("%s on %q: %w: no such query", q.Topic, q.Node, source.ErrAbsent)
	}
	for _, f := range spec.Forms {
		name, err := f.File(q)
		if err != nil {
			return none, fmt.Errorf("%s: %w: %w", q.Topic, source.ErrAbsent, err)
		}
		if data, ok := m.Files[name]; ok {
			return source.Artifact{
				Query: q, Format: f.Format, Stem: f.Stem, Data: []byte(data), Origin: name, Read: m.Read, Exit: m.Exits[name],
			}, nil
		}
	}
	return none, fmt.Errorf("%s on %q: %w", q.Topic, q.Node, source.ErrAbsent)
}

// Again is Next.
func (m *Memory) Again() (source.Source, bool) {
	if m.Next == nil {
		return nil, false
	}
	return m.Next, true
}
