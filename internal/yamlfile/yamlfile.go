// Package yamlfile reads YAML that people wrote, and keeps the line of each key
// and value, so that what is said about it can name the place.
package yamlfile

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	yaml "sigs.k8s.io/yaml/goyaml.v3"
)

// Bounds of one file: a few lines of aliases can stand for a huge document.
const (
	maxValues = 200_000
	maxDepth  = 100
	maxBytes  = 8 << 20
)

// Kind is what a value is.
type Kind uint8

// The kinds of values.
const (
	Null Kind = iota
	Scalar
	Object
	List
)

// Value is a YAML value with its place. Aliases and merge keys are resolved.
type Value struct {
	File    string
	Line    int // from 1
	Kind    Kind
	Text    string   // of scalars, as written, without quotes
	Tag     string   // of scalars: !!str, !!bool, !!int, !!float, …
	Block   bool     // a scalar that begins below its key, as "|" does
	Members []Member // of objects, in the order of the file
	Items   []*Value // of lists
}

// Member is a key of an object with its value.
type Member struct {
	Key   string
	Line  int
	Value *Value
}

// Error is what is wrong with a file, and on which line.
type Error struct {
	File   string
	Line   int // 0 where it is not known
	Reason string
}

// Error is "file:line: reason".
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Reason
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Reason)
}

// Parse reads the documents of a file. Empty documents are left out. It fails
// with an *Error, for templates and placeholders too: what they will become is
// not in the file.
func Parse(file string, data []byte) ([]*Value, error) {
	if len(data) > maxBytes {
		return nil, &Error{file, 0, fmt.Sprintf("larger than %d MiB", maxBytes>>20)}
	}
	dec := yaml.NewDecoder(strings.NewReader(string(data)))
	r := reader{file: file}
	var docs []*Value
	for {
		var n yaml.Node
		err := dec.Decode(&n)
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			return nil, syntax(file, string(data), err)
		}
		v, err := r.value(&n, 0)
		if err != nil {
			return nil, err
		}
		if v.Kind != Null {
			docs = append(docs, v)
		}
	}
}

// Get is the value at a path of keys, nil where there is none. Of a key that
// stands there twice the later one counts, as for the readers of these files.
func (v *Value) Get(path ...string) *Value {
	for _, key := range path {
		if v == nil || v.Kind != Object {
			return nil
		}
		var next *Value
		for _, m := range v.Members {
			if m.Key == key {
				next = m.Value
			}
		}
		v = next
	}
	return v
}

// String is the text of a scalar, else "".
func (v *Value) String() string {
	if v == nil || v.Kind != Scalar {
		return ""
	}
	return v.Text
}

// Strings are the texts of a list's scalars, or the one of a scalar.
func (v *Value) Strings() []string {
	switch {
	case v == nil || v.Kind == Null:
		return nil
	case v.Kind == Scalar:
		return []string{v.Text}
	}
	var out []string
	for _, i := range v.Items {
		if i.Kind == Scalar {
			out = append(out, i.Text)
		}
	}
	return out
}

// Place is "file:line".
func (v *Value) Place() string { return v.File + ":" + strconv.Itoa(v.Line) }

type reader struct {
	file  string
	count int
}

func (r *reader) value(n *yaml.Node, depth int) (*Value, error) {
	r.count++
	if r.count > maxValues || depth > maxDepth {
		return nil, &Error{r.file, n.Line, "too many or too deep values; aliases that stand for each other?"}
	}
	v := &Value{File: r.file, Line: n.Line}
	switch n.Kind {
	case yaml.DocumentNode:
		if len(n.Content) == 0 {
			return v, nil
		}
		return r.value(n.Content[0], depth+1)
	case yaml.AliasNode:
		return r.value(n.Alias, depth+1)
	case yaml.ScalarNode:
		return v, r.scalar(n, v)
	case yaml.SequenceNode:
		v.Kind = List
		for _, c := range n.Content {
			item, err := r.value(c, depth+1)
			if err != nil {
				return nil, err
			}
			v.Items = append(v.Items, item)
		}
	case yaml.MappingNode:
		v.Kind = Object
		return v, r.object(n, v, depth)
	}
	return v, nil
}

func (r *reader) scalar(n *yaml.Node, v *Value) error {
	if n.ShortTag() == "!!null" {
		return nil
	}
	v.Kind, v.Text, v.Tag = Scalar, n.Value, n.ShortTag()
	v.Block = n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0
	if !v.Block {
		return r.filled(n)
	}
	return nil
}

func (r *reader) object(n *yaml.Node, v *Value, depth int) error {
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if k.Kind == yaml.MappingNode { // "key: {{ name }}" is an object as a key
			return templated(r.file, k.Line, "{{ … }}")
		}
		if k.Kind == yaml.AliasNode {
			k = k.Alias
		}
		if k.Kind != yaml.ScalarNode {
			return &Error{r.file, k.Line, "a key that is no word"}
		}
		if err := r.filled(k); err != nil {
			return err
		}
		member, err := r.value(n.Content[i+1], depth+1)
		if err != nil {
			return err
		}
		if k.ShortTag() == "!!merge" {
			v.Members = append(inherited(member), v.Members...)
			continue
		}
		v.Members = append(v.Members, Member{k.Value, k.Line, member})
	}
	return nil
}

// inherited are the members that "<<" brings, which those of the object itself
// override; of several objects the first wins.
func inherited(v *Value) []Member {
	if v.Kind != List {
		return v.Members
	}
	var out []Member
	for i := len(v.Items) - 1; i >= 0; i-- {
		out = append(out, v.Items[i].Members...)
	}
	return out
}

// placeholder are what Jinja (also with other marks), Go templates and envsubst
// or Flux fill in.
var placeholder = regexp.MustCompile(`\{\{.*?\}\}|#\{.*?\}#|\{%.*?%\}|\$\{[A-Za-z_][A-Za-z0-9_]*(:[-=?+][^}]*)?\}`)

func (r *reader) filled(n *yaml.Node) error {
	if found := placeholder.FindString(n.Value); found != "" {
		return templated(r.file, n.Line, found)
	}
	return nil
}

func templated(file string, line int, what string) error {
	if len(what) > 60 {
		what = what[:60] + "…"
	}
	return &Error{file, line, fmt.Sprintf("holds %s, which is filled in later: render the file first (ansible, helmfile, envsubst) and give the result", what)}
}

var lineOf = regexp.MustCompile(`line (\d+): `)

// syntax names the line of an error, and the template that may be behind it.
func syntax(file, data string, err error) error {
	reason := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 0
	if m := lineOf.FindStringSubmatch(reason); m != nil {
		line, _ = strconv.Atoi(m[1])
		reason = strings.Replace(reason, m[0], "", 1)
	}
	for i, l := range strings.Split(data, "\n") {
		l, _, _ = strings.Cut(l, " #")
		if found := placeholder.FindString(l); found != "" && !strings.HasPrefix(strings.TrimSpace(l), "#") {
			return templated(file, i+1, found)
		}
	}
	return &Error{file, line, "not YAML: " + reason}
}
