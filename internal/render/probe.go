package render

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/request"
)

// probe draws what became of real requests: of a matrix a cell for each kind of
// frontend and client, else a row for each path; below them what proves it.
func (p page) probe() {
	pr := p.d.Probe
	if pr == nil || len(pr.Paths) == 0 {
		return
	}
	if pr.Matrix {
		p.matrix(pr)
	}
	if !pr.Matrix || p.wide() {
		p.ways(pr)
	}
	bad := 0
	for i := range pr.Paths {
		if pr.Fails(&pr.Paths[i]) {
			bad++
		}
	}
	for i := range pr.Paths {
		path := &pr.Paths[i]
		if bad == 1 && pr.Fails(path) && p.d.Trace == nil && len(path.Events) == 0 {
			continue // the verdict has said it
		}
		_, denied := path.Denied()
		told := denied || path.Predicted.Contradicts // by a finding
		if path.State != request.OK && !told && (!pr.Matrix || p.wide() || pr.Fails(path)) && len(pr.Paths) > 1 {
			p.item(0, p.sign(stateSign(pr, path)), path.Title()+": "+path.Text)
		}
		for k, e := range path.Events {
			if k > 0 || !denied {
				p.say(2, Clean("seen on "+e.Node+": "+e.Text+by(e.Rule)))
			}
		}
	}
	for _, s := range pr.Proofs() {
		p.say(2, Clean("proof: "+s))
	}
	for _, s := range pr.Left {
		p.item(0, p.sign("warning"), s)
	}
	if pr.More > 0 {
		p.say(0, fmt.Sprintf("+%d more paths were left out (--max)", pr.More))
	}
}

func by(rule string) string {
	if rule == "" {
		return ""
	}
	return ", by " + rule
}

// ways has a row for each path, the same client's under one line.
func (p page) ways(pr *request.Probe) {
	last := ""
	var rows [][]string
	header := []string{"", "ADDRESS", "ASKED", "ANSWERED", "MEDIAN", "TRANSLATED BY", "BACKENDS"}
	watch := pr.Watch > 0
	if watch {
		header[5] = "LONGEST GAP"
	}
	flush := func() {
		if len(rows) == 0 {
			return
		}
		_, _ = p.WriteString("\n" + p.bold(fold(Clean(last), p.o.Width, 0)) + "\n")
		p.table(header, p.capped(rows, header))
		rows = nil
	}
	for i := range pr.Paths {
		path := &pr.Paths[i]
		if from := path.From(); from != last {
			flush()
			last = from
		}
		sign := stateSign(pr, path)
		row := []string{plainSign(p, sign), Clean(path.Kind() + " " + path.Address.String() + "/" + path.Protocol), string(path.Ask),
			fmt.Sprintf("%d of %d", path.Good, path.Good+path.Bad), median(path.Latency), orDash(path.Mechanism), p.spread(path)}
		if watch {
			row[5] = gapWords(path.Gap)
		}
		rows = append(rows, row)
	}
	flush()
}

// capped keeps a table short; what failed is listed below it in any case.
func (p page) capped(rows [][]string, header []string) [][]string {
	const most = 40
	if len(rows) <= most || p.wide() {
		return rows
	}
	more := make([]string, len(header))
	more[1] = fmt.Sprintf("+%d more (-o wide)", len(rows)-most)
	return append(rows[:most:most], more)
}

// plainSign has no colour: it stands in a table, whose widths count letters.
func plainSign(p page, kind string) string {
	if p.o.ASCII {
		return signs[kind][1]
	}
	return signs[kind][0]
}

func stateSign(pr *request.Probe, path *request.Path) string {
	switch {
	case path.State == request.Unknown:
		return "unknown"
	case path.Predicted.Contradicts && path.State == request.OK:
		return "warning"
	case path.State == request.OK:
		return "ok"
	case pr.Fails(path):
		return "error"
	}
	return "info"
}

func median(s *request.Span) string {
	if s == nil {
		return "-"
	}
	return short(s.Median)
}

// short is a duration with two digits that matter.
func short(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d >= 10*time.Millisecond:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(100 * time.Microsecond).String()
}

func gapWords(g *request.Gap) string {
	if g == nil {
		return "none"
	}
	s := short(g.Length)
	if g.Open {
		s += ", still"
	}
	return s
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return Clean(s)
}

func (p page) spread(path *request.Path) string {
	var words []string
	for _, s := range path.Spread {
		name := s.Address.String()
		if s.Pod != "" {
			name = s.Pod[strings.LastIndexByte(s.Pod, '/')+1:]
		}
		n := fmt.Sprintf(" ×%d", s.Good+s.Bad)
		if p.o.ASCII {
			n = fmt.Sprintf(" x%d", s.Good+s.Bad)
		}
		if s.Good == 0 {
			n += " failed"
		}
		words = append(words, Clean(name)+n)
	}
	if len(words) == 0 {
		return "-"
	}
	if limit := 3; len(words) > limit && !p.wide() {
		return strings.Join(words[:limit], ", ") + fmt.Sprintf(" +%d", len(words)-limit)
	}
	return strings.Join(words, ", ")
}

// matrix has a row for each kind of frontend and a column for each kind of
// client; nodes that agree are counted, those that do not are named.
func (p page) matrix(pr *request.Probe) {
	m := pr.Grid()
	header := append([]string{"FRONTEND"}, m.Clients...)
	for i := range header {
		header[i] = strings.ToUpper(header[i])
	}
	rows := make([][]string, len(m.Rows))
	var kinds [][]string
	for i, r := range m.Rows {
		rows[i] = []string{Clean(r.Kind)}
		signsOf := []string{""}
		for _, c := range r.Cells {
			kind := string(c.Sign)
			signsOf = append(signsOf, kind)
			rows[i] = append(rows[i], Clean(strings.TrimSpace(plainSign(p, kind)+" "+c.Words(maxNodes))))
		}
		kinds = append(kinds, signsOf)
	}
	p.coloured(header, rows, kinds)
}

// coloured draws a table by hand, for its cells have colours, which no width
// counts.
func (p page) coloured(header []string, rows, kinds [][]string) {
	widths := make([]int, len(header))
	for _, r := range append([][]string{header}, rows...) {
		for i, c := range r {
			widths[i] = max(widths[i], width(c))
		}
	}
	line := func(cells, kinds []string) {
		for i, c := range cells {
			pad := strings.Repeat(" ", widths[i]-width(c)+2)
			if i == len(cells)-1 {
				pad = ""
			}
			if kinds != nil && kinds[i] != "" {
				c = p.colour(colours[kinds[i]], c)
			}
			_, _ = p.WriteString(c + pad)
		}
		_, _ = p.WriteString("\n")
	}
	_, _ = p.WriteString("\n")
	line(header, nil)
	for i, r := range rows {
		line(r, kinds[i])
	}
}

// probeMarkdown is the probe as tables.
func probeMarkdown(b interface{ WriteString(string) (int, error) }, pr *request.Probe) {
	if pr == nil || len(pr.Paths) == 0 {
		return
	}
	_, _ = b.WriteString("\n## Requests\n\n| | From | Address | Answered | Median | Translated by | Backends |\n|---|---|---|---|---|---|---|\n")
	for i := range pr.Paths {
		path := &pr.Paths[i]
		var backends []string
		for _, s := range path.Spread {
			backends = append(backends, fmt.Sprintf("%s ×%d", s.Address, s.Good+s.Bad))
		}
		cells := []string{signs[stateSign(pr, path)][0], path.From(), path.Kind() + " " + path.Address.String() + "/" + path.Protocol,
			fmt.Sprintf("%d of %d", path.Good, path.Good+path.Bad), median(path.Latency), orDash(path.Mechanism), strings.Join(backends, ", ")}
		for k := range cells {
			cells[k] = md(cells[k])
		}
		_, _ = b.WriteString("| " + strings.Join(slices.Clone(cells), " | ") + " |\n")
	}
}
