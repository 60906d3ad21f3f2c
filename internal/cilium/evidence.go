package cilium

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// What the whole of an answer can say instead of being one. The decoders wrap
// these with the first line of the answer.
var (
	// ErrAgentDown: the command ran, but no agent answered it.
	ErrAgentDown = source.ErrAgentDown
	// ErrCommandFailed: the answer is only the command's own error, for example
	// that this version has no such command.
	ErrCommandFailed = errors.New("command failed")
	// ErrEmpty: there is nothing to read, not even a table's header.
	ErrEmpty = errors.New("empty answer")
)

// LineError is one line of an answer that no rule could read.
type LineError struct {
	Line    int    // counted from 1; 0 where the answer has no such place
	Text    string // the line or the JSON member, cut to 200 bytes
	Problem string
}

// Error names the line, the problem and the text.
func (e *LineError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %q", e.Problem, e.Text)
	}
	return fmt.Sprintf("line %d: %s: %q", e.Line, e.Problem, e.Text)
}

// DecodeErrors lists what a decoder could not read of an answer. It comes with
// the part that could be read: evidence with gaps, not a lost answer.
type DecodeErrors struct {
	Answer string // which answer, in words
	Errors []*LineError
	More   int // further unreadable lines beyond the first hundred
}

// Error counts the unreadable lines and tells the first.
func (e *DecodeErrors) Error() string {
	n := len(e.Errors) + e.More
	if n == 1 {
		return fmt.Sprintf("%s: %v", e.Answer, e.Errors[0])
	}
	return fmt.Sprintf("%s: %d unreadable lines, the first is %v", e.Answer, n, e.Errors[0])
}

// Unwrap gives the single errors.
func (e *DecodeErrors) Unwrap() []error {
	all := make([]error, len(e.Errors))
	for i, le := range e.Errors {
		all[i] = le
	}
	return all
}

const (
	maxLineErrors = 100
	maxErrorText  = 200
)

func (e *DecodeErrors) add(line int, text, problem string) {
	if len(e.Errors) == maxLineErrors {
		e.More++
		return
	}
	if len(text) > maxErrorText {
		text = text[:maxErrorText]
		for !utf8.ValidString(text) && len(text) > maxErrorText-utf8.UTFMax {
			text = text[:len(text)-1]
		}
		text += "…"
	}
	e.Errors = append(e.Errors, &LineError{Line: line, Text: strings.ToValidUTF8(strings.TrimSpace(text), "\uFFFD"), Problem: problem})
}

// tally is the proof that a text decoder dropped nothing: Lines is the sum of
// the other four. Entries are lines whose content is in the value, Headers are
// titles of tables and sections, Noise is blank or known to carry nothing that
// the value holds, Errors are listed in DecodeErrors.
type tally struct{ Lines, Entries, Headers, Noise, Errors int }

func (t tally) balanced() bool { return t.Lines == t.Entries+t.Headers+t.Noise+t.Errors }

// answer walks the lines of a text answer. For every line that next returns,
// its user says exactly once what it was: entry, header, noise or fail.
type answer struct {
	lines []string
	at    int // number of the current line, from 1
	tally tally
	errs  DecodeErrors
	fault string // the first line in which the command speaks of its own failure
}

func newAnswer(name string, data []byte) *answer {
	return &answer{lines: splitLines(data), errs: DecodeErrors{Answer: name}}
}

// escapes are terminal colours: `cilium config` up to 1.9 prints them when its
// output is a terminal, as it is under `kubectl exec -t`.
var escapes = regexp.MustCompile("\x1b\\[[0-9;]*m")

func splitLines(data []byte) []string {
	text := strings.TrimPrefix(string(data), "\ufeff")
	if strings.Contains(text, "\x1b[") {
		text = escapes.ReplaceAllString(text, "")
	}
	lines := strings.Split(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	for i, l := range lines {
		lines[i] = strings.TrimSuffix(l, "\r")
	}
	return lines
}

// next is the next line that is neither blank, nor noise, nor the command's own
// failure. False is the end.
func (a *answer) next() (string, bool) {
	for a.at < len(a.lines) {
		line := a.lines[a.at]
		a.at++
		a.tally.Lines++
		switch {
		case isNoise(line):
			a.tally.Noise++
		case isFault(line):
			if a.fault == "" {
				a.fault = line
			}
			a.fail("the command reports a failure")
		default:
			return line, true
		}
	}
	return "", false
}

func (a *answer) entry()  { a.tally.Entries++ }
func (a *answer) header() { a.tally.Headers++ }
func (a *answer) noise()  { a.tally.Noise++ }

// fail records that the current line cannot be read.
func (a *answer) fail(problem string) {
	a.tally.Errors++
	a.errs.add(a.at, a.lines[a.at-1], problem)
}

// err is the verdict once all lines are read: nil, a whole answer that is none,
// or *DecodeErrors for the gaps.
func (a *answer) err() error {
	switch {
	case a.tally.Entries == 0 && a.tally.Headers == 0 && a.fault != "":
		return faultError(a.errs.Answer, a.fault)
	case len(a.errs.Errors) > 0:
		return &a.errs
	case a.tally.Entries == 0 && a.tally.Headers == 0:
		return fmt.Errorf("%s: %w", a.errs.Answer, ErrEmpty)
	}
	return nil
}

func faultError(name, line string) error {
	kind := ErrCommandFailed
	if speaksOfDeadAgent(line) {
		kind = ErrAgentDown
	}
	text := strings.ToValidUTF8(strings.TrimSpace(line), "\uFFFD")
	if len(text) > 2*maxErrorText {
		text = strings.ToValidUTF8(text[:2*maxErrorText], "") + "…"
	}
	return fmt.Errorf("%s: %w: %s", name, kind, text)
}

// noise is what stands around answers and says nothing about the node: log
// lines of the command line tool, kubectl's notes, the exit status that
// cilium-bugtool appends and the markdown of its old versions.
var noise = regexp.MustCompile(`^(?:level=|time=\S+ level=|time="|\{"level":|Warning: |warning: |` +
	`> Error while running '|Defaulted container |command terminated with exit code |` +
	"```" + `|# |[IWE][0-9]{4} [0-9:.]+ )`)

func isNoise(line string) bool {
	return strings.TrimSpace(line) == "" || noise.MatchString(line)
}

var fault = regexp.MustCompile(`^(?:Error: |error: |error parsing |Get "?https?:|Is the agent running\?|` +
	`Cannot get |Unable to |cilium: daemon unreachable|Cilium API client timeout|exec timeout|<stdin>:[0-9]+: |panic: )`)

func isFault(line string) bool { return fault.MatchString(line) }

// speaksOfDeadAgent knows the wordings of 1.9 to 1.20: the name of the socket
// stands in the URL or behind "dial unix".
func speaksOfDeadAgent(line string) bool {
	for _, words := range []string{
		"cilium.sock", "shell.sock", "Is the agent running?", "daemon unreachable", "Cilium API client timeout", "exec timeout",
	} {
		if strings.Contains(line, words) {
			return true
		}
	}
	return false
}
