package sysdump

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// An answer in a dump is what a command wrote to standard output and standard
// error, in the order of arrival, in one file. Its exit code is there in words
// only, and only where it is not 0.

// failedLine is the last line of a command that failed.
var failedLine = regexp.MustCompile(`(?m)^> Error while running '[^\n]{0,400}': +(.{1,300})$`)

// maxAnswer bounds one file that is read into memory.
const maxAnswer = 256 << 20

// answer takes an output apart: what the command said, and the error that it
// amounts to. Errors wrap one of source's.
func answer(data []byte, f nodeFile) ([]byte, error) {
	data = unfenced(data)
	failure := ""
	if m := failedLine.FindSubmatchIndex(data); m != nil {
		failure = string(data[m[2]:m[3]])
		data = append(bytes.Clone(data[:m[0]]), data[m[1]:]...)
	}
	if noAgent(data) {
		return data, fmt.Errorf("%s: %w", firstLine(data), source.ErrAgentDown)
	}
	switch {
	case strings.Contains(failure, "executable file not found"), strings.Contains(failure, "exit status 127"):
		return data, fmt.Errorf("the command was not there: %w", source.ErrAbsent)
	case bytes.Contains(head(data), []byte("unknown command")), bytes.Contains(head(data), []byte("unknown flag")):
		return data, fmt.Errorf("this version does not know the command: %w", source.ErrAbsent)
	}
	if f.format == source.JSON {
		return jsonPart(data, f.part)
	}
	text := bytes.TrimSpace(withoutLog(data))
	switch {
	case failure != "" && strings.Contains(failure, "timeout"):
		return text, fmt.Errorf("the command ran into its time: %w", source.ErrCut)
	case failure != "" && (len(text) == 0 || bytes.HasPrefix(text, []byte("Error: "))):
		return text, fmt.Errorf("%s: %w", firstOf(firstLine(text), failure), source.ErrUnreachable)
	}
	return append(text, '\n'), nil
}

// noAgent holds for what the agent's command line says where no agent answers.
func noAgent(data []byte) bool {
	top := head(data)
	return bytes.Contains(top, []byte("Is the agent running?")) ||
		bytes.Contains(top, []byte("cilium.sock")) && bytes.Contains(top, []byte("connect: "))
}

func head(data []byte) []byte { return data[:min(len(data), 4096)] }

// unfenced takes the Markdown away that old versions wrote around an output.
func unfenced(data []byte) []byte {
	if !bytes.HasPrefix(data, []byte("# ")) {
		return data
	}
	_, rest, _ := bytes.Cut(data, []byte("\n"))
	rest = bytes.TrimLeft(rest, "\r\n")
	if !bytes.HasPrefix(rest, []byte("```")) {
		return data
	}
	_, rest, _ = bytes.Cut(rest, []byte("\n"))
	if i := bytes.LastIndex(rest, []byte("\n```")); i >= 0 {
		rest = rest[:i+1]
	}
	return rest
}

// logged are lines of a log among the output of a command.
var logged = regexp.MustCompile(`^(?:level=|time=|\{"level"|W[0-9]{4} |Warning: )`)

// withoutLog drops log lines before and after an output. What stands between
// two lines of it stays: a decoder tells what it does not know.
func withoutLog(data []byte) []byte {
	for {
		line, rest, more := bytes.Cut(data, []byte("\n"))
		if !logged.Match(line) || bytes.HasPrefix(line, []byte("Warning: iptables")) {
			return data
		}
		if data = rest; !more {
			return data
		}
	}
}

// jsonPart is the first JSON value that begins a line, or one key of it. The
// shell's tables come as one object of lists; a table is given as the run of
// objects that the agent's own shell prints.
func jsonPart(data []byte, part string) ([]byte, error) {
	start := -1
	for i := 0; i < len(data); {
		if data[i] == '{' && !bytes.HasPrefix(data[i:], []byte(`{"level"`)) || data[i] == '[' {
			start = i
			break
		}
		next := bytes.IndexByte(data[i:], '\n')
		if next < 0 {
			break
		}
		i += next + 1
	}
	if start < 0 {
		return data, fmt.Errorf("no JSON in it%s: %w", because(data), source.ErrCut)
	}
	var value json.RawMessage
	if err := json.NewDecoder(bytes.NewReader(data[start:])).Decode(&value); err != nil {
		return data, fmt.Errorf("%w: %w", source.ErrCut, err)
	}
	if part == "" {
		return value, nil
	}
	var whole map[string]json.RawMessage
	if err := json.Unmarshal(value, &whole); err != nil {
		return data, fmt.Errorf("%w: %w", source.ErrCut, err)
	}
	got, ok := whole[part]
	if !ok {
		return nil, fmt.Errorf("it has no %q, which came with a later version: %w", part, source.ErrAbsent)
	}
	if part != "frontends" {
		return got, nil
	}
	var rows []json.RawMessage
	if err := json.Unmarshal(got, &rows); err != nil {
		return nil, fmt.Errorf("%w: %w", source.ErrCut, err)
	}
	return bytes.Join(asBytes(rows), []byte("\n")), nil
}

func asBytes(rows []json.RawMessage) [][]byte {
	out := make([][]byte, len(rows))
	for i, r := range rows {
		out[i] = r
	}
	return out
}

func because(data []byte) string {
	if s := firstLine(data); s != "" {
		return ": " + s
	}
	return ""
}

func firstLine(data []byte) string {
	for line := range bytes.Lines(head(data)) {
		if s := strings.TrimSpace(string(line)); s != "" {
			return bounded(s)
		}
	}
	return ""
}

func firstOf(all ...string) string {
	for _, s := range all {
		if s != "" {
			return s
		}
	}
	return "it failed"
}

// bounded is text of a dump that may stand in an error: short, and printable.
func bounded(s string) string {
	if len(s) > 200 {
		s = s[:200] + "…"
	}
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return strconv.QuoteToASCII(s)
	}
	return s
}

// emptyMap holds for a map list without a row.
func emptyMap(data []byte) bool {
	text := strings.TrimSpace(string(data))
	return text == "" || !strings.Contains(text, "\n") && (strings.HasPrefix(text, "SERVICE ADDRESS") || strings.HasPrefix(text, "ID ")) || text == "{}"
}

var errTooLarge = errors.New("too large to be read")
