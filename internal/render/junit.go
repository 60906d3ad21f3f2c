package render

import (
	"encoding/xml"
	"io"
	"slices"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/report"
)

type suite struct {
	XMLName  xml.Name   `xml:"testsuite"`
	Name     string     `xml:"name,attr"`
	Tests    int        `xml:"tests,attr"`
	Failures int        `xml:"failures,attr"`
	Errors   int        `xml:"errors,attr"`
	Skipped  int        `xml:"skipped,attr"`
	Cases    []testcase `xml:"testcase"`
}

type testcase struct {
	Class    string    `xml:"classname,attr"`
	Name     string    `xml:"name,attr"`
	Failures []problem `xml:"failure"`
	Error    *problem  `xml:"error"`
	Skipped  *problem  `xml:"skipped"`
}

type problem struct {
	Type    string `xml:"type,attr,omitempty"`
	Message string `xml:"message,attr"`
}

// junit writes a test case for each check: findings above info are failures,
// an unknown outcome is an error, not applicable is skipped.
func junit(w io.Writer, d *report.Document) error {
	s := suite{Name: "kubectl-kpr " + d.Command}
	for _, c := range d.Checks {
		if c.Name == incompleteRule {
			continue
		}
		s.Tests++
		tc := testcase{Class: "kubectl-kpr." + d.Command, Name: c.Name}
		for _, f := range d.Findings {
			if slices.Contains(c.Rules, f.Rule) && f.Severity != "info" {
				tc.Failures = append(tc.Failures, problem{f.Severity, Clean(f.Subject + ": " + f.Message)})
			}
		}
		switch {
		case len(tc.Failures) > 0:
			s.Failures++
		case c.Outcome == "unknown":
			s.Errors++
			tc.Error = &problem{Type: "unknown", Message: Clean(reasonOf(d, c.Name))}
		case c.Outcome == "not applicable":
			s.Skipped++
			tc.Skipped = &problem{Message: c.Outcome}
		}
		s.Cases = append(s.Cases, tc)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(s); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func reasonOf(d *report.Document, check string) string {
	for _, g := range d.Gaps {
		for _, c := range g.Checks {
			if c == check {
				return g.Reason
			}
		}
	}
	return "no verdict"
}
