package cilium

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
)

// The newest part of a log is all that is read: as much as a running cluster is
// asked for, however long a recorded log may be.
const (
	maxLogBytes = 256 << 10
	maxLogLines = 2000
)

// DecodeAgentLog reads the warnings and errors of an agent's log, newest last,
// and the lines without a level. Up to 1.17 the lines are logrus', later slog's;
// both write key=value pairs, or JSON if told to. Lines of other levels are
// passed over. Any line is an answer, so there is no error but that of an empty
// log.
func DecodeAgentLog(data []byte) ([]agent.LogLine, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, fmt.Errorf("agent log: %w", ErrEmpty)
	}
	if len(data) > maxLogBytes {
		data = data[len(data)-maxLogBytes:]
		if i := bytes.IndexByte(data, '\n'); i >= 0 {
			data = data[i+1:]
		}
	}
	var lines []agent.LogLine
	for _, line := range splitLines(data) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		if l := logLine(strings.ToValidUTF8(line, "\uFFFD")); worthKeeping(l.Level) {
			lines = append(lines, l)
		}
	}
	if extra := len(lines) - maxLogLines; extra > 0 {
		lines = slices.Clone(lines[extra:])
	}
	return lines, nil
}

func worthKeeping(level string) bool {
	return level != "info" && level != "debug" && level != "trace"
}

// before stands in front of a line where `kubectl logs --prefix --timestamps`
// wrote it.
var before = regexp.MustCompile(`^(?:\[pod/[^\]]+\] )?(?:[0-9]{4}-[0-9]{2}-[0-9]{2}T\S+Z )?`)

func logLine(line string) agent.LogLine {
	bare := line[len(before.FindString(line)):]
	fields := jsonFields(bare)
	if fields == nil {
		fields = pairs(bare)
	}
	level, ok := fields["level"]
	if !ok {
		return agent.LogLine{Message: strings.Clone(line)}
	}
	l := agent.LogLine{Level: strings.ToLower(level), Message: fields["msg"], Fields: fields}
	if l.Level == "warn" { // slog's word; logrus wrote it out
		l.Level = "warning"
	}
	for _, known := range []string{"level", "msg", "time", "source"} {
		delete(fields, known)
	}
	return l
}

func jsonFields(line string) map[string]string {
	if !strings.HasPrefix(line, "{") {
		return nil
	}
	var raw map[string]any
	if json.Unmarshal([]byte(line), &raw) != nil {
		return nil
	}
	fields := make(map[string]string, len(raw))
	for k, v := range raw {
		fields[k] = fmt.Sprint(v)
	}
	return fields
}

// pair is key=value or key="value"; inside quotes a backslash escapes.
var pair = regexp.MustCompile(`(?:^|\s)([A-Za-z][A-Za-z0-9_.-]*)=("(?:[^"\\]|\\.)*"|\S*)`)

func pairs(line string) map[string]string {
	fields := map[string]string{}
	for _, m := range pair.FindAllStringSubmatch(line, -1) {
		if _, again := fields[m[1]]; again {
			continue
		}
		fields[strings.Clone(m[1])] = unquote(m[2])
	}
	return fields
}

var escaped = strings.NewReplacer(`\"`, `"`, `\\`, `\`, `\n`, " ", `\t`, " ")

func unquote(s string) string {
	if inner, ok := strings.CutPrefix(s, `"`); ok {
		return escaped.Replace(strings.TrimSuffix(inner, `"`))
	}
	return strings.Clone(s)
}
