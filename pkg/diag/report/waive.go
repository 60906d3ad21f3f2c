package report

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/internal/words"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
)

// Waiver names findings that a user knows of and does not want counted: those
// of one rule, on the subjects that fit a pattern.
type Waiver struct {
	Rule    string
	Subject string // '*' and '?' stand for any characters, a '/' too; "" for all
}

// ParseWaiver reads "RULE" or "RULE=SUBJECT": "map-pressure=node/w-*". It fails
// where a part is empty, and for the rule incomplete: what could not be seen is
// unknown, whoever knows of it.
func ParseWaiver(s string) (Waiver, error) {
	rule, subject, cut := strings.Cut(s, "=")
	switch {
	case rule == "" || cut && subject == "":
		return Waiver{}, fmt.Errorf("%q: want RULE or RULE=SUBJECT", s)
	case rule == diag.Incomplete.Name:
		return Waiver{}, errors.New("what could not be seen cannot be waived, it stays unknown")
	}
	return Waiver{Rule: rule, Subject: subject}, nil
}

// String is what ParseWaiver reads.
func (w Waiver) String() string {
	if w.Subject == "" {
		return w.Rule
	}
	return w.Rule + "=" + w.Subject
}

// matcher is fits, prepared.
func (w Waiver) matcher() func(Finding) bool {
	if w.Subject == "" {
		return func(f Finding) bool { return f.Rule == w.Rule }
	}
	pattern := regexp.QuoteMeta(w.Subject)
	pattern = strings.ReplaceAll(strings.ReplaceAll(pattern, `\*`, `.*`), `\?`, `.`)
	re, err := regexp.Compile(`(?s)^` + pattern + `$`)
	return func(f Finding) bool {
		return f.Rule == w.Rule && (err == nil && re.MatchString(f.Subject) || f.Subject == w.Subject)
	}
}

// The reasons for which a finding does not count.
const (
	ByIgnore   = "ignored"
	ByBaseline = "known"
)

// Waived is a finding that does not count, and why.
type Waived struct {
	Finding
	By     string `json:"waivedBy"` // ignored, known
	Reason string `json:"reason"`   // "--ignore RULE=SUBJECT", "baseline FILE"
}

// waive takes what the options waive out of the findings and tells of it in
// notes. A waiver that fits nothing is told as well: it may have become needless.
func waive(d *Document, o Options) {
	for _, w := range o.Waivers {
		n := d.setAside(ByIgnore, "--ignore "+w.String(), w.matcher())
		if n == 0 {
			d.Notes = append(d.Notes, fmt.Sprintf("--ignore %s: there is nothing that it fits", w))
			continue
		}
		d.Notes = append(d.Notes, fmt.Sprintf("--ignore %s: %s left out of the count", w, words.Count(n, "finding")))
	}
	if o.Baseline != nil {
		o.Baseline.compare(d)
	}
	slices.SortStableFunc(d.Waived, func(a, b Waived) int { return cmp.Or(worstFirst(a.Finding, b.Finding), cmp.Compare(a.By, b.By)) })
}

// setAside moves findings to the waived ones and counts them.
func (d *Document) setAside(by, reason string, fits func(Finding) bool) int {
	left := make([]Finding, 0, len(d.Findings))
	for _, f := range d.Findings {
		if fits(f) {
			d.Waived = append(d.Waived, Waived{Finding: f, By: by, Reason: reason})
			continue
		}
		left = append(left, f)
	}
	n := len(d.Findings) - len(left)
	d.Findings = left
	return n
}

// waivedWords is the part of the verdict about what was left out: "2 waived, 3
// known".
func waivedWords(d *Document) string {
	var parts []string
	for _, kind := range []struct{ by, word string }{{ByIgnore, "waived"}, {ByBaseline, "known from the baseline"}} {
		n := 0
		for _, w := range d.Waived {
			if w.By == kind.by {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, kind.word))
		}
	}
	return strings.Join(parts, ", ")
}
