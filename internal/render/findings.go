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
	type cause struct{ class, reason string }
	type row struct{ nodes, topics, checks []string }
	byReason := map[cause]*row{}
	var order []cause
	for _, g := range p.d.Gaps {
		k := cause{class: g.Class, reason: g.Reason}
		if byReason[k] == nil {
			byReason[k] = &row{}
			order = append(order, k)
		}
		r := byReason[k]
		r.nodes = add(r.nodes, g.Node)
		r.topics = add(r.topics, g.Topic)
		for _, c := range g.Checks {
			r.checks = add(r.checks, c)
		}
	}
	_, _ = fmt.Fprintf(p, "\n%s %s\n", p.sign("unknown"), p.bold("Not known"))
	for _, k := range order {
		r := byReason[k]
		where := "cluster"
		if len(r.nodes) > 0 {
			where = p.some(r.nodes, maxNodes)
		}
		what := ""
		if len(r.topics) > 0 {
			what = p.some(r.topics, maxSubjects) + ": "
		}
		p.say(2, fmt.Sprintf("%s: %s%s (no verdict of %s)", where, what, Clean(k.reason), p.some(r.checks, maxSubjects)))
	}
}

// add appends what is not empty and not there yet.
func add(to []string, s string) []string {
	if s == "" || slices.Contains(to, s) {
		return to
	}
	return append(to, s)
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
