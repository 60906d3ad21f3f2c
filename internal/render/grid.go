package render

import (
	"fmt"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/report"
)

// grid shows what most nodes say, once, and below each property who says
// otherwise. With -o wide every node gets a row as well.
func (p page) grid() {
	if len(p.d.Nodes) == 0 {
		return
	}
	var rows [][]string
	for _, prop := range report.Grid(p.d.Nodes) {
		count := ""
		if len(prop.Else) > 0 || prop.Count < len(p.d.Nodes) {
			count = fmt.Sprintf("%d of %d", prop.Count, len(p.d.Nodes))
		}
		rows = append(rows, []string{prop.Name, Clean(prop.Value), count})
		for _, g := range prop.Else {
			mark := "! "
			if g.Value == report.NotKnown {
				mark = ""
			}
			rows = append(rows, []string{"", mark + Clean(g.Value), p.some(g.Nodes, maxNodes)})
		}
	}
	_, _ = p.WriteString("\n")
	p.table([]string{"PROPERTY", "VALUE", "NODES"}, rows)
	if p.wide() {
		p.nodes()
	}
}

// nodes has a row for each node.
func (p page) nodes() {
	if p.d.Nodes[0].Residue != nil {
		p.residue()
		return
	}
	var rows [][]string
	for _, n := range p.d.Nodes {
		mode, devices := report.NotKnown, ""
		if n.KPR != nil {
			mode = n.KPR.Mode
			for _, d := range n.KPR.Devices {
				devices += d.Name + " " + strings.Join(d.Addresses, " ") + " "
			}
		}
		proxy := n.KubeProxy.Running
		if n.KubeProxy.As != "" {
			proxy += ": " + n.KubeProxy.As
		}
		agent := n.Agent.State
		if n.Agent.Pod != "" {
			agent += ", " + n.Agent.Pod
		}
		rows = append(rows, []string{Clean(n.Name), mode, Clean(strings.TrimSpace(devices)), Clean(agent), Clean(n.APIServer), Clean(proxy)})
	}
	_, _ = p.WriteString("\n")
	p.table([]string{"NODE", "KPR", "DEVICES", "AGENT", "API SERVER", "KUBE-PROXY"}, rows)
}

// table draws rows without borders, two blanks between columns.
func (p page) table(header []string, rows [][]string) {
	t := tablewriter.NewTable(trimmer{p.Writer},
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders: tw.BorderNone,
			Settings: tw.Settings{
				Separators: tw.Separators{BetweenColumns: tw.Off, BetweenRows: tw.Off, ShowHeader: tw.Off},
				Lines:      tw.LinesNone,
			},
		})),
		tablewriter.WithHeaderAutoFormat(tw.Off),
		tablewriter.WithHeaderAlignment(tw.AlignLeft),
		tablewriter.WithRowAlignment(tw.AlignLeft),
		tablewriter.WithRowAutoWrap(tw.WrapNone),
		tablewriter.WithHeaderAutoWrap(tw.WrapNone),
		tablewriter.WithPadding(tw.Padding{Left: "", Right: "  ", Overwrite: true}),
	)
	t.Header(header)
	for _, r := range p.fit(header, rows) {
		_ = t.Append(r)
	}
	_ = t.Render()
}

// fit folds the second column, the one with free text, so that the table stays
// within the terminal; the lines that are folded off become rows of their own.
func (p page) fit(header []string, rows [][]string) [][]string {
	if p.o.Width == 0 || p.wide() {
		return rows
	}
	widths := make([]int, len(header))
	for i, h := range header {
		widths[i] = len(h)
	}
	for _, r := range rows {
		for i, c := range r {
			widths[i] = max(widths[i], width(c))
		}
	}
	fixed := 2 * len(widths)
	for i, w := range widths {
		if i != 1 {
			fixed += w
		}
	}
	room := max(p.o.Width-fixed, 24)
	var out [][]string
	for _, r := range rows {
		lines := strings.Split(fold(r[1], room, 0), "\n")
		for i, l := range lines {
			row := make([]string, len(r))
			if i == 0 {
				copy(row, r)
			}
			row[1] = l
			out = append(out, row)
		}
	}
	return out
}
