package source

import (
	"errors"
	"fmt"
	"strings"
)

// specTable is the table of topics, made once for what asks it often.
type specTable struct {
	specs   map[Topic]Spec
	cluster map[string]bool   // file names of cluster-wide topics
	node    map[string]bool   // file names of topics of nodes
	withArg map[string]string // of topics that take an argument: what stands before it and after it
}

func newSpecTable() specTable {
	t := specTable{map[Topic]Spec{}, map[string]bool{}, map[string]bool{}, map[string]string{}}
	for _, s := range specs() {
		t.specs[s.Topic] = s
		for _, f := range s.Forms {
			before, after, takesArg := strings.Cut(f.Stem+f.Ext, "%s")
			switch {
			case takesArg:
				t.withArg[before] = after
			case s.Node:
				t.node[before] = true
			default:
				t.cluster[before] = true
			}
		}
		if before, after, ok := strings.Cut(s.Part.Stem+s.Part.Ext, "%s"); ok {
			t.withArg[before] = after
		}
	}
	return t
}

// forms are the forms of a query, if it is one that can be asked at all.
func (t specTable) forms(q Query) ([]Form, error) {
	spec, ok := t.specs[q.Topic]
	switch {
	case !ok:
		return nil, fmt.Errorf("topic %.100q is not known", string(q.Topic))
	case spec.Node && q.Node == "":
		return nil, errors.New("asked of no node, and it is a topic of nodes")
	case !spec.Node && q.Node != "":
		return nil, errors.New("asked of a node, and it is a topic of the cluster")
	}
	if q.Arg != "" && !spec.TakesArg() {
		return nil, fmt.Errorf("asked for %.100q alone, and a snapshot holds the topic as a whole", q.Arg)
	}
	return spec.Forms, nil
}

// claims holds for paths inside a snapshot that are a form of some topic.
func (t specTable) claims(name string) bool {
	rest, ofNode := strings.CutPrefix(name, "nodes/")
	if !ofNode {
		return t.cluster[name]
	}
	node, base, ok := strings.Cut(rest, "/")
	if !ok || !plainName(node) {
		return false
	}
	if t.node[base] {
		return true
	}
	for before, after := range t.withArg {
		arg, ok := strings.CutPrefix(base, before)
		if !ok {
			continue
		}
		if arg, ok = strings.CutSuffix(arg, after); ok && plainName(arg) {
			return true
		}
	}
	return false
}

// file is the path of an artifact: its form is the one of its stem and format.
func (t specTable) file(a Artifact) (string, error) {
	forms, err := t.forms(a.Query)
	if err != nil {
		return "", err
	}
	for _, f := range forms {
		if f.Format == a.Format && (a.Stem == f.Stem || a.Stem == strings.ReplaceAll(f.Stem, "%s", a.Query.Arg)) {
			return f.File(a.Query)
		}
	}
	return "", fmt.Errorf("a snapshot has no file for the form %.100q in %.20q", a.Stem, string(a.Format))
}
