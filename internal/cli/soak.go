package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/internal/checkpoint"
	"github.com/kubectl-kpr/kubectl-kpr/internal/render"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/report"
)

// printer tells of a soak, a line for each look: it is read in a pipe or hours
// later.
type printer struct {
	w    io.Writer
	json bool
}

func (p printer) look(l checkpoint.Look) {
	if p.json {
		_ = json.NewEncoder(p.w).Encode(l)
		return
	}
	_, _ = fmt.Fprintf(p.w, "%s  %-7s %s\n", l.Time.Format(time.RFC3339), l.Outcome, render.Clean(l.Text))
	for _, key := range l.Found {
		_, _ = fmt.Fprintf(p.w, "    %s\n", render.Clean(key))
	}
}

// sum ends a soak. It is good only if every look was and none is missing.
func (p printer) sum(s *checkpoint.Soak) error {
	found, unknown, gaps := s.Count(report.Found), s.Count(report.Unknown), s.Gaps()
	code, word := report.ExitOK, "soaked"
	switch {
	case found > 0:
		code, word = report.ExitFound, "not clean"
	case unknown > 0 || len(gaps) > 0:
		code, word = report.ExitUnknown, "not fully seen"
	}
	if !p.json {
		_, _ = fmt.Fprintf(p.w, "%s: %s, %d looks: %d ok, %d with findings, %d that could not see all, %d times without a look\n",
			word, s.Lasted(), len(s.Looks), s.Count(report.OK), found, unknown, len(gaps))
		for _, g := range gaps {
			_, _ = fmt.Fprintf(p.w, "  nobody looked from %s to %s (%s)\n", g.From.Format(time.RFC3339), g.To.Format(time.RFC3339), g.To.Sub(g.From))
		}
	}
	if code != report.ExitOK {
		return ExitError{code}
	}
	return nil
}
