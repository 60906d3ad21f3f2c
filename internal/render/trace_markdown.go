package render

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/report"
)

// traceMarkdown writes a trace to paste into an issue, nothing left out.
func traceMarkdown(w io.Writer, d *report.Document) error {
	b := bufio.NewWriter(w)
	p := page{b, d, Options{Format: "wide"}}
	_, _ = fmt.Fprintf(b, "# %s\n\n%s\n", md(d.Verdict.Text), md(p.header()))
	for _, n := range d.Trace.Verdict.Next {
		_, _ = fmt.Fprintf(b, "\n- %s: %s", md(n.Why), mdCode(quote(n.Argv)))
	}
	_, _ = b.WriteString("\n")
	for i := range d.Trace.Services {
		s := &d.Trace.Services[i]
		for _, sec := range sections(s) {
			_, _ = fmt.Fprintf(b, "\n## %s\n", md(strings.Join(sec.names(), ", ")))
			for _, g := range sec.groups {
				text := g.Text
				if g.Share != "" {
					text += "; " + g.Share + " " + g.Outcome
				}
				_, _ = fmt.Fprintf(b, "\n**%s** %s: %s\n", md(string(g.State)), md(strings.Join(g.Nodes, ", ")), md(text))
				for _, note := range g.Notes {
					_, _ = fmt.Fprintf(b, "\n- as it should be: %s", md(note))
				}
				if len(g.Backends) > 0 {
					_, _ = b.WriteString("\n| backend | pod | node | API | agent | kernel | note |\n|---|---|---|---|---|---|---|\n")
					for _, e := range g.Backends {
						_, _ = fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s | %s |\n", md(cmp.Or(e.Address, "?")), md(e.Pod), md(e.Node), md(e.API), md(e.Agent), md(e.Kernel), md(e.Note))
					}
				}
				for _, path := range g.Paths {
					_, _ = fmt.Fprintf(b, "\n- %s", md(p.path(path)))
				}
				_, _ = b.WriteString("\n")
			}
		}
		for _, a := range s.Absent {
			_, _ = fmt.Fprintf(b, "\n- %s\n", md(strings.TrimSpace(a.Type+" on "+strings.Join(a.Nodes, ", ")+": "+a.Text)))
		}
	}
	return b.Flush()
}
