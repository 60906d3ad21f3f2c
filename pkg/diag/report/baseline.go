package report

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/internal/words"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
)

// maxBaseline bounds what is read of a baseline: a cluster of a thousand nodes
// with a finding of everything on each makes less.
const maxBaseline = 256 << 20

// Baseline is an earlier report: what it holds is known.
type Baseline struct {
	Name   string // of the file
	report Document
}

// ReadBaseline reads a report that -o json has written. It fails where there
// is no such report, or one of another schema.
func ReadBaseline(name string, r io.Reader) (*Baseline, error) {
	raw, err := io.ReadAll(io.LimitReader(r, maxBaseline+1))
	if err != nil {
		return nil, fmt.Errorf("baseline %s: %w", name, err)
	}
	if len(raw) > maxBaseline {
		return nil, fmt.Errorf("baseline %s: larger than %d MiB", name, maxBaseline>>20)
	}
	b := Baseline{Name: name}
	if err := json.Unmarshal(raw, &b.report); err != nil {
		return nil, fmt.Errorf("baseline %s: not a report of -o json: %w", name, err)
	}
	if b.report.SchemaVersion != SchemaVersion {
		return nil, fmt.Errorf("baseline %s: schema %q, want %q: write it anew with -o json", name, b.report.SchemaVersion, SchemaVersion)
	}
	return &b, nil
}

// BaselineOf is a report as a baseline: of a recording that was judged for it.
// Its time is that of the recording, as far as that is known.
func BaselineOf(name string, d *Document) *Baseline {
	b := Baseline{Name: name, report: *d}
	if at := d.Source.Recorded; !at.IsZero() {
		b.report.Time = at
	}
	return &b
}

// known are the findings of the earlier report by key, those that were known
// to it included: a report made against a baseline serves as the next one.
// What a user told it to ignore is not among them.
func (b *Baseline) known() map[string]Finding {
	all := map[string]Finding{}
	for _, f := range b.report.Findings {
		all[f.Key] = f
	}
	for _, w := range b.report.Waived {
		if w.By == ByBaseline {
			all[w.Key] = w.Finding
		}
	}
	delete(all, "")
	return all
}

// compare sets aside what is known. A finding that is worse than it was counts
// as new, and what could not be seen is never known.
func (b *Baseline) compare(d *Document) {
	known := b.known()
	seen := map[string]bool{}
	for _, f := range d.Findings {
		seen[f.Key] = true
	}
	for _, w := range d.Waived {
		seen[w.Key] = true
	}
	n := d.setAside(ByBaseline, "baseline "+b.Name, func(f Finding) bool {
		old, ok := known[f.Key]
		return ok && f.Rule != diag.Incomplete.Name && rank(f) <= rank(old)
	})
	note := fmt.Sprintf("baseline %s of %s: %s known", b.Name, b.report.Time.Format(time.RFC3339), words.Count(n, "finding"))
	if gone := b.gone(d, known, seen); gone > 0 {
		note += fmt.Sprintf(", %d no longer found", gone)
	}
	if len(b.report.Gaps) > 0 {
		note += "; what could not be seen there counts as new here"
	}
	d.Notes = append(d.Notes, note)
	if was, is := b.report.Source.Server, d.Source.Server; was != is && was != "" && is != "" {
		d.Notes = append(d.Notes, fmt.Sprintf("baseline %s is of another cluster, %s", b.Name, was))
	}
}

// gone counts what the baseline had and this run has not, as far as this run
// has looked: at rules that ran, and with nothing left unseen.
func (b *Baseline) gone(d *Document, known map[string]Finding, seen map[string]bool) int {
	if len(d.Gaps) > 0 || d.Skipped > 0 {
		return 0
	}
	n := 0
	for key, f := range known {
		ran := slices.ContainsFunc(d.Checks, func(c Check) bool { return slices.Contains(c.Rules, f.Rule) })
		if ran && !seen[key] && f.Rule != diag.Incomplete.Name {
			n++
		}
	}
	return n
}
