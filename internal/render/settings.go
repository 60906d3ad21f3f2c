package render

import (
	"bufio"
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/internal/words"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/report"
)

// settings shows the keys that differ or stand out; -o wide shows all. Nodes
// that are alike share a row.
func (p page) settings() {
	s := p.d.Settings
	if s == nil {
		return
	}
	hint := ""
	if s.Chart == "not read" {
		hint = " (--helm-values, or --values FILE with --live or --snapshot)"
	}
	_, _ = p.WriteString("\n")
	p.say(0, "Chart's values: "+Clean(s.Chart)+hint)
	var rows [][]string
	for _, r := range s.Rows {
		if r.Different || p.wide() {
			rows = append(rows, p.setting(r)...)
		}
	}
	if len(rows) == 0 {
		_, _ = fmt.Fprintf(p, "Nothing differs among %s (-o wide shows them)\n", words.Count(len(s.Rows), "setting"))
		return
	}
	_, _ = p.WriteString("\n")
	p.table([]string{"KEY", "AGENTS RUN", "CILIUM-CONFIG", "HELM", "NODES", "MARK"}, rows)
	if p.wide() && slices.ContainsFunc(s.Rows, unshown) {
		p.say(0, "? stands for what agents of this version do not show")
	}
	if hidden := len(s.Rows) - shownSettings(s, p.wide()); hidden > 0 {
		_, _ = fmt.Fprintf(p, "+%d alike (-o wide)\n", hidden)
	}
}

func unshown(r report.Setting) bool {
	return slices.ContainsFunc(r.Groups, func(g report.SettingGroup) bool { return !g.Known })
}

func shownSettings(s *report.Settings, all bool) int {
	n := 0
	for _, r := range s.Rows {
		if r.Different || all {
			n++
		}
	}
	return n
}

// setting is a row for each group of nodes, then one for each mark of the key.
func (p page) setting(r report.Setting) [][]string {
	var rows [][]string
	key, chart := nameOf(r), chartOf(r)
	for _, g := range r.Groups {
		rows = append(rows, []string{key, runs(g), Clean(toldOf(r, g)), chart, p.share(g.Nodes), mark(g.Mark)})
		key, chart = "", ""
	}
	for _, m := range r.Marks {
		told := ""
		if key != "" {
			told = Clean(toldOf(r, report.SettingGroup{}))
		}
		rows = append(rows, []string{key, "", told, chart, p.share(m.Nodes), mark(m.Mark) + ": " + Clean(m.Why)})
		key, chart = "", ""
	}
	if len(rows) == 0 {
		rows = append(rows, []string{key, "", Clean(toldOf(r, report.SettingGroup{})), chart, "", ""})
	}
	return rows
}

// share names nodes where they are not all.
func (p page) share(nodes []string) string {
	if len(nodes) == 0 || len(nodes) == p.d.NodeCount {
		return ""
	}
	return p.some(nodes, maxNodes)
}

func nameOf(r report.Setting) string {
	if r.Key == "" {
		return Clean("API server")
	}
	return Clean(r.Key)
}

func chartOf(r report.Setting) string {
	if r.Chart == nil {
		return "-"
	}
	s := quotedEmpty(r.Chart.Value)
	if r.Chart.Default {
		s += " (default)"
	}
	return Clean(s)
}

func toldOf(r report.Setting, g report.SettingGroup) string {
	switch {
	case g.By != "":
		return quotedEmpty(g.Told) + " (CiliumNodeConfig " + g.By + ")"
	case r.ConfigMap != nil:
		return quotedEmpty(*r.ConfigMap)
	}
	return "-"
}

func runs(g report.SettingGroup) string {
	if !g.Known {
		return report.NotKnown
	}
	return Clean(quotedEmpty(g.Runs))
}

func mark(s string) string {
	if s == "" {
		return ""
	}
	return "! " + Clean(s)
}

func quotedEmpty(s string) string {
	if s == "" {
		return `""`
	}
	return s
}

// settingsTable is the same for a report to paste, with all that differs.
func settingsTable(b *bufio.Writer, p page) {
	s := p.d.Settings
	if s == nil {
		return
	}
	_, _ = fmt.Fprintf(b, "\nChart's values: %s\n", md(s.Chart))
	if shownSettings(s, false) == 0 {
		_, _ = fmt.Fprintf(b, "\nNothing differs among %s.\n", words.Count(len(s.Rows), "setting"))
		return
	}
	_, _ = b.WriteString("\n| key | agents run | cilium-config | helm | nodes | mark |\n|---|---|---|---|---|---|\n")
	for _, r := range s.Rows {
		if !r.Different {
			continue
		}
		for _, row := range p.setting(r) {
			for i := range row {
				row[i] = md(row[i])
			}
			_, _ = fmt.Fprintf(b, "| %s |\n", strings.Join(row, " | "))
		}
	}
}
