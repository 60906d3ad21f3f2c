package helm

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/internal/yamlfile"
)

// Values are the values of a chart from files, each with its line. Later files
// win as with helm -f A -f B: objects are merged, anything else is replaced,
// and null takes a value away.
type Values struct {
	root  *yamlfile.Value
	Files []string
	// Twice are keys that stand more than once in one object of one file; the
	// last of them counts.
	Twice []Twice
	// Version is that of the chart or image, "" where the files name none.
	Version string
}

// Twice is a key that stands in a file again.
type Twice struct {
	Path        string
	File        string
	First, Last int // lines
}

// ReadValues reads values files in the order of helm's -f. A file may be
// values alone or a manifest around them: HelmChart and HelmChartConfig (k3s
// and RKE2), HelmRelease (Flux), Application (Argo CD). Values of an umbrella
// chart under the key "cilium" are taken out. It fails with *yamlfile.Error.
func ReadValues(files []File) (*Values, error) {
	v := &Values{root: &yamlfile.Value{Kind: yamlfile.Object}}
	for _, f := range files {
		docs, err := yamlfile.Parse(f.Name, f.Data)
		if err != nil {
			return nil, err
		}
		roots, err := unwrap(docs)
		if err != nil {
			return nil, err
		}
		v.Files = append(v.Files, f.Name)
		v.Version = cmp.Or(versionIn(docs), v.Version)
		for _, root := range roots {
			if root = umbrella(root); root.Kind != yamlfile.Object {
				return nil, &yamlfile.Error{File: f.Name, Line: root.Line, Reason: "values are not an object of keys"}
			}
			v.repeated(root, "")
			v.root = merge(v.root, single(root))
		}
	}
	if tag := v.Get("image.tag").String(); v.Version == "" {
		v.Version = tag
	}
	return v, nil
}

// File is a values file as it was read.
type File struct {
	Name string
	Data []byte
}

// Get is the value at a path, nil where there is none; one that is null is
// there and of kind Null.
func (v *Values) Get(path string) *yamlfile.Value { return v.root.Get(strings.Split(path, ".")...) }

// Value is the value at a path as a word, as for a Release; files know no
// defaults.
func (v *Values) Value(path string) (text string, set, ok bool) {
	n := v.Get(path)
	if n == nil {
		return "", false, false
	}
	switch n.Kind {
	case yamlfile.Scalar:
		return n.Text, true, true
	case yamlfile.List:
		return strings.Join(n.Strings(), " "), true, true
	}
	return "", true, false
}

// Walk calls yield for each key and what is below it, an object before its
// members, with the path and the line of the key.
func (v *Values) Walk(yield func(path string, line int, value *yamlfile.Value)) {
	walk(v.root, "", yield)
}

func walk(v *yamlfile.Value, prefix string, yield func(string, int, *yamlfile.Value)) {
	for _, m := range v.Members {
		yield(prefix+m.Key, m.Line, m.Value)
		if m.Value.Kind == yamlfile.Object {
			walk(m.Value, prefix+m.Key+".", yield)
		}
	}
}

// single keeps the last of equal keys, all the way down.
func single(o *yamlfile.Value) *yamlfile.Value {
	if o.Kind != yamlfile.Object {
		return o
	}
	out := *o
	out.Members = nil
	at := map[string]int{}
	for _, m := range o.Members {
		m.Value = single(m.Value)
		if i, ok := at[m.Key]; ok {
			out.Members[i] = m
			continue
		}
		at[m.Key] = len(out.Members)
		out.Members = append(out.Members, m)
	}
	return &out
}

func merge(base, over *yamlfile.Value) *yamlfile.Value {
	if base == nil || base.Kind != yamlfile.Object || over.Kind != yamlfile.Object {
		return over
	}
	out := &yamlfile.Value{File: over.File, Line: cmp.Or(over.Line, base.Line), Kind: yamlfile.Object}
	at := map[string]int{}
	for _, from := range []*yamlfile.Value{base, over} {
		for _, m := range from.Members {
			i, ok := at[m.Key]
			if !ok {
				at[m.Key] = len(out.Members)
				out.Members = append(out.Members, m)
				continue
			}
			m.Value = merge(out.Members[i].Value, m.Value)
			out.Members[i] = m
		}
	}
	return out
}

func (v *Values) repeated(o *yamlfile.Value, prefix string) {
	seen := map[string]int{}
	for _, m := range o.Members {
		if first, ok := seen[m.Key]; ok && first != m.Line {
			v.Twice = append(v.Twice, Twice{prefix + m.Key, o.File, first, m.Line})
		}
		seen[m.Key] = m.Line
		if m.Value.Kind == yamlfile.Object {
			v.repeated(m.Value, prefix+m.Key+".")
		}
	}
}

// String is the place of a repeated key.
func (t Twice) String() string { return t.File + ":" + strconv.Itoa(t.Last) }
