package sysdump

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// Limits are what a dump may cost. Logs in it can have a gigabyte, of which
// nothing is read but the end.
func Limits() source.Limits {
	return source.Limits{Member: 2 << 30, Total: 32 << 30}
}

// Source is a cilium sysdump.
type Source struct {
	archive *contents
	layout
	log        collectorLog
	nodes      []node
	byName     map[string]*node
	moving     map[string]bool // "namespace/name" of Services that changed meanwhile
	kubernetes string
}

var _ source.Source = (*Source)(nil)

// Open opens the folder or archive of a dump. Errors wrap ErrNotSysdump,
// source.ErrUnsafe or source.ErrCut where they apply.
func Open(file string) (*Source, error) {
	a, err := source.OpenArchive(file, Limits())
	if err != nil {
		return nil, err
	}
	s, err := In(a)
	if err != nil {
		_ = a.Close()
		return nil, err
	}
	return s, nil
}

// In finds the dump in an archive that is open already. The dump owns the
// archive from then on; on error the caller still does.
func In(a *source.Archive) (*Source, error) {
	l, err := findLayout(a)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.Name(), err)
	}
	s := &Source{archive: &contents{Archive: a}, layout: l, byName: map[string]*node{}}
	s.archive.prepare([]string{
		path.Join(l.root, "cilium-sysdump.log"), s.file("k8s-version", ".txt"), s.file("k8s-nodes", ".yaml"),
		s.file("k8s-pods", ".yaml"), s.file("k8s-pods", ".txt"), s.file("k8s-endpointslices", ".yaml"),
	}, l.folders)
	s.log = s.readLog()
	s.kubernetes = s.readVersion()
	if err := s.findNodes(); err != nil {
		return nil, fmt.Errorf("%s: %w", a.Name(), err)
	}
	s.moving = s.findMoving()
	s.archive.early = nil // from here on every file is read when it is asked for
	return s, nil
}

// Close lets go of the archive.
func (s *Source) Close() error { return s.archive.Close() }

// About tells the collector's version and time.
func (s *Source) About() source.About {
	return source.About{
		Kind: "sysdump", Name: s.archive.Name(), Version: s.kubernetes, Recorded: s.recorded(), Tool: s.log.tool(),
	}
}

// Nodes lists the nodes of the API's list and those that something was
// collected of.
func (s *Source) Nodes(ctx context.Context) ([]source.Node, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("nodes of %s: %w: %w", s.archive.Name(), source.ErrUnreachable, err)
	}
	var out []source.Node
	for _, n := range s.nodes {
		out = append(out, source.Node{Name: n.name, Reason: n.reason})
	}
	return out, nil
}

// Again is false: a dump does not change.
func (s *Source) Again() (source.Source, bool) { return nil, false }

// Moving says why what was found about a subject may only be a change that was
// under way while the dump was made: the API and the nodes are read minutes
// apart, and there is no second look.
func (s *Source) Moving(subject string) (why string, ok bool) {
	if !s.moving[subject] {
		return "", false
	}
	return "its endpoints changed while the dump was made", true
}

// Collect reads what is asked, each file once, in the order of the archive.
func (s *Source) Collect(ctx context.Context, qs []source.Query, yield func(source.Artifact, error)) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w: %w", s.archive.Name(), source.ErrUnreachable, err)
	}
	asks := map[string][]ask{}
	for _, q := range qs {
		found, err := s.find(q)
		if err != nil {
			yield(source.Artifact{Query: q}, fmt.Errorf("%s: %w", where(q), err))
			continue
		}
		if found.data != nil { // was read already, from an archive inside the archive
			s.give(found, found.data, nil, yield)
			continue
		}
		asks[found.member] = append(asks[found.member], found)
	}
	names := make([]string, 0, len(asks))
	for name := range asks {
		names = append(names, name)
	}
	s.archive.Read(ctx, names, func(member string, data []byte, err error) {
		for i, a := range asks[member] {
			given := data
			if i < len(asks[member])-1 {
				given = slices.Clone(data)
			}
			s.give(a, given, err, yield)
		}
	})
	return nil
}

func where(q source.Query) string {
	if q.Node != "" {
		return string(q.Topic) + " on " + q.Node
	}
	return string(q.Topic)
}

// ask is a query with the file that answers it.
type ask struct {
	query  source.Query
	member string
	file   nodeFile
	data   []byte // already read, of an archive inside the archive
}

// give brings what was read into the form of a snapshot.
func (s *Source) give(a ask, data []byte, err error, yield func(source.Artifact, error)) {
	out := source.Artifact{Query: a.query, Format: a.file.format, Stem: a.file.stem, Origin: a.member, Read: s.recorded()}
	if err != nil {
		class := source.ErrCut
		if errors.Is(err, fs.ErrNotExist) {
			class = source.ErrAbsent
		}
		yield(source.Artifact{Query: a.query}, fmt.Errorf("%s: %w: %w", where(a.query), class, err))
		return
	}
	switch {
	case a.query.Node == "":
		out.Data = data
		if a.file.part == "table" {
			out.Format = source.JSON
			if out.Data, err = podTable(data); err != nil {
				err = fmt.Errorf("%w: %w", source.ErrCut, err)
			}
		}
	case a.query.Topic == source.AgentLog:
		out.Data = lastLines(data)
	default:
		out.Data, err = answer(data, a.file)
		if err == nil && isMap(a.query.Topic) && emptyMap(out.Data) && s.byName[a.query.Node].down {
			err = fmt.Errorf("the map is empty, and no agent ran that could have filled it: %w", source.ErrAgentDown)
		}
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", where(a.query), err)
	}
	yield(out, err)
}

func isMap(t source.Topic) bool {
	switch t {
	case source.MapList, source.MapFrontends, source.MapBackends, source.MapRanges, source.MapRevNAT:
		return true
	}
	return false
}

// find is the file that answers a query, or why there is none.
func (s *Source) find(q source.Query) (ask, error) {
	if q.Arg != "" && q.Topic != source.InitLog {
		return ask{}, fmt.Errorf("a sysdump holds the topic as a whole: %w", source.ErrAbsent)
	}
	if why := never(q.Topic); why != "" {
		return ask{}, fmt.Errorf("%s: %w", why, source.ErrAbsent)
	}
	if q.Node == "" {
		return s.findList(q)
	}
	n, ok := s.byName[q.Node]
	if !ok {
		return ask{}, fmt.Errorf("no node of that name in the dump: %w", source.ErrAbsent)
	}
	if q.Topic == source.AgentLog {
		return s.findLog(q, n)
	}
	files := nodeFiles(q.Topic)
	if len(files) == 0 {
		return ask{}, fmt.Errorf("a sysdump does not hold it: %w", source.ErrAbsent)
	}
	if n.cmd == "" {
		return ask{}, fmt.Errorf("%s: %w", n.reason, source.ErrUnreachable)
	}
	for _, f := range files {
		if member, data, ok := n.lookup(s.archive, f); ok {
			return ask{query: q, member: member, file: f, data: data}, nil
		}
	}
	return ask{}, fmt.Errorf("no %s.md in the folder of the node: not collected by this version, or the tool is not in the image: %w", files[0].name, source.ErrAbsent)
}

func (s *Source) findList(q source.Query) (ask, error) {
	f, ok := clusterFiles[q.Topic]
	if !ok {
		return ask{}, fmt.Errorf("a sysdump does not hold it: %w", source.ErrAbsent)
	}
	if s.stamp == "" {
		return ask{}, fmt.Errorf("the archive of one node, made by cilium-bugtool, holds no objects of the cluster: %w", source.ErrAbsent)
	}
	a := ask{query: q, member: s.file(f.stem, ".yaml"), file: nodeFile{format: source.YAML, stem: string(q.Topic)}}
	if _, ok := s.archive.Size(a.member); ok {
		return a, s.small(a.member)
	}
	if table := s.file(f.stem, ".txt"); q.Topic == source.Pods {
		if _, ok := s.archive.Size(table); ok {
			a.member, a.file.part = table, "table"
			return a, s.small(table)
		}
	}
	return ask{}, fmt.Errorf("%s: %w", s.log.why(f.stem, f.since), source.ErrAbsent)
}

// small refuses what is too large to be held in memory.
func (s *Source) small(member string) error {
	if size, _ := s.archive.Size(member); size > maxAnswer {
		return fmt.Errorf("%s has %d MiB, %w: %w", path.Base(member), size>>20, errTooLarge, source.ErrCut)
	}
	return nil
}

// findLog is the log of a node's agent.
func (s *Source) findLog(q source.Query, n *node) (ask, error) {
	for _, pod := range n.pods {
		for _, form := range []string{"", "-prev"} {
			member := path.Join(s.root, "logs-"+pod+"-cilium-agent-"+s.stamp+form+".log")
			if _, ok := s.archive.Size(member); ok {
				return ask{query: q, member: member, file: nodeFile{format: source.Text, stem: "agent"}}, s.small(member)
			}
		}
	}
	return ask{}, fmt.Errorf("no log of the node's agent in the dump: %w", source.ErrAbsent)
}

// logEnd is how much of a log is kept, as of a running cluster.
const logEnd = 256 << 10

func lastLines(data []byte) []byte {
	if len(data) <= logEnd {
		return data
	}
	data = data[len(data)-logEnd:]
	for i, b := range data {
		if b == '\n' {
			return slices.Clone(data[i+1:])
		}
	}
	return slices.Clone(data)
}
