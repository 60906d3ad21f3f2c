package checkpoint

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/report"
)

// Look is one line of a soak's file.
type Look struct {
	Time    time.Time `json:"time"`
	Stage   int       `json:"stage"`
	Server  string    `json:"server,omitempty"`
	Outcome string    `json:"outcome"` // ok, found, unknown
	Text    string    `json:"text"`
	Found   []string  `json:"found,omitempty"` // keys of findings that count
}

// LookOf is the line of a document.
func LookOf(d *report.Document) Look {
	l := Look{Time: d.Time, Stage: d.Stage.Number, Server: d.Source.Server, Outcome: string(d.Verdict.Outcome), Text: d.Verdict.Text}
	for _, f := range d.Findings {
		if f.Severity == "error" {
			l.Found = append(l.Found, f.Key)
		}
	}
	return l
}

// Soak is a cluster watched for a while, over restarts of who watches.
type Soak struct {
	Looks    []Look
	interval time.Duration
}

// Resume reads the looks of an earlier run; a file that is not there is an
// empty soak. A last line that was cut by a crash is left out.
func Resume(name string, interval time.Duration) (*Soak, error) {
	s := &Soak{interval: interval}
	if name == "" {
		return s, nil
	}
	f, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return s, s.read(name, f)
}

func (s *Soak) read(name string, r io.Reader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	var fault error
	for n := 1; lines.Scan(); n++ {
		if fault != nil {
			return fault // not the last line
		}
		var l Look
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil || l.Time.IsZero() || l.Outcome == "" {
			fault = fmt.Errorf("%s, line %d: not a look of verify --save; name another file", name, n)
			continue
		}
		s.Looks = append(s.Looks, l)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if fault != nil && len(s.Looks) == 0 {
		return fault // nothing of it is ours
	}
	return nil
}

// Add takes a look and, if name is not "", appends it to the file, synced.
func (s *Soak) Add(name string, l Look) error {
	s.Looks = append(s.Looks, l)
	if name == "" {
		return nil
	}
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	line, err := json.Marshal(l)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	if err := startLine(f); err != nil {
		return errors.Join(err, f.Close())
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Sync(), f.Close())
}

// startLine cuts off a line that a crash left without its end.
func startLine(f *os.File) error {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil || size == 0 {
		return err
	}
	at, last := size, make([]byte, 1)
	for at > 0 {
		if _, err := f.ReadAt(last, at-1); err != nil {
			return err
		}
		if last[0] == '\n' {
			break
		}
		at--
	}
	if at == size {
		return nil
	}
	return f.Truncate(at)
}

// Gap is a time in which nobody looked.
type Gap struct{ From, To time.Time }

// Gaps are the times between two looks that are longer than two intervals.
func (s *Soak) Gaps() []Gap {
	var out []Gap
	for i := 1; i < len(s.Looks); i++ {
		if a, b := s.Looks[i-1].Time, s.Looks[i].Time; b.Sub(a) > 2*s.interval {
			out = append(out, Gap{a, b})
		}
	}
	return out
}

// Lasted is the time from the first look to the last.
func (s *Soak) Lasted() time.Duration {
	if len(s.Looks) == 0 {
		return 0
	}
	return s.Looks[len(s.Looks)-1].Time.Sub(s.Looks[0].Time)
}

// Count is how many looks ended so.
func (s *Soak) Count(o report.Outcome) int {
	n := 0
	for _, l := range s.Looks {
		if l.Outcome == string(o) {
			n++
		}
	}
	return n
}

// Run looks every interval until the soak has lasted as long as it should. A
// look that fails is a look that saw nothing. It returns early only with ctx.
func (s *Soak) Run(ctx context.Context, now func() time.Time, name string, lasts time.Duration, look func(context.Context) (Look, error), tell func(Look)) error {
	for {
		l, err := look(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			l = Look{Time: now().UTC().Truncate(time.Second), Outcome: string(report.Unknown), Text: "nothing could be seen: " + err.Error()}
		}
		if err := s.Add(name, l); err != nil {
			return fmt.Errorf("save the look: %w", err)
		}
		tell(l)
		if s.Lasted() >= lasts {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(s.interval):
		}
	}
}
