package render

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/report"
)

// markdown writes a report to paste into an issue: nothing is capped, and all
// that came from the cluster is escaped.
func markdown(w io.Writer, d *report.Document) error {
	b := bufio.NewWriter(w)
	p := page{b, d, Options{Format: "wide"}}
	_, _ = fmt.Fprintf(b, "# %s\n\n%s\n", md(d.Verdict.Text), md(p.header()))
	if len(d.Nodes) > 0 {
		_, _ = b.WriteString("\n| property | value | nodes |\n|---|---|---|\n")
		for _, prop := range report.Grid(d.Nodes) {
			_, _ = fmt.Fprintf(b, "| %s | %s | %d of %d |\n", md(prop.Name), md(prop.Value), prop.Count, len(d.Nodes))
			for _, g := range prop.Else {
				_, _ = fmt.Fprintf(b, "| | %s | %s |\n", md(g.Value), md(strings.Join(g.Nodes, ", ")))
			}
		}
	}
	settingsTable(b, p)
	for _, g := range groups(d.Findings) {
		_, _ = fmt.Fprintf(b, "\n## %s: %s (%s)\n\n%s\n", g.Severity, md(g.Rule), md(p.where(g)), md(g.Message))
		for _, e := range compact(g.evidence) {
			_, _ = fmt.Fprintf(b, "\n- proof: %s", md(e))
		}
		if len(g.Next) > 0 {
			_, _ = fmt.Fprintf(b, "\n- next: %s", mdCode(quote(g.Next)))
		}
		_, _ = b.WriteString("\n")
	}
	probeMarkdown(b, d.Probe)
	if len(d.Gaps) > 0 {
		_, _ = b.WriteString("\n## Not known\n\n")
		for _, g := range d.Gaps {
			where := g.Node
			if where == "" {
				where = "cluster"
			}
			if g.Topic != "" {
				where += ": " + g.Topic
			}
			_, _ = fmt.Fprintf(b, "- %s: %s (no verdict of %s)\n", md(where), md(g.Reason), md(strings.Join(g.Checks, ", ")))
		}
	}
	return b.Flush()
}

var mdEscaper = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", "&lt;", ">", "&gt;", "&", "&amp;", "|", `\|`, "#", `\#`, "!", `\!`, "~", `\~`,
)

func md(s string) string { return mdEscaper.Replace(strings.TrimSpace(Clean(s))) }

// mdCode is a code span that may hold backquotes itself.
func mdCode(s string) string {
	s = Clean(s)
	fence := "`"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	if len(fence) > 1 {
		return fence + " " + s + " " + fence
	}
	return fence + s + fence
}
