// Package rancher reads the configuration files of k3s and RKE2, which both
// merge them in the same way: config.yaml, then the files of config.yaml.d by
// name. A later file replaces a key, "key+" adds to it.
package rancher

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/internal/yamlfile"
)

// Config is what the files say together.
type Config struct {
	Entries []Entry // in the order in which the keys appear first
	First   string  // name of the first file, "" for none
}

// Entry is one flag of the server or the agent.
type Entry struct {
	Key    string // without "+"
	Values []Value
	Empty  bool // "key:" without a value, which is a value too: the flag's empty one
	File   string
	Line   int // of the key that had the last word
	// Replaced are places whose value no longer counts.
	Replaced []Place
}

// Value is one value of a key, with the file it came from.
type Value struct {
	Text string
	File string
	Line int
}

// Place is a line of a file.
type Place struct {
	File string
	Line int
}

// File is a configuration file as it was read.
type File struct {
	Name string
	Data []byte
}

// Merge reads the files in the order in which they are given. It fails with a
// *yamlfile.Error.
//
// Source: pkg/configfilearg/parser.go of k3s, which RKE2 uses too.
func Merge(files []File) (*Config, error) {
	c := &Config{}
	for _, f := range files {
		c.First = cmp.Or(c.First, f.Name)
		docs, err := yamlfile.Parse(f.Name, f.Data)
		if err != nil {
			return nil, err
		}
		if len(docs) == 0 {
			continue
		}
		if docs[0].Kind != yamlfile.Object { // of several documents the first alone is read
			return nil, &yamlfile.Error{File: f.Name, Line: docs[0].Line, Reason: "not an object of flags and values"}
		}
		for _, m := range docs[0].Members {
			c.set(m)
		}
	}
	return c, nil
}

func (c *Config) set(m yamlfile.Member) {
	key, adds := strings.CutSuffix(m.Key, "+")
	i := slices.IndexFunc(c.Entries, func(e Entry) bool { return e.Key == key })
	if i < 0 {
		i, adds = len(c.Entries), true
		c.Entries = append(c.Entries, Entry{Key: key})
	}
	e := &c.Entries[i]
	if !adds {
		e.Replaced = append(e.Replaced, Place{e.File, e.Line})
		e.Values = nil
	}
	e.File, e.Line = m.Value.File, m.Line
	items := m.Value.Items
	if m.Value.Kind == yamlfile.Scalar {
		items = []*yamlfile.Value{m.Value}
	}
	for _, v := range items {
		if v.Kind == yamlfile.Scalar {
			e.Values = append(e.Values, Value{v.Text, v.File, v.Line})
		}
	}
	e.Empty = len(e.Values) == 0
}

// Get finds a flag.
func (c *Config) Get(key string) (Entry, bool) {
	i := slices.IndexFunc(c.Entries, func(e Entry) bool { return e.Key == key })
	if i < 0 {
		return Entry{}, false
	}
	return c.Entries[i], true
}

// Last is the value of a flag that takes one: of several the last counts.
// "" where the flag is not set.
func (c *Config) Last(key string) string {
	e, _ := c.Get(key)
	if len(e.Values) == 0 {
		return ""
	}
	return e.Values[len(e.Values)-1].Text
}

// Bool is the value of a switch; ok is false where it is not set or no bool.
func (c *Config) Bool(key string) (value, ok bool) {
	switch strings.ToLower(c.Last(key)) {
	case "true", "t", "1":
		return true, true
	case "false", "f", "0":
		return false, true
	}
	return false, false
}

// Strings are the values of a flag that repeats; a comma parts them too.
func (c *Config) Strings(key string) []Value {
	e, _ := c.Get(key)
	var out []Value
	for _, v := range e.Values {
		for _, word := range strings.Split(v.Text, ",") {
			if word = strings.TrimSpace(word); word != "" {
				out = append(out, Value{word, v.File, v.Line})
			}
		}
	}
	return out
}

// Files reads what a server started with this configuration reads: a file and
// the folder FILE.d beside it, or a folder that holds config.yaml, or one that
// holds the files themselves.
func Files(path string) ([]File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	main := path
	if info.IsDir() {
		main = filepath.Join(path, "config.yaml")
	}
	var names []string
	if _, err := os.Stat(main); err == nil {
		names = append(names, main)
	}
	beside, err := dropIns(main + ".d")
	if err != nil {
		return nil, err
	}
	names = append(names, beside...)
	if len(names) == 0 && info.IsDir() {
		if names, err = dropIns(path); err != nil {
			return nil, err
		}
	}
	if len(names) == 0 {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("no config.yaml, no config.yaml.d and no YAML file in it")}
	}
	var out []File
	for _, n := range names {
		data, err := os.ReadFile(n)
		if err != nil {
			return nil, err
		}
		out = append(out, File{n, data})
	}
	return out, nil
}

// dropIns lists the files of a folder that count, by name.
func dropIns(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out []string
	for _, e := range entries {
		ext := strings.ToLower(filepath.Ext(e.Name()))
		if !e.IsDir() && (ext == ".yaml" || ext == ".yml") {
			out = append(out, filepath.Join(dir, e.Name()))
		}
	}
	return out, err
}

// Split parts the text of several files, each after a line "# file: PATH", and
// puts the files of each config.yaml.d into the order of their names. Text
// before the first such line is left out.
func Split(text []byte) []File {
	var out []File
	sc := bufio.NewScanner(bytes.NewReader(text))
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		if name, ok := strings.CutPrefix(sc.Text(), "# file: "); ok {
			out = append(out, File{Name: strings.TrimSpace(name)})
			continue
		}
		if len(out) > 0 {
			f := &out[len(out)-1]
			f.Data = append(append(f.Data, sc.Bytes()...), '\n')
		}
	}
	sortDropIns(out)
	return out
}

// sortDropIns orders each run of files of one config.yaml.d.
func sortDropIns(files []File) {
	for from := 0; from < len(files); {
		dir := filepath.Dir(files[from].Name)
		to := from + 1
		for to < len(files) && filepath.Dir(files[to].Name) == dir {
			to++
		}
		if strings.HasSuffix(dir, ".d") {
			slices.SortStableFunc(files[from:to], func(a, b File) int { return strings.Compare(a.Name, b.Name) })
		}
		from = to
	}
}
