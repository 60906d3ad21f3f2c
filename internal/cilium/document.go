package cilium

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// document is the JSON within an answer. Collectors put standard error and
// output into one file, so log lines and errors may stand before and after it.
type document struct {
	dec   *json.Decoder
	body  []byte
	errs  DecodeErrors
	fault string

	counted int64 // how far into body lines have been counted
	line    int   // the line of the answer at counted
}

// openDocument finds the first line that opens a JSON value. A nil document
// with a nil error is the answer `null`: an empty list.
func openDocument(name string, data []byte) (*document, error) {
	d := &document{errs: DecodeErrors{Answer: name}}
	rest := bytes.TrimPrefix(data, []byte("\ufeff"))
	for line := 1; len(rest) > 0; line++ {
		text, after, _ := bytes.Cut(rest, []byte("\n"))
		trimmed := string(bytes.TrimSpace(text))
		if opensJSON(trimmed) {
			d.body, d.line = rest, line
			d.dec = json.NewDecoder(bytes.NewReader(rest))
			d.dec.UseNumber()
			return d, nil
		}
		if trimmed == "null" {
			return nil, nil
		}
		d.around(line, string(text), "text before the JSON")
		rest = after
	}
	if d.fault != "" {
		return nil, faultError(name, d.fault)
	}
	if len(d.errs.Errors) == 0 {
		return nil, fmt.Errorf("%s: %w", name, ErrEmpty)
	}
	return nil, &d.errs
}

// opensJSON tells the first line of a JSON value from lines like "[stdin]".
func opensJSON(line string) bool {
	if line == "" {
		return false
	}
	next := strings.TrimSpace(line[1:])
	switch line[0] {
	case '[':
		return next == "" || strings.ContainsRune(`{["]`, rune(next[0]))
	case '{':
		return !strings.HasPrefix(line, `{"level":`) && (next == "" || next[0] == '"' || next[0] == '}')
	}
	return false
}

func (d *document) around(line int, text, problem string) {
	switch {
	case isNoise(text):
	case isFault(text):
		if d.fault == "" {
			d.fault = text
		}
		d.errs.add(line, text, "the command reports a failure")
	default:
		d.errs.add(line, text, problem)
	}
}

// here is the line of the answer that the decoder has come to.
func (d *document) here() int {
	at := d.dec.InputOffset()
	d.line += bytes.Count(d.body[d.counted:at], []byte("\n"))
	d.counted = at
	return d.line
}

// broken records that the JSON ends or breaks here. The decoder cannot go on.
func (d *document) broken(err error) {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		d.errs.add(d.here(), "", "the JSON is cut off")
		return
	}
	d.errs.add(d.here(), err.Error(), "broken JSON")
}

// list calls member for each element of the array that the document is.
func (d *document) list(member func(line int, raw json.RawMessage)) error {
	if !d.enter('[') {
		return d.err()
	}
	for d.dec.More() {
		if !d.element(member) {
			return d.err()
		}
	}
	d.leave()
	return d.err()
}

// element decodes the next value and tells the line that it begins in.
func (d *document) element(member func(line int, raw json.RawMessage)) bool {
	var raw json.RawMessage
	if err := d.dec.Decode(&raw); err != nil {
		d.broken(err)
		return false
	}
	member(d.here()-bytes.Count(raw, []byte("\n")), raw)
	return true
}

// object calls member for each member of the object that the document is, in
// the order of the document.
func (d *document) object(member func(line int, key string, raw json.RawMessage)) error {
	if !d.enter('{') {
		return d.err()
	}
	for d.dec.More() {
		token, err := d.dec.Token()
		key, ok := token.(string)
		line := d.here()
		var raw json.RawMessage
		if err == nil && ok {
			err = d.dec.Decode(&raw)
		}
		if err != nil || !ok {
			d.broken(err)
			return d.err()
		}
		member(line, key, raw)
	}
	d.leave()
	return d.err()
}

// run calls member for each of the objects that stand one after the other, as
// the agent's shell prints a table. One array of objects is taken as well.
func (d *document) run(member func(line int, raw json.RawMessage)) error {
	if d.body[bytes.IndexAny(d.body, "[{")] == '[' {
		return d.list(member)
	}
	for {
		if !opensJSON(firstLine(d.body[d.dec.InputOffset():])) {
			break
		}
		if !d.element(member) {
			return d.err()
		}
	}
	d.after()
	return d.err()
}

func firstLine(b []byte) string {
	text, _, _ := bytes.Cut(bytes.TrimSpace(b), []byte("\n"))
	return string(bytes.TrimSpace(text))
}

func (d *document) enter(open json.Delim) bool {
	token, err := d.dec.Token()
	if err != nil {
		d.broken(err)
		return false
	}
	if token != open {
		d.errs.add(d.here(), fmt.Sprint(token), "want "+open.String())
		return false
	}
	return true
}

func (d *document) leave() {
	if _, err := d.dec.Token(); err != nil {
		d.broken(err)
		return
	}
	d.after()
}

// after looks at what follows the JSON.
func (d *document) after() {
	line := d.here()
	for i, text := range strings.Split(string(d.body[d.dec.InputOffset():]), "\n") {
		d.around(line+i, text, "text after the JSON")
	}
}

func (d *document) err() error {
	if len(d.errs.Errors) == 0 {
		return nil
	}
	return &d.errs
}

// into decodes one part of an answer that has to be there. A field of the wrong
// type leaves its zero value and is reported; the other fields are still read.
func (d *document) into(line int, raw json.RawMessage, v any) bool {
	if absent(raw) {
		d.errs.add(line, string(raw), "value is missing")
		return false
	}
	return d.optional(line, raw, v)
}

// optional is into for a part that may be absent or null, which is false
// without a report.
func (d *document) optional(line int, raw json.RawMessage, v any) bool {
	if absent(raw) {
		return false
	}
	if err := json.Unmarshal(raw, v); err != nil {
		d.errs.add(line, string(raw), err.Error())
		return false
	}
	return true
}

func absent(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }
