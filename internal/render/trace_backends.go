package render

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mattn/go-runewidth"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/trace"
)

// backends has a row for each backend with its three layers, what is wrong
// first.
func (p page) backends(g trace.Group) {
	list := slices.Clone(g.Backends)
	slices.SortStableFunc(list, func(a, b trace.Backend) int { return cmp.Compare(blameless(a), blameless(b)) })
	more := 0
	if len(list) > maxSubjects && !p.wide() {
		more = len(list) - maxSubjects
		list = list[:maxSubjects]
	}
	header := []string{"BACKEND", "POD", "NODE", "API", "AGENT", "KERNEL"}
	if p.wide() {
		header = append(header, "ZONE", "NOTE")
	}
	rows := make([][]string, len(list))
	for i, b := range list {
		r := []string{cmp.Or(b.Address, "?"), cmp.Or(b.Pod, "-"), cmp.Or(b.Node, "-"),
			p.cell(b, trace.API), p.cell(b, trace.Agent), p.cell(b, trace.Kernel)}
		if p.wide() {
			r = append(r, cmp.Or(b.Zone, "-"), b.Note)
		}
		for k := range r {
			r[k] = Clean(r[k])
		}
		rows[i] = r
	}
	p.elide(header, rows)
	p.indented(4, func(q page) { q.table(header, rows) })
	if more > 0 {
		p.say(4, fmt.Sprintf("+%d more (-o wide)", more))
	}
}

// indented draws below the text that it belongs to.
func (p page) indented(columns int, draw func(page)) {
	var b bytes.Buffer
	q := page{bufio.NewWriter(&b), p.d, p.o}
	draw(q)
	_ = q.Flush()
	for l := range strings.Lines(b.String()) {
		_, _ = p.WriteString(strings.Repeat(" ", columns) + l)
	}
}

func blameless(b trace.Backend) int {
	if b.Behind == "" {
		return 1
	}
	return 0
}

// cell is what a layer says of a backend, behind a sign.
func (p page) cell(b trace.Backend, layer trace.Layer) string {
	word := map[trace.Layer]string{trace.API: b.API, trace.Agent: b.Agent, trace.Kernel: b.Kernel}[layer]
	follows := b.Behind == trace.Agent && layer == trace.Kernel && (b.Kernel == trace.Missing) == (b.Agent == trace.Missing)
	plain := func(kind string) string {
		if p.o.ASCII {
			return signs[kind][1]
		}
		return signs[kind][0]
	}
	switch {
	case word == trace.Unread:
		return plain("unknown")
	case b.Behind == layer || follows:
		return plain("error") + " " + word
	case word == trace.Missing:
		return "-"
	case word == trace.Present || word == "active":
		return plain("ok")
	}
	return plain("info") + " " + word
}

// elide shortens the names of pods in the middle where the terminal is too
// narrow: their beginnings tell the workload, their ends the pod.
func (p page) elide(header []string, rows [][]string) {
	if p.o.Width == 0 || p.wide() {
		return
	}
	widths := make([]int, len(header))
	for _, r := range append([][]string{header}, rows...) {
		for i, c := range r {
			widths[i] = max(widths[i], width(c))
		}
	}
	total := 4 + 2*len(widths)
	for _, w := range widths {
		total += w
	}
	over := total - p.o.Width
	for _, column := range []int{1, 2} {
		if over <= 0 {
			return
		}
		room := max(widths[column]-over, 10)
		over -= widths[column] - room
		for _, r := range rows {
			r[column] = p.short(r[column], room)
		}
	}
}

func (p page) short(s string, room int) string {
	if width(s) <= room {
		return s
	}
	dots := "…"
	if p.o.ASCII {
		dots = "~"
	}
	tail := min(6, room/2)
	return runewidth.Truncate(s, room-tail-1, "") + dots + runewidth.TruncateLeft(s, width(s)-tail, "")
}
