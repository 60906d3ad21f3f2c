package source

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"

	"sigs.k8s.io/yaml"
)

// findRoot is the folder of an archive that is the snapshot. The tool packs
// one top folder; what people pack has none, or several.
func findRoot(a *Archive, known specTable) (string, error) {
	marked, likely := map[string]bool{}, map[string]bool{}
	for _, m := range a.cat.members {
		dir, base := path.Split(m.Name)
		switch {
		case base == manifestFile:
			marked[path.Clean(dir)] = true
		case known.cluster[base]:
			likely[path.Clean(dir)] = true
		}
	}
	for dir := range a.cat.folders {
		if path.Base(dir) == "nodes" {
			likely[path.Dir(dir)] = true
		}
	}
	if len(marked) == 0 {
		marked = likely
	}
	if len(marked) == 0 {
		return "", fmt.Errorf("%w: neither %s nor nodes/ nor a file such as services.yaml", ErrNotSnapshot, manifestFile)
	}
	roots := slices.Sorted(maps.Keys(marked))
	slices.SortStableFunc(roots, func(x, y string) int { return depth(x) - depth(y) })
	if len(roots) > 1 && depth(roots[0]) == depth(roots[1]) {
		return "", fmt.Errorf("%w: more than one, in %.100q and %.100q among others", ErrNotSnapshot, roots[0], roots[1])
	}
	return roots[0], nil
}

func depth(dir string) int {
	if dir == "." {
		return 0
	}
	return 1 + strings.Count(dir, "/")
}

// findNodes joins what tells of nodes, sorted by name.
func (s *Snapshot) findNodes() ([]Node, error) {
	reasons := map[string]string{}
	for _, dir := range s.archive.Folders() {
		if path.Dir(dir) == path.Join(s.root, "nodes") && plainName(path.Base(dir)) {
			reasons[path.Base(dir)] = ""
		}
	}
	names, err := s.namesOfList()
	for _, name := range names {
		reasons[name] = ""
	}
	for _, n := range s.record.Nodes {
		if plainName(n.Name) {
			reasons[n.Name] = printable(n.Reason)
		}
	}
	if g := s.record.NodesGap; g != nil {
		err = errors.Join(err, &gapError{query: Query{Topic: Nodes}, class: g.Class.err(), reason: printable(g.Reason)})
	}
	var all []Node
	for _, name := range slices.Sorted(maps.Keys(reasons)) {
		all = append(all, Node{name, reasons[name]})
	}
	return all, err
}

// namesOfList are the names in nodes.yaml or nodes.json.
func (s *Snapshot) namesOfList() ([]string, error) {
	q := Query{Topic: Nodes}
	found, err := s.find(q)
	if err != nil {
		return nil, nil
	}
	a := found[0]
	data, _, err := s.small(a.path)
	if err != nil {
		return nil, readError(q, err)
	}
	names, err := namesIn(data)
	if err != nil {
		return nil, readError(q, fmt.Errorf("%s: %w", a.path, err))
	}
	return slices.DeleteFunc(names, func(name string) bool { return !plainName(name) }), nil
}

// namesIn are the names of the objects in a list of any kind, or the name of a
// single object. Nothing but names is looked at: kinds and versions are often
// left out by those who write lists by hand, and by NodeList itself.
func namesIn(data []byte) ([]string, error) {
	type object struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	var list struct {
		object
		Items []object `json:"items"`
	}
	if err := unmarshal(data, &list); err != nil {
		return nil, err
	}
	if len(list.Items) == 0 && list.Metadata.Name != "" {
		return []string{list.Metadata.Name}, nil
	}
	var names []string
	for _, o := range list.Items {
		names = append(names, o.Metadata.Name)
	}
	return names, nil
}

// unmarshal spares JSON, which is YAML too, the much slower way.
func unmarshal(data []byte, into any) error {
	if bytes.HasPrefix(bytes.TrimLeftFunc(data, unicode.IsSpace), []byte("{")) && json.Valid(data) {
		return json.Unmarshal(data, into)
	}
	return yaml.Unmarshal(data, into)
}

// smallBytes is how large the files may be that are parsed on opening.
const smallBytes = 32 << 20

// small reads a file that is parsed on opening; false where there is none.
func (s *Snapshot) small(name string) ([]byte, bool, error) {
	member := path.Join(s.root, name)
	size, ok := s.archive.Size(member)
	if !ok {
		return nil, false, nil
	}
	if size > smallBytes {
		return nil, true, refused(member, "%d bytes, the limit is %d", size, int64(smallBytes))
	}
	var data []byte
	var failed error
	s.archive.Read(context.Background(), []string{member}, func(_ string, b []byte, err error) { data, failed = b, err })
	return data, true, failed
}

// printable makes text of an untrusted file safe to show: no control or
// invisible characters, and not longer than a line or two.
func printable(s string) string {
	const longest = 1000
	if len(s) > longest {
		s = strings.ToValidUTF8(s[:longest], "") + "…"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s)
}
