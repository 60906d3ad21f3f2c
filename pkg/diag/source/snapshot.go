package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

// Snapshot is recorded evidence: a folder or an archive of files named after
// what was read, see Form.File. The file snapshot.yaml tells when, from where
// and what could not be read; a snapshot made by hand does without.
type Snapshot struct {
	archive *Archive
	root    string // folder of the archive that is the snapshot, "." for its top
	known   specTable
	record  manifest
	index   map[string]Recorded // by path inside the snapshot
	gaps    map[Query]Gap
	nodes   []Node
	nodeErr error
}

// ErrNotSnapshot is wrapped where a folder or archive is sound but holds no
// snapshot. It may be a cilium sysdump.
var ErrNotSnapshot = errors.New("no snapshot in it")

// OpenSnapshot opens a folder, a tar, a tar.gz or a zip file with the default
// Limits. Errors wrap ErrNotSnapshot, ErrUnsafe or ErrCut where they apply.
func OpenSnapshot(path string) (*Snapshot, error) {
	return OpenSnapshotWithin(path, Limits{})
}

// OpenSnapshotWithin is OpenSnapshot with other limits.
func OpenSnapshotWithin(path string, lim Limits) (*Snapshot, error) {
	a, err := OpenArchive(path, lim)
	if err != nil {
		return nil, err
	}
	s, err := SnapshotIn(a)
	if err != nil {
		_ = a.Close()
		return nil, err
	}
	return s, nil
}

// SnapshotIn finds the snapshot in an archive that is open already. The
// snapshot owns the archive from then on; on error the caller still does.
func SnapshotIn(a *Archive) (*Snapshot, error) {
	s := &Snapshot{archive: a, known: newSpecTable(), index: map[string]Recorded{}, gaps: map[Query]Gap{}}
	var err error
	if s.root, err = findRoot(a, s.known); err != nil {
		return nil, fmt.Errorf("%s: %w", a.name, err)
	}
	if data, ok, err := s.small(manifestFile); err != nil {
		return nil, fmt.Errorf("%s: %w", a.name, err)
	} else if ok {
		if s.record, err = parseManifest(data); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", a.name, manifestFile, err)
		}
	}
	for _, m := range s.record.Members {
		s.index[m.Path] = m
	}
	for _, g := range s.record.Gaps {
		s.gaps[Query{g.Topic, g.Node, g.Arg}] = g
	}
	s.nodes, s.nodeErr = s.findNodes()
	return s, nil
}

// Close lets go of the file or folder.
func (s *Snapshot) Close() error { return s.archive.Close() }

// About tells what snapshot.yaml tells. Recorded is zero without it: the
// times of files say when a copy was made.
func (s *Snapshot) About() About {
	return About{
		Kind:     "snapshot",
		Name:     s.archive.name,
		Server:   printable(s.record.Server),
		Context:  printable(s.record.Context),
		Version:  printable(s.record.Kubernetes),
		Cilium:   s.Cilium(),
		Recorded: s.record.Started,
		Tool:     printable(s.record.Version),
		Redacted: s.record.Redacted,
	}
}

// Nodes lists the nodes of nodes.yaml, of the folders under nodes/ and of
// snapshot.yaml, which alone knows reasons. Where one of them could not be
// read the nodes of the others come together with the error.
func (s *Snapshot) Nodes(ctx context.Context) ([]Node, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("nodes of %s: %w: %w", s.archive.name, ErrUnreachable, err)
	}
	return slices.Clone(s.nodes), s.nodeErr
}

// Again is false: a snapshot does not change.
func (s *Snapshot) Again() (Source, bool) { return nil, false }

// ask is a query together with the form that answers it.
type ask struct {
	query Query
	form  Form
	path  string // inside the snapshot
	whole *whole // that the file is a part of, nil for a file that answers alone
}

// Collect answers in the order of the archive. A query whose evidence is not
// there gets the class and reason that were recorded for it, else ErrAbsent.
func (s *Snapshot) Collect(ctx context.Context, qs []Query, yield func(Artifact, error)) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w: %w", s.archive.name, ErrUnreachable, err)
	}
	asks := map[string][]ask{}
	for _, q := range qs {
		found, err := s.find(q)
		if err != nil {
			yield(Artifact{Query: q}, err)
			continue
		}
		for _, a := range found {
			member := path.Join(s.root, a.path)
			asks[member] = append(asks[member], a)
		}
	}
	s.archive.Read(ctx, slices.Collect(maps.Keys(asks)), func(member string, data []byte, err error) {
		last := len(asks[member]) - 1
		for i, a := range asks[member] {
			given := data
			if i < last { // each answer owns its bytes
				given = slices.Clone(data)
			}
			answer, err := s.artifact(a, given), readError(a.query, err)
			if a.whole == nil || a.whole.take(a.path, &answer, &err) {
				yield(answer, err)
			}
		}
	})
	return nil
}

// find chooses the first form of a topic that is there, else all of its parts.
func (s *Snapshot) find(q Query) ([]ask, error) {
	forms, err := s.known.forms(q)
	if err != nil {
		return nil, &gapError{query: q, class: ErrAbsent, reason: err.Error()}
	}
	for _, f := range forms {
		name, err := f.File(q)
		if err != nil {
			return nil, &gapError{query: q, class: ErrAbsent, reason: err.Error()}
		}
		if _, ok := s.archive.Size(path.Join(s.root, name)); ok {
			return []ask{{query: q, form: f, path: name}}, nil
		}
	}
	if asks := s.parts(q); len(asks) > 0 {
		return asks, nil
	}
	return nil, s.missing(q)
}

func (s *Snapshot) missing(q Query) error {
	if g, ok := s.gaps[q]; ok {
		return &gapError{query: q, class: g.Class.err(), reason: printable(g.Reason)}
	}
	i, ok := slices.BinarySearchFunc(s.nodes, q.Node, func(n Node, name string) int { return strings.Compare(n.Name, name) })
	if ok && s.nodes[i].Reason != "" {
		return &gapError{query: q, class: ErrAbsent, reason: s.nodes[i].Reason}
	}
	return &gapError{query: q, class: ErrAbsent, reason: "not in the snapshot"}
}

func (s *Snapshot) artifact(a ask, data []byte) Artifact {
	art := Artifact{Query: a.query, Format: a.form.Format, Stem: a.form.Stem, Data: data, Origin: a.path, Read: s.record.Started}
	m, ok := s.index[a.path]
	if !ok {
		return art
	}
	if origin := printable(m.Origin); origin != "" && origin != a.path {
		art.Origin = origin + ", in " + a.path
	}
	// A hand that edits evidence, to shorten or to hide, leaves the index as it
	// was. The proof then has to say so.
	if data != nil && m.SHA256 != "" && m.SHA256 != digest(data) {
		art.Origin += " (changed after it was recorded)"
	}
	art.Exit = m.Exit
	if !m.Read.IsZero() {
		art.Read = m.Read
	}
	return art
}

// readError classes an error of the archive.
func readError(q Query, err error) error {
	switch {
	case err == nil:
		return nil
	case stopped(err):
		return &gapError{query: q, class: ErrUnreachable, reason: "stopped before it was read", cause: err}
	case errors.Is(err, fs.ErrPermission):
		return &gapError{query: q, class: ErrForbidden, reason: err.Error()}
	case errors.Is(err, fs.ErrNotExist):
		return &gapError{query: q, class: ErrAbsent, reason: err.Error()}
	}
	return &gapError{query: q, class: ErrCut, reason: err.Error()}
}

// Unknown lists the files that no topic claims, sorted: notes, and evidence
// that this version has no use for. Names are those inside the snapshot, or
// of the archive where they lie beside it.
func (s *Snapshot) Unknown() []string {
	var all []string
	for _, m := range s.archive.cat.members {
		name, inside := m.Name, s.root == "."
		if !inside {
			name, inside = strings.CutPrefix(m.Name, s.root+"/")
		}
		if !inside || name != manifestFile && !s.known.claims(name) {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// Times are when the recording began and ended; zero where nothing tells.
func (s *Snapshot) Times() (start, end time.Time) { return s.record.Started, s.record.Ended }

// Cilium lists the versions that ran when the snapshot was recorded.
func (s *Snapshot) Cilium() []string {
	var all []string
	for _, v := range s.record.Cilium {
		all = append(all, printable(v))
	}
	return all
}
