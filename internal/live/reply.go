package live

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/internal/cilium"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// reply is what came back for one question.
type reply struct {
	out    frame
	stderr []byte
	err    error // why the exec ended before its script did, nil if it did not
	origin string
	binary string // the agent's command line, as the script found it
	read   time.Time
}

// worthAgain holds for answers that were lost on the way. One that reached
// its limit, or whose command ran and failed, would be the same again.
func (r reply) worthAgain(q question) bool {
	if r.out.ended {
		return !r.out.late && r.out.code == 0 && len(r.out.data) == 0 && !q.ask.MayBeEmpty
	}
	return len(r.out.data) < q.item.Cap
}

// artifact judges a reply. The data are copied: a kept status must not keep
// the whole node's answers alive. With an error they are what was read.
func (r reply) artifact(q question) (source.Artifact, error) {
	a := source.Artifact{Query: q.query, Format: q.ask.Form.Format, Stem: q.ask.Form.Stem,
		Data: bytes.Clone(r.out.data), Origin: r.origin, Read: r.read, Exit: r.out.code}
	switch {
	case !r.out.begun && r.err != nil:
		return a, r.err
	case !r.out.begun:
		return a, fmt.Errorf("the node's answer ended before it: %w", source.ErrCut)
	case len(r.out.data) >= q.item.Cap:
		return a, fmt.Errorf("more than %d bytes: %w", q.item.Cap, source.ErrCut)
	case !r.out.ended && len(r.out.data) == 0 && r.err != nil:
		return a, r.err
	case !r.out.ended:
		return a, fmt.Errorf("ends after %d bytes%s: %w", len(r.out.data), because(r.err), source.ErrCut)
	case r.out.late:
		return a, fmt.Errorf("not asked, the node's time was up: %w", source.ErrUnreachable)
	case r.out.code != 0:
		return a, r.failed(q)
	case len(bytes.TrimSpace(r.out.data)) == 0 && !q.ask.MayBeEmpty:
		return a, fmt.Errorf("an empty answer%s: %w", r.said(), source.ErrCut)
	}
	return a, nil
}

// failed tells what the exit code of a command means for its answer.
func (r reply) failed(q question) error {
	text := string(r.stderr[:min(len(r.stderr), 4096)]) + "\n" + string(r.out.data[:min(len(r.out.data), 4096)])
	switch {
	case r.out.code == 127 || r.out.code == 126:
		return fmt.Errorf("the command is not there%s: %w", r.said(), source.ErrAbsent)
	case strings.Contains(text, "unknown command"), strings.Contains(text, "unknown flag"), strings.Contains(text, "unknown shorthand flag"):
		return fmt.Errorf("this version does not know the command%s: %w", r.said(), source.ErrAbsent)
	case strings.Contains(text, "Is the agent running?"):
		return fmt.Errorf("%w%s", source.ErrAgentDown, r.said())
	case r.out.code == 124 || r.out.code == 137:
		return fmt.Errorf("no answer within %s (exit code %d): %w", q.item.Timeout, r.out.code, source.ErrUnreachable)
	case q.ask.Form.Format == source.JSON && json.Valid(r.out.data),
		q.ask.Form.Format != source.JSON && len(bytes.TrimSpace(r.out.data)) > 0:
		return nil
	case len(bytes.TrimSpace(r.out.data)) > 0:
		return fmt.Errorf("exit code %d and no whole answer%s: %w", r.out.code, r.said(), source.ErrCut)
	}
	return fmt.Errorf("exit code %d and no answer%s: %w", r.out.code, r.said(), source.ErrUnreachable)
}

// said is ": " and the first line that the command wrote to stderr, or to
// stdout where it wrote none.
func (r reply) said() string {
	for _, text := range [][]byte{r.stderr, r.out.data} {
		for line := range bytes.Lines(text[:min(len(text), 4096)]) {
			if s := cilium.PlainLine(string(line), 200); s != "" {
				return ": " + s
			}
		}
	}
	return ""
}

// because words an exec's error without the class that it wraps, as every
// error here carries exactly one.
func because(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, source.ErrUnreachable):
		return " (the connection broke or time was up)"
	}
	return " (" + err.Error() + ")"
}
