package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/request"
)

// Try puts the outcome of real requests into the document and makes it the
// document's verdict. What contradicts the trace is a finding of its own; a
// path that could not be tried is unknown and never ok.
func (d *Document) Try(p *request.Probe, failOn diag.Severity) {
	d.Probe, d.Checks, d.Findings, d.Gaps = p, []Check{}, []Finding{}, []Gap{}
	v := Verdict{Outcome: OK, ExitCode: ExitOK, FailOn: failOn.String()}
	unknown := 0
	for i := range p.Paths {
		path := &p.Paths[i]
		if path.Predicted.Contradicts {
			d.Findings = append(d.Findings, contradiction(path))
		}
		if e, ok := path.Denied(); ok {
			d.Findings = append(d.Findings, denied(path, e))
		}
		switch {
		case path.State == request.Unknown:
			unknown++
		case p.Fails(path):
			v.Errors++
		}
	}
	slices.SortStableFunc(d.Findings, worstFirst)
	d.Findings = slices.CompactFunc(d.Findings, func(a, b Finding) bool { return a.Key == b.Key })
	for _, f := range d.Findings {
		if f.Severity == diag.Warning.String() {
			v.Warnings++ // errors are paths that failed, counted above
		}
	}
	switch {
	case v.Errors > 0 || v.Warnings > 0 && failOn <= diag.Warning:
		v.Outcome, v.ExitCode = Found, ExitFound
	case unknown > 0 || len(p.Paths) == 0:
		v.Outcome, v.ExitCode = Unknown, ExitUnknown
	}
	v.Text = p.Sentence()
	d.Verdict = v
}

// Beside puts requests beside the trace of a document, whose verdict stays where
// it is the worse one: a trace that finds a layer behind has found the cause.
func (d *Document) Beside(p *request.Probe, failOn diag.Severity) {
	before := d.Verdict
	d.Try(p, failOn)
	tried := d.Verdict
	if before.Outcome == Found || before.Outcome == Unknown && tried.Outcome != Found {
		d.Verdict = before
		d.Verdict.Text += "; requests: " + tried.Text
		return
	}
	d.Verdict.Warnings += before.Warnings
	if tried.Outcome == OK {
		d.Verdict.Text = before.Text + "; requests: " + tried.Text
	}
}

// contradiction is a path that does not do what a trace says of it.
func contradiction(p *request.Path) Finding {
	severity := diag.Error
	if p.State == request.OK {
		severity = diag.Warning
	}
	rule := request.Contradicts.Name
	subject := "service/" + p.Service
	if p.Service == "" {
		subject = p.Address.String()
	}
	f := Finding{
		Rule: rule, Severity: severity.String(), Subject: subject, Node: p.Client.Node, Address: p.Address.String() + "/" + p.Protocol,
		Message:  fmt.Sprintf("%s %s/%s%s: %s (%s)", p.Frontend, p.Address, p.Protocol, from(p), p.Predicted.How, p.Text),
		Evidence: []fact.Ref{},
		Next:     []string{"kubectl", "kpr", "trace", p.Address.String() + "/" + strings.ToLower(p.Protocol), "--from", "node/" + p.Client.Node},
	}
	if p.Client.Kind == "pod" {
		f.Next[len(f.Next)-1] = "pod/" + p.Client.Namespace + "/" + p.Client.Name
	}
	f.Key = strings.Join([]string{f.Rule, f.Subject, f.Node, f.Address}, "|")
	return f
}

// from names a pod; a node is named by the finding.
func from(p *request.Path) string {
	if p.Client.Kind == "node" {
		return ""
	}
	return " from " + p.Client.String()
}

// denied is a path that a policy refuses.
func denied(p *request.Path, e request.Event) Finding {
	by := "no policy that selects either end could be read"
	if e.Rule != "" {
		by = "by what " + e.Rule + " allows"
	}
	f := Finding{
		Rule: "policy-denied", Severity: diag.Error.String(), Subject: "service/" + p.Service, Node: e.Node, Address: e.To.String(),
		Message:  fmt.Sprintf("%s to %s is denied on %s, %s (%s)", p.Client, e.To, e.Node, by, e.Text),
		Evidence: []fact.Ref{},
	}
	if namespace, name, ok := strings.Cut(p.Service, "/"); ok {
		f.Next = []string{"kubectl", "kpr", "trace", "svc/" + name, "-n", namespace}
	}
	if kind, rest, ok := strings.Cut(e.Rule, "/"); ok && !strings.Contains(e.Rule, ",") {
		f.Next = []string{"kubectl", "get", kind, "-o", "yaml"}
		if namespace, name, ok := strings.Cut(rest, "/"); ok {
			f.Next = append(f.Next, "-n", namespace, name)
		} else {
			f.Next = append(f.Next, rest)
		}
	}
	f.Key = strings.Join([]string{f.Rule, f.Subject, f.Node, f.Address}, "|")
	return f
}
