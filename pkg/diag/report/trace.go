package report

import (
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/trace"
)

// Follow puts a trace into the document and makes its verdict the document's.
// A trace that ends in what is not known, or at somebody whose rules were not
// looked at, is unknown and never ok.
func (d *Document) Follow(t *trace.Trace, failOn diag.Severity) {
	d.Trace, d.Checks, d.Findings, d.Gaps = t, []Check{}, []Finding{}, []Gap{}
	v := Verdict{Outcome: OK, ExitCode: ExitOK, Text: t.Verdict.Text, FailOn: failOn.String()}
	for _, s := range t.Services {
		for _, f := range s.Frontends {
			for _, g := range f.Groups {
				switch {
				case g.State != trace.Behind && g.State != trace.Nobody:
				case g.Severity == diag.Error.String():
					v.Errors++
				default:
					v.Warnings++
				}
			}
		}
	}
	severity, _ := diag.ParseSeverity(t.Verdict.Severity)
	switch t.Verdict.State {
	case trace.Behind, trace.Nobody, trace.Stops:
		if severity >= failOn {
			v.Outcome, v.ExitCode = Found, ExitFound
		}
	case trace.Unknown, trace.Elsewhere:
		v.Outcome, v.ExitCode = Unknown, ExitUnknown
	}
	d.Verdict = v
}
