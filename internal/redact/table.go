package redact

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// tables are answers whose readers go by the columns of the header. In others
// the blanks between words carry nothing.
var tables = map[source.Topic]bool{source.FrontendsTable: true, source.RedirectList: true, source.BGPRoutes: true}

// table replaces cell by cell and sets the columns anew.
func (r *Redactor) table(t source.Topic, text string) string {
	lines := strings.Split(text, "\n")
	head := 0
	for head < len(lines) && len(starts(lines[head])) < 3 {
		head++
	}
	if head == len(lines) {
		return r.read(t, text)
	}
	titles := lines[head]
	at := starts(titles)
	rows := [][]string{cut(titles, at)}
	widths := make([]int, len(at))
	for _, line := range lines[head+1:] {
		if strings.HasPrefix(strings.TrimSpace(line), "|") { // a line below a row, with columns of its own
			rows = append(rows, []string{r.below(line)})
			continue
		}
		cells := cut(line, at)
		for i := range cells {
			cells[i] = r.cell(strings.TrimSpace(rows[0][i]), cells[i])
		}
		rows = append(rows, cells)
	}
	for _, cells := range rows {
		for i := range cells {
			if len(cells) == 1 {
				continue
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(strings.TrimRight(cells[i], " ")))
		}
	}
	out := make([]string, 0, len(lines))
	for _, line := range lines[:head] {
		out = append(out, r.read(t, line))
	}
	for _, cells := range rows {
		var b strings.Builder
		for i, c := range cells {
			if c = strings.TrimRight(c, " "); len(cells) == 1 {
				b.WriteString(c)
				continue
			}
			b.WriteString(c + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c)+3))
		}
		out = append(out, strings.TrimRight(b.String(), " "))
	}
	return strings.Join(out, "\n")
}

// below replaces in what `lrp list` has below a policy: "| IP:PORT/PROTOCOL ->
// IP:PORT(NAMESPACE/POD)". It writes IPv6 without brackets, which would make
// the port a part of the address.
func (r *Redactor) below(line string) string {
	for _, m := range inParens.FindAllStringSubmatch(line, -1) {
		r.Learn(m[1])
		r.Learn(m[2])
	}
	return r.Text(bareSocket.ReplaceAllString(line, "${1}[$2]:$3"))
}

var (
	inParens   = regexp.MustCompile(`\(([a-z0-9-]+)/([a-z0-9.-]+)\)`)
	bareSocket = regexp.MustCompile(`(^|[\s,])((?:[0-9a-fA-F]{0,4}:){2,}[0-9a-fA-F]{0,4}):([0-9]{1,5})\b`)
)

// cell learns what its column says of it.
func (r *Redactor) cell(title, s string) string {
	switch title {
	case "ServiceName", "LRP namespace", "LRP name", "Node", "Matching Service":
		r.learnField(strings.TrimSpace(s))
	case "PortName":
		r.learnPort(strings.TrimSpace(s))
	}
	return r.Text(s)
}

// starts are where the titles of a header begin, in characters: words that at
// least two blanks part.
func starts(line string) []int {
	var at []int
	runes := []rune(line)
	for i := range runes {
		if runes[i] != ' ' && (i == 0 || runes[i-1] == ' ' && (i == 1 || runes[i-2] == ' ')) {
			at = append(at, i)
		}
	}
	if len(at) > 0 {
		at[0] = 0
	}
	return at
}

func cut(line string, at []int) []string {
	runes := []rune(line)
	cells := make([]string, len(at))
	for i, from := range at {
		to := len(runes)
		if i+1 < len(at) {
			to = min(at[i+1], to)
		}
		if from < to {
			cells[i] = string(runes[from:to])
		}
	}
	return cells
}
