package render

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/report"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/trace"
)

// TraceFormats lists the formats of a trace, the default first.
func TraceFormats() []string {
	return append([]string{"text", "wide", "json", "yaml", "markdown", "dot", "mermaid"}, templates...)
}

// traced draws a document that holds a trace.
func traced(w io.Writer, d *report.Document, o Options) error {
	switch o.Format {
	case "", "text", "wide":
		return traceText(w, d, o)
	case "markdown":
		return traceMarkdown(w, d)
	case "dot":
		return dot(w, d.Trace)
	case "mermaid":
		return mermaid(w, d.Trace)
	}
	return fmt.Errorf("output format %q: want one of %s for a trace", o.Format, strings.Join(TraceFormats(), ", "))
}

func traceText(w io.Writer, d *report.Document, o Options) error {
	p := page{bufio.NewWriter(w), d, o}
	if o.Quiet {
		p.verdict()
		return p.Flush()
	}
	p.say(0, p.header())
	p.verdict()
	if found := d.Trace.Found; found != "" {
		p.say(2, Clean(found))
	}
	p.next(d.Trace.Verdict.Next)
	for i := range d.Trace.Services {
		p.service(&d.Trace.Services[i])
	}
	p.probe()
	p.findings()
	p.notes()
	return p.Flush()
}

// next is printed right below the verdict, where it is looked for, and never
// folded: commands are there to be copied.
func (p page) next(next []trace.Next) {
	last := ""
	for _, n := range next {
		why := n.Why + ":"
		if why == last {
			why = ""
		}
		last = n.Why + ":"
		line := quote(n.Argv)
		if n.Note != "" {
			line += "  # " + n.Note
		}
		_, _ = fmt.Fprintf(p, "  %-7s %s\n", Clean(why), Clean(line))
	}
}

func (p page) service(s *trace.Service) {
	if len(p.d.Trace.Services) > 1 {
		_, _ = fmt.Fprintf(p, "\n%s\n", p.bold(Clean("service/"+s.Namespace+"/"+s.Name)))
	}
	all := sections(s)
	var last []string
	for i, sec := range all {
		if i == maxSubjects && !p.wide() {
			_, _ = fmt.Fprintf(p, "\n+%d more (-o wide)\n", len(all)-i)
			break
		}
		_, _ = p.WriteString("\n" + p.bold(fold(Clean(strings.Join(sec.names(), ", ")), p.o.Width, 0)) + "\n")
		detailed := p.detailed(sec)
		if p.groups(sec, detailed); detailed {
			last = p.paths(sec.groups, last)
		}
	}
	if len(s.Frontends) == 0 && len(s.Absent) == 1 && len(p.d.Trace.Services) == 1 && !p.wide() {
		return // the verdict has said it
	}
	if len(s.Absent) > 0 {
		_, _ = p.WriteString("\n")
	}
	for _, a := range s.Absent {
		sign := map[trace.State]string{trace.Nobody: "error", trace.Unknown: "unknown"}[a.State]
		p.item(0, p.sign(orInfo(sign)), strings.TrimSpace(a.Type+" on "+p.nodesOf(a.Nodes))+": "+a.Text)
	}
}

// detailed holds for sections that get tables and ways: all, or where there is
// trouble or more than one Service those with trouble.
func (p page) detailed(sec section) bool {
	here := slices.ContainsFunc(sec.groups, troubled)
	return here || p.wide() || len(p.d.Trace.Services) == 1 && p.d.Verdict.Errors+p.d.Verdict.Warnings == 0 || p.d.Verdict.Outcome == report.Unknown
}

// groups draws the nodes that agree, with a table where something is wrong, or
// one where nothing is.
func (p page) groups(sec section, detailed bool) {
	list := sec.groups
	if !p.wide() {
		list = merged(list)
	}
	bad := slices.ContainsFunc(list, troubled)
	for k, g := range list {
		if k == maxSubjects && !p.wide() {
			p.say(2, fmt.Sprintf("+%d more groups of nodes (-o wide)", len(list)-k))
			return
		}
		p.group(g, detailed && (p.wide() || troubled(g) || !bad && k == 0))
	}
}

func orInfo(sign string) string {
	if sign == "" {
		return "info"
	}
	return sign
}

func troubled(g trace.Group) bool {
	return g.State == trace.Behind || g.State == trace.Nobody || g.State == trace.Unknown
}

// signOf is the sign of a group.
func signOf(g trace.Group) string {
	switch g.State {
	case trace.OK:
		return "ok"
	case trace.Unknown:
		return "unknown"
	case trace.Behind, trace.Nobody:
		return g.Severity
	}
	return "info"
}

// item is a paragraph behind a sign.
func (p page) item(indent int, sign, s string) {
	_, _ = p.WriteString(strings.Repeat(" ", indent) + sign + " " + fold(Clean(s), p.o.Width, indent+2) + "\n")
}

func (p page) group(g trace.Group, table bool) {
	s := p.nodesOf(g.Nodes) + ": " + g.Text
	if g.Share != "" {
		s += "; " + g.Share + " " + g.Outcome
	}
	p.item(2, p.sign(signOf(g)), s)
	if len(g.Addresses) > len(g.Nodes) && p.wide() {
		p.say(4, "addresses: "+Clean(strings.Join(g.Addresses, ", ")))
	}
	if len(g.Notes) > 0 {
		p.say(4, "as it should be: "+p.some(g.Notes, 3))
	}
	if table && len(g.Backends) > 0 {
		p.backends(g)
	}
}

func (p page) nodesOf(nodes []string) string {
	if len(nodes) == p.d.NodeCount && len(nodes) > 2 {
		return fmt.Sprintf("all %d nodes", len(nodes))
	}
	return p.some(nodes, maxNodes)
}

// paths prints the ways of the clients, unless they are those of the section
// above.
func (p page) paths(groups []trace.Group, last []string) []string {
	var lines []string
	for _, g := range groups {
		for _, path := range g.Paths {
			if len(path.Hops) == 1 && strings.HasPrefix(g.Text, path.Hops[0].Text) {
				continue // the group has said it
			}
			if line := p.path(path); !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
	}
	if len(lines) > 4 && !p.wide() {
		lines = append(lines[:4:4], fmt.Sprintf("+%d more ways (-o wide)", len(lines)-4))
	}
	if slices.Equal(lines, last) {
		return last
	}
	for _, l := range lines {
		_, _ = p.WriteString("    " + fold(Clean(l), p.o.Width, 6) + "\n")
	}
	return lines
}

func (p page) path(path trace.Path) string {
	arrow := " → "
	if p.o.ASCII {
		arrow = " -> "
	}
	var words []string
	for _, h := range path.Hops {
		if h.Text != trace.PlainRow {
			words = append(words, h.Text)
		}
	}
	return path.Client + ": " + strings.Join(words, arrow)
}
