package render

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/report"
)

// diffMarkdown is a comparison to paste into an issue: nothing is capped.
func diffMarkdown(w io.Writer, d *report.Document) error {
	b := bufio.NewWriter(w)
	p := page{b, d, Options{Format: "wide"}}
	x := d.Diff
	_, _ = fmt.Fprintf(b, "# %s\n\n- before: %s\n- after: %s\n", md(d.Verdict.Text), md(p.before().header()), md(p.header()))
	for _, part := range []struct {
		title    string
		findings []report.Finding
	}{{"New findings", x.New}, {"Findings gone", x.Gone}} {
		if len(groups(part.findings)) > 0 {
			_, _ = fmt.Fprintf(b, "\n## %s\n\n", part.title)
		}
		for _, g := range groups(part.findings) {
			_, _ = fmt.Fprintf(b, "- %s: %s (%s): %s\n", g.Severity, md(g.Rule), md(p.where(g)), md(g.Message))
		}
	}
	if len(x.Changed) > 0 {
		_, _ = b.WriteString("\n## Findings changed\n\n")
	}
	for _, f := range x.Changed {
		_, _ = fmt.Fprintf(b, "- %s: %s (%s %s)\n  - was %s: %s\n  - is: %s\n", f.Severity, md(f.Rule), md(f.Subject), md(f.Node), md(f.WasAt), md(f.Was), md(f.Message))
	}
	if len(x.Came)+len(x.Went) > 0 {
		_, _ = b.WriteString("\n## Nodes\n\n")
		for _, l := range []struct {
			word  string
			nodes []string
		}{{"came", x.Came}, {"went", x.Went}} {
			if len(l.nodes) > 0 {
				_, _ = fmt.Fprintf(b, "- %s: %s\n", l.word, md(strings.Join(l.nodes, ", ")))
			}
		}
	}
	mdTable(b, "Nodes and versions", propertyHead, p.propertyRows(x.Properties))
	mdTable(b, "Settings", settingHead, p.settingRows(x.Settings))
	mdTable(b, "Frontends", frontendHead, p.frontendRows(x.Frontends))
	if len(x.Uncompared) > 0 {
		_, _ = b.WriteString("\n## Not compared\n\n")
	}
	for _, u := range lacking(x.Uncompared) {
		_, _ = fmt.Fprintf(b, "- %s: %s (%s): %s\n", md(strings.Join(u.Nodes, ", ")), md(u.What), sideWord(u.Side), md(u.Reason))
	}
	for _, n := range d.Notes {
		_, _ = fmt.Fprintf(b, "\n> %s\n", md(n))
	}
	return b.Flush()
}

func mdTable(b *bufio.Writer, title string, head []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	_, _ = fmt.Fprintf(b, "\n## %s\n\n| %s |\n|%s\n", title, strings.ToLower(strings.Join(head, " | ")), strings.Repeat("---|", len(head)))
	for _, r := range rows {
		cells := make([]string, len(r))
		for i := range r {
			cells[i] = md(r[i])
		}
		_, _ = fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
	}
}
