package render

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/trace"
)

// graph is a trace as points and lines: client, frontends, nodes that agree,
// backends.
type graph struct {
	points []point
	lines  []line
	at     map[string]int
}

type point struct {
	label []string // lines
	shape string   // client, frontend, nodes, backend
	bad   bool
}

type line struct {
	from, to int
	label    string
	bad      bool
}

func (g *graph) point(key, shape string, bad bool, label ...string) int {
	if i, ok := g.at[key]; ok {
		g.points[i].bad = g.points[i].bad || bad
		return i
	}
	g.at[key] = len(g.points)
	g.points = append(g.points, point{label, shape, bad})
	return len(g.points) - 1
}

func graphOf(t *trace.Trace) graph {
	g := graph{at: map[string]int{}}
	client := string(t.Client.Kind)
	switch t.Client.Kind {
	case trace.AnyClient:
		client = "any client"
	case trace.PodClient:
		client = "pod " + t.Client.Namespace + "/" + t.Client.Name
	case trace.NodeClient:
		client = "node " + t.Client.Name
	}
	from := g.point("client", "client", false, client)
	for i := range t.Services {
		s := &t.Services[i]
		for k, sec := range sections(s) {
			key := fmt.Sprintf("f/%d/%d", i, k)
			front := g.point(key, "frontend", false, append([]string{s.Namespace + "/" + s.Name}, sec.names()...)...)
			g.lines = append(g.lines, line{from: from, to: front})
			for n, group := range sec.groups {
				bad := troubled(group)
				nodes := g.point(fmt.Sprintf("%s/%d", key, n), "nodes", bad, someOf(group.Nodes, maxNodes), stateWords(group))
				g.lines = append(g.lines, line{front, nodes, "", bad})
				for _, b := range group.Backends {
					g.backend(nodes, s, b)
				}
			}
		}
		for k, a := range s.Absent {
			p := g.point(fmt.Sprintf("a/%d/%d", i, k), "nodes", a.State == trace.Nobody, s.Namespace+"/"+s.Name, strings.TrimSpace(a.Type+" "+a.Text))
			g.lines = append(g.lines, line{from: from, to: p})
		}
	}
	return g
}

func someOf(items []string, limit int) string {
	if len(items) <= limit {
		return strings.Join(items, ", ")
	}
	return fmt.Sprintf("%s +%d more", strings.Join(items[:limit], ", "), len(items)-limit)
}

func stateWords(g trace.Group) string {
	switch {
	case g.State == trace.Behind && g.Layer != "":
		return string(g.Layer) + " is behind: " + g.Text
	case g.State == trace.OK:
		return g.Text
	}
	return string(g.State) + ": " + g.Text
}

func (g *graph) backend(from int, s *trace.Service, b trace.Backend) {
	key := "b/" + s.Namespace + "/" + s.Name + "/" + b.Address
	if b.Address == "" {
		key += fmt.Sprintf("%d/%s", from, b.Note) // a lost one, of these nodes alone
	}
	to := g.point(key, "backend", false,
		cmp.Or(b.Address, "unknown address"), strings.TrimSpace(b.Pod+" "+b.Node))
	l := line{from: from, to: to, bad: b.Behind != ""}
	switch {
	case l.bad:
		l.label = fmt.Sprintf("API %s, agent %s, kernel %s", b.API, b.Agent, b.Kernel)
	case b.Kernel != trace.Missing && b.Kernel != trace.Unread:
		if b.Kernel != trace.Present && b.Kernel != "active" {
			l.label = b.Kernel
		}
	case b.Agent == trace.Missing && b.Kernel == trace.Missing:
		l.label = "not used"
	}
	g.lines = append(g.lines, l)
}

func dot(w io.Writer, t *trace.Trace) error {
	b := bufio.NewWriter(w)
	g := graphOf(t)
	_, _ = fmt.Fprintf(b, "digraph trace {\n  rankdir=LR;\n  label=%s;\n  labelloc=t;\n  node [fontname=\"sans-serif\" shape=box];\n  edge [fontname=\"sans-serif\"];\n",
		dotString(t.Verdict.Text))
	shapes := map[string]string{"client": "ellipse", "frontend": "box", "nodes": "component", "backend": "box"}
	for i, p := range g.points {
		extra := ""
		if p.bad {
			extra = ` color=red penwidth=2`
		}
		_, _ = fmt.Fprintf(b, "  p%d [shape=%s label=%s%s];\n", i, shapes[p.shape], dotString(strings.Join(p.label, "\n")), extra)
	}
	for _, l := range g.lines {
		var attributes []string
		if l.label != "" {
			attributes = append(attributes, "label="+dotString(l.label))
		}
		if l.bad {
			attributes = append(attributes, "color=red", "penwidth=2")
		}
		tail := ""
		if len(attributes) > 0 {
			tail = " [" + strings.Join(attributes, " ") + "]"
		}
		_, _ = fmt.Fprintf(b, "  p%d -> p%d%s;\n", l.from, l.to, tail)
	}
	_, _ = b.WriteString("}\n")
	return b.Flush()
}

// dotString is a quoted string of the dot language, folded. A backslash is
// doubled, so that no escape that dot would expand comes in.
func dotString(s string) string {
	var lines []string
	for _, l := range strings.Split(s, "\n") {
		for _, part := range strings.Split(fold(Clean(l), 60, 0), "\n") {
			lines = append(lines, strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(part))
		}
	}
	return `"` + strings.Join(lines, `\n`) + `"`
}

func mermaid(w io.Writer, t *trace.Trace) error {
	b := bufio.NewWriter(w)
	g := graphOf(t)
	_, _ = b.WriteString("flowchart LR\n")
	open := map[string][2]string{"client": {"([", "])"}, "frontend": {"[", "]"}, "nodes": {"[[", "]]"}, "backend": {"(", ")"}}
	for i, p := range g.points {
		o := open[p.shape]
		_, _ = fmt.Fprintf(b, "  p%d%s%s%s\n", i, o[0], mermaidString(p.label...), o[1])
	}
	var red []string
	for i, l := range g.lines {
		arrow := "-->"
		if l.label != "" {
			arrow = "-->|" + mermaidString(l.label) + "|"
		}
		_, _ = fmt.Fprintf(b, "  p%d %s p%d\n", l.from, arrow, l.to)
		if l.bad {
			red = append(red, fmt.Sprint(i))
		}
	}
	for i, p := range g.points {
		if p.bad {
			_, _ = fmt.Fprintf(b, "  style p%d stroke:#c00,stroke-width:2px\n", i)
		}
	}
	if len(red) > 0 {
		_, _ = fmt.Fprintf(b, "  linkStyle %s stroke:#c00,stroke-width:2px\n", strings.Join(red, ","))
	}
	return b.Flush()
}

// mermaidString is a quoted label: every character that means something there,
// or in the HTML that it becomes, is written as its number.
func mermaidString(lines ...string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i, l := range lines {
		if i > 0 {
			b.WriteString("<br/>")
		}
		for _, r := range Clean(l) {
			if strings.ContainsRune("\"`<>&#;{}|\\", r) {
				_, _ = fmt.Fprintf(&b, "#%d;", r)
				continue
			}
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
