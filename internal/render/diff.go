package render

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/report"
)

// The heads of the tables. The second column is the one that is folded.
var (
	propertyHead = []string{"PROPERTY", "BEFORE → AFTER", "NODES"}
	settingHead  = []string{"KEY", "BEFORE → AFTER", "IN", "NODES"}
	frontendHead = []string{"SERVICE", "CHANGE", "FRONTEND", "LAYER", "NODES"}
)

// DiffFormats lists the formats that a comparison can be drawn in.
func DiffFormats() []string { return []string{"text", "wide", "json", "yaml", "markdown"} }

// compared draws a comparison.
func compared(w io.Writer, d *report.Document, o Options) error {
	if o.Format == "markdown" {
		return diffMarkdown(w, d)
	}
	p := page{bufio.NewWriter(w), d, o}
	if o.Quiet {
		p.verdict()
		return p.Flush()
	}
	p.say(0, "before: "+p.before().header())
	p.say(0, "after:  "+p.header())
	p.verdict()
	x := d.Diff
	p.found("New findings", x.New)
	p.found("Findings gone", x.Gone)
	p.reworded(x.Changed)
	p.comings(x)
	p.section("Nodes and versions", propertyHead, p.propertyRows(x.Properties))
	p.section("Settings", settingHead, p.settingRows(x.Settings))
	p.section("Frontends", frontendHead, p.frontendRows(x.Frontends))
	p.missing(x.Uncompared)
	p.notes()
	return p.Flush()
}

// before is a page about the side that is compared with.
func (p page) before() page {
	x := p.d.Diff
	return page{p.Writer, &report.Document{Source: x.Before, Cilium: x.Before.Cilium, NodeCount: x.BeforeNodes, Time: p.d.Time}, p.o}
}

func (p page) found(title string, fs []report.Finding) {
	gs := groups(fs)
	if len(gs) == 0 {
		return
	}
	_, _ = fmt.Fprintf(p, "\n%s\n", p.bold(title))
	for i, g := range gs {
		if i == maxSubjects && !p.wide() {
			_, _ = fmt.Fprintf(p, "  +%d more (-o wide)\n", len(gs)-i)
			return
		}
		_, _ = p.WriteString("  " + p.sign(g.Severity) + " ")
		_, _ = p.WriteString(fold(Clean(g.Severity+" "+g.Rule+"  ")+p.where(g), p.o.Width, 4) + "\n")
		p.say(4, Clean(g.Message))
	}
}

func (p page) reworded(fs []report.ChangedFinding) {
	if len(fs) == 0 {
		return
	}
	_, _ = fmt.Fprintf(p, "\n%s\n", p.bold("Findings changed"))
	for i, f := range fs {
		if i == maxSubjects && !p.wide() {
			_, _ = fmt.Fprintf(p, "  +%d more (-o wide)\n", len(fs)-i)
			return
		}
		where := f.Subject
		if f.Node != "" && f.Subject != "node/"+f.Node {
			where += " on " + f.Node
		}
		_, _ = p.WriteString("  " + p.sign(f.Severity) + " ")
		_, _ = p.WriteString(fold(Clean(f.Severity+" "+f.Rule+"  "+where), p.o.Width, 4) + "\n")
		was := f.Was
		if f.WasAt != f.Severity {
			was = f.WasAt + ": " + was
		}
		p.say(4, "was: "+Clean(was))
		p.say(4, "is:  "+Clean(f.Message))
	}
}

func (p page) comings(x *report.Diff) {
	if len(x.Came)+len(x.Went) == 0 {
		return
	}
	_, _ = p.WriteString("\n")
	if len(x.Came) > 0 {
		p.say(0, p.bold("Nodes that came")+"  "+p.some(x.Came, maxNodes))
	}
	if len(x.Went) > 0 {
		p.say(0, p.bold("Nodes that went")+"  "+p.some(x.Went, maxNodes))
	}
}

// maxRows is how many rows a table of a comparison has before -o wide is asked for.
const maxRows = 20

// section is a table below a title, with no more rows than fit a screen.
func (p page) section(title string, header []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	_, _ = fmt.Fprintf(p, "\n%s\n", p.bold(title))
	more := 0
	if len(rows) > maxRows && !p.wide() {
		rows, more = rows[:maxRows], len(rows)-maxRows
	}
	p.table(header, rows)
	if more > 0 {
		_, _ = fmt.Fprintf(p, "+%d more (-o wide)\n", more)
	}
}

func (p page) propertyRows(cs []report.PropertyChange) [][]string {
	var rows [][]string
	for _, c := range cs {
		rows = append(rows, []string{Clean(c.Property), Clean(c.Before + " → " + c.After), p.on(c.Nodes)})
	}
	return rows
}

func (p page) settingRows(cs []report.SettingChange) [][]string {
	var rows [][]string
	for _, c := range cs {
		rows = append(rows, []string{Clean(c.Key), set(c.Before) + " → " + set(c.After), Clean(c.In), p.on(c.Nodes)})
	}
	return rows
}

func set(s *string) string {
	if s == nil {
		return "-"
	}
	return Clean(quotedEmpty(*s))
}

// frontendRows join what the layers of one frontend have in common: a backend
// that came in all three is one row. So is a NodePort that changed alike on the
// addresses of several nodes, each node knowing its own.
func (p page) frontendRows(cs []report.FrontendChange) [][]string {
	type key struct{ service, frontend, change, nodes string }
	at := map[key]int{}
	var rows []frontendRow
	for _, c := range cs {
		k := key{c.Service, c.Frontend, changeOf(c), strings.Join(c.Nodes, ",")}
		if i, ok := at[k]; ok {
			rows[i].layers += ", " + c.Layer
			continue
		}
		at[k] = len(rows)
		rows = append(rows, frontendRow{c.Service, k.change, c.Frontend, c.Layer, c.Nodes})
	}
	var out [][]string
	for _, r := range eachOwn(rows) {
		if r.layers == "desired, agent, kernel" {
			r.layers = "all three"
		}
		out = append(out, []string{Clean(cmp.Or(r.service, "-")), Clean(r.change), Clean(r.frontend), r.layers, p.on(r.nodes)})
	}
	return out
}

// frontendRow is what happened to one frontend on some nodes.
type frontendRow struct {
	service, change, frontend, layers string
	nodes                             []string
}

// eachOwn joins rows of NodePorts that differ in the node and its address alone.
// They are known by the row 0.0.0.0:PORT or [::]:PORT that stands for them all.
func eachOwn(rows []frontendRow) []frontendRow {
	type kind struct{ service, change, port, layers string }
	kindOf := func(r frontendRow) kind {
		return kind{r.service, r.change, r.frontend[strings.LastIndexByte(r.frontend, ':')+1:], r.layers}
	}
	nodes := map[kind][]string{}
	surrogates := map[[2]string]bool{} // by Service and port
	for _, r := range rows {
		k := kindOf(r)
		if len(r.nodes) == 1 {
			nodes[k] = add(nodes[k], r.nodes[0])
		}
		if surrogate(r.frontend) {
			surrogates[[2]string{r.service, k.port}] = true
		}
	}
	var out []frontendRow
	done := map[kind]bool{}
	for _, r := range rows {
		k := kindOf(r)
		switch {
		case len(r.nodes) != 1 || len(nodes[k]) < 2 || !surrogates[[2]string{r.service, k.port}] || surrogate(r.frontend):
			out = append(out, r)
		case !done[k]:
			done[k] = true
			r.frontend, r.nodes = "port "+k.port+" of each node's addresses", nodes[k]
			out = append(out, r)
		}
	}
	return out
}

func surrogate(frontend string) bool {
	return strings.HasPrefix(frontend, "0.0.0.0:") || strings.HasPrefix(frontend, "[::]:")
}

func changeOf(c report.FrontendChange) string {
	s := c.What
	if c.Backend != "" {
		s += " " + c.Backend
	}
	if c.Before != "" && c.After != "" || c.Backend == "" && (c.Before != "" || c.After != "") {
		s += fmt.Sprintf(": %s → %s", cmp.Or(c.Before, "-"), cmp.Or(c.After, "-"))
	}
	return s
}

// on names nodes, unless they are all there are.
func (p page) on(nodes []string) string {
	if len(nodes) > 2 && len(nodes) == p.d.NodeCount {
		return fmt.Sprintf("all %d", len(nodes))
	}
	return p.some(nodes, maxNodes)
}

// missing lists what could not be compared, once for each reason.
func (p page) missing(us []report.Uncompared) {
	if len(us) == 0 {
		return
	}
	_, _ = fmt.Fprintf(p, "\n%s %s\n", p.sign("unknown"), p.bold("Not compared"))
	for _, l := range lacking(us) {
		where := ""
		if len(l.Nodes) > 0 {
			where = p.on(l.Nodes) + ": "
		}
		p.say(2, where+Clean(fmt.Sprintf("%s (%s): %s", l.What, sideWord(l.Side), l.Reason)))
	}
}

func sideWord(side string) string {
	if side == "both" {
		return "missing on both sides"
	}
	return "missing " + side
}

// lacking joins what is missing for the same reason on the same nodes.
func lacking(us []report.Uncompared) []report.Uncompared {
	var out []report.Uncompared
	for _, u := range us {
		i := slices.IndexFunc(out, func(x report.Uncompared) bool {
			return x.Side == u.Side && x.Reason == u.Reason && slices.Equal(x.Nodes, u.Nodes)
		})
		if i < 0 {
			out = append(out, u)
			continue
		}
		out[i].What += ", " + u.What
	}
	return out
}
