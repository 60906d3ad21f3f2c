package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Info is what a recording knows of itself.
type Info struct {
	Tool    string // name of the program
	Version string // of the program
	Now     func() time.Time
	// Cilium gives the agents' versions. It is called once everything is
	// collected, so it may learn them from what passes by. It may be nil.
	Cilium func() []string
	// Redacted: names and addresses are not those of the cluster.
	Redacted bool
}

// Summary is what a recording came to.
type Summary struct {
	Start, End time.Time // of reading; zero where a source does not tell
	Nodes      []Node
	Members    []Recorded // sorted by path
	Bytes      int64      // of all members
	Gaps       []Gap      // sorted by topic, node and argument
	NodesGap   error      // why Nodes may not be all
}

// Record writes what src answers to w as it arrives, and snapshot.yaml at last.
// It does not close w. Evidence that is not there becomes a gap and is no
// error; an error means that w holds no usable snapshot. A cancelled context
// is one; a deadline is not, as the source has answered by then with gaps.
//
// An answer that was cut leaves its gap but not its bytes: under the name of a
// whole one they would be taken for it.
func Record(ctx context.Context, src Source, qs []Query, w SnapshotWriter, info Info) (Summary, error) {
	r := &recording{w: w, known: newSpecTable(), paths: map[string]bool{}, gaps: map[Gap]bool{}}
	about := src.About()
	// Copying a snapshot does not make its evidence any younger.
	r.sum.Start = about.Recorded
	live := about.Kind == "cluster" && info.Now != nil
	if live {
		r.sum.Start = info.Now().UTC()
	}
	r.sum.Nodes, r.sum.NodesGap = src.Nodes(ctx)
	if err := src.Collect(ctx, qs, r.take); err != nil {
		return r.sum, fmt.Errorf("%s %s: %w", about.Kind, about.Name, err)
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return r.sum, fmt.Errorf("recording broken off: %w", context.Cause(ctx))
	}
	if r.err != nil {
		return r.sum, r.err
	}
	if r.sum.End = r.sum.Start; live {
		r.sum.End = info.Now().UTC()
	}
	return r.finish(about, info)
}

type recording struct {
	w     SnapshotWriter
	known specTable
	sum   Summary
	paths map[string]bool // written
	gaps  map[Gap]bool    // noted
	err   error           // of writing; what comes after it is not written
}

func (r *recording) take(a Artifact, err error) {
	q := a.Query
	if err != nil {
		r.gap(q, ClassOf(err), reasonOf(q, err))
		return
	}
	name, err := r.known.file(a)
	if err != nil {
		r.gap(q, Absent, err.Error())
		return
	}
	if r.err != nil || r.paths[name] {
		return
	}
	if r.err = r.w.Add(name, a.Data, a.Read); r.err != nil {
		return
	}
	r.paths[name] = true
	r.sum.Bytes += int64(len(a.Data))
	r.sum.Members = append(r.sum.Members, Recorded{
		Path: name, Topic: q.Topic, Node: q.Node, Arg: q.Arg,
		Origin: strings.Replace(a.Origin, ", in "+name, "", 1), Exit: a.Exit, Read: a.Read.UTC(),
		Size: int64(len(a.Data)), SHA256: digest(a.Data),
	})
}

func (r *recording) gap(q Query, class Class, reason string) {
	g := Gap{Topic: q.Topic, Node: q.Node, Arg: q.Arg, Class: class, Reason: printable(reason)}
	if !r.gaps[g] { // one query may be asked twice
		r.gaps[g] = true
		r.sum.Gaps = append(r.sum.Gaps, g)
	}
}

func (r *recording) finish(about About, info Info) (Summary, error) {
	slices.SortFunc(r.sum.Members, func(x, y Recorded) int { return strings.Compare(x.Path, y.Path) })
	slices.SortFunc(r.sum.Gaps, func(x, y Gap) int {
		return cmp.Or(cmp.Compare(x.Topic, y.Topic), cmp.Compare(x.Node, y.Node), cmp.Compare(x.Arg, y.Arg), cmp.Compare(x.Reason, y.Reason))
	})
	m := manifest{
		Schema: SchemaVersion, Tool: info.Tool, Version: info.Version,
		Started: r.sum.Start.UTC(), Ended: r.sum.End.UTC(),
		Context: about.Context, Server: about.Server, Kubernetes: about.Version,
		Members: r.sum.Members, Gaps: r.sum.Gaps, Redacted: info.Redacted || about.Redacted,
	}
	if info.Cilium != nil {
		m.Cilium = info.Cilium()
	}
	for _, n := range r.sum.Nodes {
		m.Nodes = append(m.Nodes, nodeRecord(n))
	}
	if err := r.sum.NodesGap; err != nil {
		q := Query{Topic: Nodes}
		m.NodesGap = &Gap{Topic: Nodes, Class: ClassOf(err), Reason: printable(reasonOf(q, err))}
	}
	data, err := m.marshal()
	if err != nil {
		return r.sum, fmt.Errorf("%s: %w", manifestFile, err)
	}
	return r.sum, r.w.Add(manifestFile, data, r.sum.End)
}
