package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/report"
)

// incompleteRule is drawn from the gaps, which say the same in more detail.
const incompleteRule = "incomplete"

// group is findings that say the same of different nodes or subjects.
type group struct {
	report.Finding
	nodes    []string
	subjects []string
	evidence []string
}

// groups joins findings with one rule, severity and message, in order.
func groups(fs []report.Finding) []group {
	type key struct{ rule, severity, message string }
	at := map[key]int{}
	var out []group
	for _, f := range fs {
		if f.Rule == incompleteRule {
			continue
		}
		k := key{f.Rule, f.Severity, f.Message}
		i, ok := at[k]
		if !ok {
			i = len(out)
			at[k] = i
			out = append(out, group{Finding: f})
		}
		g := &out[i]
		if f.Node != "" && !slices.Contains(g.nodes, f.Node) {
			g.nodes = append(g.nodes, f.Node)
		}
		if f.Subject != "node/"+f.Node && !slices.Contains(g.subjects, f.Subject) {
			g.subjects = append(g.subjects, f.Subject)
		}
		for _, e := range f.Evidence {
			g.evidence = append(g.evidence, e.Origin)
		}
	}
	return out
}

func (p page) findings() {
	shown := map[string]int{}
	hidden := map[string]int{}
	for _, g := range groups(p.d.Findings) {
		shown[g.Rule]++
		if shown[g.Rule] > maxSubjects && !p.wide() {
			hidden[g.Rule]++
			continue
		}
		p.finding(g)
	}
	for _, f := range p.d.Findings {
		if n := hidden[f.Rule]; n > 0 {
			delete(hidden, f.Rule)
			_, _ = fmt.Fprintf(p, "\n%s +%d more (-o wide)\n", Clean(f.Rule), n)
		}
	}
}

func (p page) finding(g group) {
	head := Clean(g.Rule)
	if where := p.where(g); where != "" {
		head += "  " + where
	}
	_, _ = fmt.Fprintf(p, "\n%s %s %s\n", p.sign(g.Severity), g.Severity, p.bold(head))
	p.say(2, Clean(g.Message))
	if len(g.evidence) > 0 {
		p.say(2, "proof: "+p.some(compact(g.evidence), 2))
	}
	if len(g.Next) > 0 {
		_, _ = fmt.Fprintf(p, "  next:  %s\n", Clean(quote(g.Next))) // never folded: it is there to be copied
	}
}

// where names the subjects and the nodes of a group.
func (p page) where(g group) string {
	var parts []string
	if len(g.subjects) > 0 {
		parts = append(parts, p.some(g.subjects, maxSubjects))
	}
	switch {
	case len(g.nodes) > 2 && len(g.nodes) == p.d.NodeCount:
		parts = append(parts, fmt.Sprintf("all %d nodes", len(g.nodes)))
	case len(g.nodes) > 0:
		parts = append(parts, p.some(g.nodes, maxNodes))
	}
	return strings.Join(parts, " on ")
}

// gaps lists what is not known, once for each reason.
func (p page) gaps() {
	if len(p.d.Gaps) == 0 {
		return
	}
	type key struct{ class, reason string }
	at := map[key]int{}
	type row struct {
		key
		nodes, checks []string
	}
	var rows []row
	for _, g := range p.d.Gaps {
		k := key{g.Class, withoutNode(g.Reason, g.Node)}
		i, ok := at[k]
		if !ok {
			i = len(rows)
			at[k] = i
			rows = append(rows, row{key: k})
		}
		if g.Node != "" {
			rows[i].nodes = append(rows[i].nodes, g.Node)
		}
		for _, c := range g.Checks {
			if !slices.Contains(rows[i].checks, c) {
				rows[i].checks = append(rows[i].checks, c)
			}
		}
	}
	_, _ = fmt.Fprintf(p, "\n%s %s\n", p.sign("unknown"), p.bold("Not known"))
	for _, r := range rows {
		where := "cluster"
		if len(r.nodes) > 0 {
			where = p.some(r.nodes, maxNodes)
		}
		p.say(2, fmt.Sprintf("%s: %s (no verdict of %s)", where, Clean(r.reason), Clean(strings.Join(r.checks, ", "))))
	}
}

// withoutNode takes a node's name out of a reason, so that the same reason on
// several nodes is told once.
func withoutNode(reason, node string) string {
	if node == "" {
		return reason
	}
	for _, link := range []string{" of ", " on "} {
		reason = strings.ReplaceAll(reason, link+node+":", ":")
	}
	return reason
}

// compact drops repeated strings, keeping the order.
func compact(in []string) []string {
	var out []string
	for _, s := range in {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
