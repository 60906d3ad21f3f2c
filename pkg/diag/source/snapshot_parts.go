package source

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
)

// maxParts bounds the files that are read for one query. A node has one health
// check port for each Service with a Local policy.
const maxParts = 5000

// whole gathers the parts of one answer, in whatever order an archive has them.
type whole struct {
	form   Form
	left   int // parts that are not read yet
	pieces []piece
	err    error // of the first part that could not be read
}

// piece is a part that was read, with its path inside the snapshot.
type piece struct {
	path string
	Artifact
}

// parts are the files that hold a part of the topic, sorted by name.
func (s *Snapshot) parts(q Query) []ask {
	spec := s.known.specs[q.Topic]
	before, after, ok := strings.Cut(spec.Part.Stem+spec.Part.Ext, "%s")
	if !ok || !plainName(q.Node) {
		return nil
	}
	w := &whole{form: spec.Forms[0]}
	prefix := path.Join(s.root, "nodes", q.Node) + "/" + before
	members := s.archive.cat.members
	i, _ := slices.BinarySearchFunc(members, prefix, func(m Member, name string) int { return cmp.Compare(m.Name, name) })
	var asks []ask
	for ; i < len(members) && strings.HasPrefix(members[i].Name, prefix); i++ {
		part, ok := strings.CutSuffix(strings.TrimPrefix(members[i].Name, prefix), after)
		if !ok || !plainName(part) {
			continue
		}
		if len(asks) == maxParts {
			w.err = &gapError{query: q, class: ErrCut, reason: fmt.Sprintf("more than %d files", maxParts)}
			break
		}
		asks = append(asks, ask{q, spec.Part, "nodes/" + q.Node + "/" + before + part + after, w})
	}
	w.left = len(asks)
	return asks
}

// take keeps a part. With the last one it is true, and a and err are the
// answer as a whole: without a part of it nothing is told.
func (w *whole) take(name string, a *Artifact, err *error) bool {
	if w.err == nil {
		w.err = *err
	}
	w.pieces = append(w.pieces, piece{name, *a})
	if w.left--; w.left > 0 {
		return false
	}
	slices.SortFunc(w.pieces, func(x, y piece) int { return cmp.Compare(x.path, y.path) })
	var data bytes.Buffer
	for _, p := range w.pieces {
		fmt.Fprintf(&data, "# file: %s\n%s\n", path.Base(p.path), bytes.TrimRight(p.Data, "\n"))
	}
	*a = w.pieces[0].Artifact
	if n := len(w.pieces) - 1; n > 0 {
		a.Origin += fmt.Sprintf(" and %d more of the kind", n)
	}
	if *err = w.err; w.err != nil {
		a.Data = nil
		return true
	}
	a.Data, a.Format, a.Stem = data.Bytes(), w.form.Format, w.form.Stem
	return true
}
