package redact

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// Source is a recording with its names and addresses replaced. It is a Source
// like any, so it can be recorded, and looked at, as it is.
type Source struct {
	inner source.Source
	r     *Redactor
	nodes map[string]string // names of nodes by what stands for them
}

// Of learns all that src can tell and gives what is left of it. The source is
// read twice, so it must be a recording: one that changes in between would show
// names that were not there at first.
func Of(ctx context.Context, src source.Source, qs []source.Query, key Key) (*Source, error) {
	s := &Source{inner: src, r: New(key), nodes: map[string]string{}}
	s.r.learning = true
	about := src.About()
	s.r.learnText("", about.Server+" ")
	s.r.Learn(about.Context)
	nodes, _ := src.Nodes(ctx) // what it knows of them; Nodes tells the error
	for _, n := range nodes {
		s.r.Learn(n.Name)
		s.r.learnText("", n.Reason)
	}
	for _, q := range qs {
		s.r.Learn(q.Node)
	}
	var unread []error
	err := src.Collect(ctx, qs, func(a source.Artifact, err error) {
		if err != nil {
			s.r.learnText(source.AgentLog, err.Error())
			return
		}
		s.r.learnText(source.AgentLog, a.Origin)
		if _, err := s.r.artifact(a); err != nil {
			unread = append(unread, fmt.Errorf("%s: %w", a.Origin, err))
		}
	})
	s.r.learning = false
	if err = errors.Join(err, errors.Join(unread...)); err != nil {
		return nil, err
	}
	if _, err := s.r.Names(); err != nil {
		return nil, err
	}
	for _, n := range nodes {
		s.nodes[s.r.Name(n.Name)] = n.Name
	}
	return s, nil
}

// Redactor is what it replaces with.
func (s *Source) Redactor() *Redactor { return s.r }

// Queries are the same queries, of nodes by their new names.
func (s *Source) Queries(qs []source.Query) []source.Query {
	out := make([]source.Query, len(qs))
	for i, q := range qs {
		out[i] = s.query(q)
	}
	return out
}

func (s *Source) query(q source.Query) source.Query {
	q.Node = s.r.Name(q.Node)
	return q
}

// About is the source's, without its name: a context says whose cluster it is.
func (s *Source) About() source.About {
	a := s.inner.About()
	a.Name, a.Context, a.Server = s.r.Context(a.Name), s.r.Context(a.Context), s.r.Text(a.Server)
	return a
}

// Context replaces the name of a kubeconfig context, or any other name that
// follows no grammar, by one word.
func (r *Redactor) Context(name string) string {
	if name == "" {
		return ""
	}
	return r.word(name, 4)
}

// Nodes lists the nodes by their new names, sorted.
func (s *Source) Nodes(ctx context.Context) ([]source.Node, error) {
	nodes, err := s.inner.Nodes(ctx)
	for i := range nodes {
		nodes[i] = source.Node{Name: s.r.Name(nodes[i].Name), Reason: s.r.Text(nodes[i].Reason)}
	}
	slices.SortFunc(nodes, func(x, y source.Node) int { return strings.Compare(x.Name, y.Name) })
	return nodes, s.failure(err)
}

// Again is false: a recording does not change.
func (s *Source) Again() (source.Source, bool) { return nil, false }

// Collect answers queries about nodes by their new names. What cannot be
// replaced in is not given: it becomes a gap.
func (s *Source) Collect(ctx context.Context, qs []source.Query, yield func(source.Artifact, error)) error {
	inner := make([]source.Query, 0, len(qs))
	for _, q := range qs {
		if q.Node != "" {
			name, ok := s.nodes[q.Node]
			if !ok {
				yield(source.Artifact{Query: q}, fmt.Errorf("node %s: %w", q.Node, source.ErrAbsent))
				continue
			}
			q.Node = name
		}
		inner = append(inner, q)
	}
	return s.inner.Collect(ctx, inner, func(a source.Artifact, err error) {
		out := a
		out.Query, out.Origin, out.Data = s.query(a.Query), s.r.Text(a.Origin), nil
		if err == nil {
			if out.Data, err = s.r.artifact(a); err != nil {
				err = fmt.Errorf("names in it could not be replaced: %w: %w", source.ErrCut, err)
			}
		}
		yield(out, s.failure(err))
	})
}

// failure is an error of the same class, without names.
func (s *Source) failure(err error) error {
	if err == nil {
		return nil
	}
	f := failure{text: s.r.Text(secrets(err.Error())), class: source.ErrUnreachable}
	for _, class := range []error{source.ErrAbsent, source.ErrForbidden, source.ErrCut, source.ErrAgentDown} {
		if errors.Is(err, class) {
			f.class = class
			break
		}
	}
	return f
}

// failure wraps nothing but the class: what is below it has the names.
type failure struct {
	text  string
	class error
}

func (e failure) Error() string { return e.text }

func (e failure) Unwrap() error { return e.class }

// artifact replaces in the data of one artifact, or learns from it.
func (r *Redactor) artifact(a source.Artifact) ([]byte, error) {
	spec, _ := source.SpecOf(a.Query.Topic)
	switch {
	case len(a.Data) == 0:
		return a.Data, nil
	case !spec.Node:
		return r.objects(a.Query.Topic, a.Format, a.Data)
	case a.Format == source.JSON:
		return r.answer(a.Query.Topic, a.Data), nil
	}
	text := strings.ToValidUTF8(string(a.Data), "�")
	switch t := a.Query.Topic; {
	case tables[t]:
		return []byte(r.table(t, text)), nil
	case t == source.IPVS:
		r.allHex = true
		defer func() { r.allHex = false }()
		return []byte(r.Text(text)), nil
	case bulky[t]:
		return []byte(r.Text(text)), nil
	case t == source.Config:
		return []byte(r.settings(text)), nil
	default:
		return []byte(r.read(t, text)), nil
	}
}

// settings replaces in the values of `config`, one "Key : value" a line: keys
// are words of Cilium, whatever a cluster calls its things.
func (r *Redactor) settings(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(line, ":")
		if !ok || strings.ContainsAny(strings.TrimSpace(key), " \t") {
			b.WriteString(r.read(source.Config, line))
			continue
		}
		if k := strings.TrimSpace(key); k == "ClusterName" || k == "cluster-name" {
			r.learnField(strings.TrimSpace(value))
		}
		b.WriteString(key + ":" + r.read(source.Config, value))
	}
	return b.String()
}
