package monitor

import (
	"bytes"
	"io"

	"github.com/kubectl-kpr/kubectl-kpr/internal/cilium"
)

// maxLine bounds one line; what is longer is no event.
const maxLine = 64 << 10

// liner cuts a stream into lines.
type liner struct {
	each func(string)
	part []byte
	skip bool // the rest of a line that is too long
}

// Write takes what came.
func (l *liner) Write(p []byte) (int, error) {
	n := len(p)
	for {
		line, rest, whole := bytes.Cut(p, []byte("\n"))
		if len(l.part)+len(line) > maxLine {
			l.part, l.skip = nil, true
		}
		if !l.skip {
			l.part = append(l.part, line...)
		}
		if !whole {
			return n, nil
		}
		if !l.skip {
			l.each(string(l.part))
		}
		l.part, l.skip, p = l.part[:0], false, rest
	}
}

// rest hands on a last line without its end.
func (l *liner) rest() {
	if len(l.part) > 0 {
		l.each(string(l.part))
		l.part = nil
	}
}

func firstLine(text []byte) string {
	for line := range bytes.Lines(text) {
		if s := cilium.PlainLine(string(line), 200); s != "" {
			return s
		}
	}
	return ""
}

// bounded passes on at most n bytes and swallows the rest.
func bounded(w io.Writer, n int) io.Writer { return &limit{w, n} }

type limit struct {
	w    io.Writer
	left int
}

func (l *limit) Write(p []byte) (int, error) {
	take := min(len(p), l.left)
	l.left -= take
	if _, err := l.w.Write(p[:take]); err != nil {
		return 0, err
	}
	return len(p), nil
}
