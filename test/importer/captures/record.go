package captures

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// A build is a source.Source, so that the tool's own recorder writes fixtures:
// they cannot drift from the format. A topic kept in two forms is asked twice,
// and so is one that is there in part: once for what there is, once for why
// that is not all.

// queries are all that the recording has an answer to.
func (b *build) queries() []source.Query {
	var qs []source.Query
	for _, a := range b.answers {
		qs = append(qs, a.Query)
	}
	return qs
}

// Collect answers queries in the order of the recording, a repeated one with
// the next of its answers.
func (b *build) Collect(_ context.Context, qs []source.Query, yield func(source.Artifact, error)) error {
	left := map[source.Query][]answer{}
	for _, a := range b.answers {
		left[a.Query] = append(left[a.Query], a)
	}
	for _, q := range qs {
		answers := left[q]
		if len(answers) == 0 {
			yield(source.Artifact{Query: q}, notRecorded)
			continue
		}
		left[q] = answers[1:]
		yield(answers[0].Artifact, answers[0].err)
	}
	return nil
}

// About tells the time of the last line that the agents wrote: the recordings
// themselves bear none. It is zero where no agent told a time.
func (b *build) About() source.About {
	return source.About{Kind: "recording", Name: b.recipe.From, Context: "lab", Version: b.kubernetes, Recorded: b.latest}
}

// Nodes are those of which anything was recorded.
func (b *build) Nodes(context.Context) ([]source.Node, error) {
	var nodes []source.Node
	for _, name := range b.nodes {
		nodes = append(nodes, source.Node{Name: name})
	}
	return nodes, nil
}

// Again is false: a recording does not change.
func (b *build) Again() (source.Source, bool) { return nil, false }

// versions are Cilium's, as far as the recording tells.
func (b *build) versions() []string {
	if b.cilium == "" {
		return nil
	}
	return []string{b.cilium}
}

// memory is a source.SnapshotWriter: files by path.
type memory map[string][]byte

// Add keeps a file.
func (m memory) Add(name string, data []byte, _ time.Time) error {
	if _, ok := m[name]; ok {
		return fmt.Errorf("%s: written twice", name)
	}
	m[name] = data
	return nil
}

// Close does nothing.
func (memory) Close() error { return nil }

// write replaces a folder by the given files.
func write(dir string, files map[string][]byte) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, files[name], 0o644); err != nil {
			return err
		}
	}
	return nil
}
