package cilium

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
)

// DecodeConfigText reads `config` and `config --all`. A key below another one,
// printed indented, is "Parent.Key"; a parent with nothing below has the value
// "". The read-write settings follow the read-only ones: of a key that stands
// in both, such as Debug, the later and realised one counts.
//
// Up to 1.9 a key and its value are parted by blanks, since then by a colon.
func DecodeConfigText(data []byte) (agent.Config, error) {
	c, a := configText(data)
	return c, a.err()
}

func configText(data []byte) (agent.Config, *answer) {
	a := newAnswer("config", data)
	c := agent.Config{}
	parent := ""
	for line, ok := a.next(); ok; line, ok = a.next() {
		trimmed := strings.TrimSpace(line)
		nested := line[0] == '\t'
		switch {
		case strings.HasPrefix(trimmed, "####"):
			parent = ""
			a.header()
			continue
		case nested && parent == "":
			a.fail("indented setting without one above it")
			continue
		}
		key, value, err := cutSetting(trimmed, nested)
		if err != nil {
			a.fail(err.Error())
			continue
		}
		switch {
		case nested:
			delete(c, parent)
			c[parent+"."+key] = value
		case key == trimmed: // alone on its line
			parent = key
			c[key] = ""
		default:
			parent = ""
			c[key] = value
		}
		a.entry()
	}
	return c, a
}

// cutSetting reads "Key   : value", "Key: value" and "Key   value"; a word of
// its own is a key without a value. Keys of maps may hold colons themselves.
func cutSetting(s string, nested bool) (key, value string, err error) {
	separator := ":"
	if nested && strings.Contains(s, " : ") {
		separator = " : "
	}
	key, value, ok := strings.Cut(s, separator)
	if !ok {
		key, value = cutWord(s)
	}
	key = strings.TrimSpace(key)
	if key == "" || strings.ContainsAny(key, " \t") {
		return "", "", errors.New("setting without a key of one word")
	}
	return key, strings.TrimSpace(value), nil
}

// DecodeConfigJSON reads `config -o json` and `config --all -o json` into the
// same keys and values as DecodeConfigText, as far as both have them: lists are
// written "[a b]", nothing is "<nil>", and members of objects "Parent.Key". The
// realised options of `--all` lose the name of the object around them.
func DecodeConfigJSON(data []byte) (agent.Config, error) {
	d, err := openDocument("config", data)
	if d == nil {
		return nil, err
	}
	c := agent.Config{}
	err = d.object(func(line int, key string, raw json.RawMessage) {
		switch key {
		case "options":
			d.settings(line, "", raw, c)
		case "policy-enforcement":
			d.settings(line, "PolicyEnforcement", raw, c)
		default:
			d.settings(line, key, raw, c)
		}
	})
	return c, err
}

// settings writes a value of any shape under key.
func (d *document) settings(line int, key string, raw json.RawMessage, c agent.Config) {
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.UseNumber() // as it was written, whatever its size
	var value any
	if err := dec.Decode(&value); err != nil {
		d.errs.add(line, string(raw), err.Error())
		return
	}
	object, ok := value.(map[string]any)
	if !ok {
		c[key] = printed(value)
		return
	}
	if len(object) == 0 && key != "" {
		c[key] = ""
	}
	for name, member := range object {
		if key != "" {
			name = key + "." + name
		}
		c[name] = printed(member)
	}
}

// printed writes a value as the text form does.
func printed(value any) string {
	switch v := value.(type) {
	case nil:
		return "<nil>"
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		if v {
			return "true"
		}
		return "false"
	case []any:
		words := make([]string, len(v))
		for i, item := range v {
			words[i] = printed(item)
		}
		return "[" + strings.Join(words, " ") + "]"
	}
	data, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(data)
}
