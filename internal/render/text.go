package render

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-kpr/kubectl-kpr/internal/words"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/report"
)

// Caps of the text form; -o wide and the other formats have none.
const (
	maxSubjects = 10
	maxNodes    = 5
)

// page draws one Document as text.
type page struct {
	*bufio.Writer
	d *report.Document
	o Options
}

func text(w io.Writer, d *report.Document, o Options) error {
	p := page{bufio.NewWriter(w), d, o}
	if o.Quiet {
		p.verdict()
		return p.Flush()
	}
	p.say(0, p.header())
	p.verdict()
	p.stage()
	p.probe()
	p.grid()
	p.settings()
	p.findings()
	p.gaps()
	p.notes()
	p.more()
	return p.Flush()
}

// say writes a paragraph, folded at the terminal's width.
func (p page) say(indent int, s string) {
	_, _ = p.WriteString(strings.Repeat(" ", indent) + fold(s, p.o.Width, indent) + "\n")
}

// header is the first line: what was looked at, and when.
func (p page) header() string {
	s := p.d.Source
	if s.Kind == "files" {
		return p.filesHeader()
	}
	where := s.Name
	if s.Kind != "cluster" {
		where = s.Kind + " " + s.Name
	}
	if s.Redacted {
		where += " (redacted)"
	}
	parts := []string{where}
	if s.Kind != "cluster" && s.Context != "" {
		parts = append(parts, "context "+s.Context)
	}
	if s.Server != "" {
		parts = append(parts, s.Server)
	}
	parts = append(parts, "Kubernetes "+orUnknown(s.Version), "Cilium "+orUnknown(strings.Join(p.d.Cilium, ", ")))
	nodes := words.Count(p.d.NodeCount, "node")
	if p.d.Skipped > 0 {
		nodes += fmt.Sprintf(" (%d left out)", p.d.Skipped)
	}
	parts = append(parts, nodes)
	switch {
	case s.Kind == "cluster":
		parts = append(parts, p.d.Time.UTC().Format(time.RFC3339))
	case s.Recorded.IsZero():
		parts = append(parts, "recorded at an unknown time")
	default:
		parts = append(parts, fmt.Sprintf("recorded %s, %s ago", s.Recorded.UTC().Format(time.RFC3339),
			duration.HumanDuration(p.d.Time.Sub(s.Recorded))))
	}
	return Clean(strings.Join(parts, p.sep()))
}

// filesHeader is the first line of a lint, which has no cluster to speak of.
func (p page) filesHeader() string {
	parts := []string{"files " + p.d.Source.Name}
	if len(p.d.Cilium) > 0 {
		parts = append(parts, "judged as Cilium "+strings.Join(p.d.Cilium, ", "))
	}
	return Clean(strings.Join(parts, p.sep()))
}

func (p page) sep() string {
	if p.o.ASCII {
		return " | "
	}
	return " · "
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

// verdict is the second line: the answer.
func (p page) verdict() {
	sign := map[report.Outcome]string{report.OK: "ok", report.Found: "error", report.Unknown: "unknown"}[p.d.Verdict.Outcome]
	if p.d.Verdict.Outcome == report.OK && p.d.Verdict.Warnings > 0 {
		sign = "warning"
	}
	_, _ = p.WriteString(p.sign(sign) + " " + p.bold(fold(Clean(p.d.Verdict.Text), p.o.Width, 2)) + "\n")
}

var signs = map[string][2]string{
	"ok": {"✓", "+"}, "warning": {"!", "!"}, "error": {"✗", "x"}, "unknown": {"?", "?"}, "info": {"·", "-"},
}

var colours = map[string]string{"ok": "32", "warning": "33", "error": "31", "unknown": "35", "info": "36"}

// Plain is a text in which signs, and what stands between columns, are ASCII.
func Plain(text string) string {
	return strings.NewReplacer("✓", "+", "✗", "x", "×", "x", "·", "-", "…", "...").Replace(text)
}

// sign is a mark that says by itself what its colour repeats.
func (p page) sign(kind string) string {
	s := signs[kind][0]
	if p.o.ASCII {
		s = signs[kind][1]
	}
	return p.colour(colours[kind], s)
}

func (p page) colour(code, s string) string {
	if !p.o.Color {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p page) bold(s string) string { return p.colour("1", s) }

func (p page) wide() bool { return p.o.Format == "wide" }

// notes are remarks that change no verdict.
func (p page) notes() {
	if len(p.d.Notes) == 0 {
		return
	}
	_, _ = p.WriteString("\nNotes\n")
	for _, n := range p.d.Notes {
		p.say(2, Clean(n))
	}
}

// more says where to read on.
func (p page) more() {
	i := slices.IndexFunc(p.d.Findings, func(f report.Finding) bool { return f.Severity != "info" })
	if i >= 0 {
		_, _ = p.WriteString("\nMore: kubectl kpr explain " + Clean(p.d.Findings[i].Rule) + "\n")
	}
}

// some joins up to limit items and says how many are left out.
func (p page) some(items []string, limit int) string {
	if p.wide() || len(items) <= limit {
		return Clean(strings.Join(items, ", "))
	}
	return fmt.Sprintf("%s +%d more (-o wide)", Clean(strings.Join(items[:limit], ", ")), len(items)-limit)
}
