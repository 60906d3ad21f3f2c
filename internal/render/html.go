package render

import (
	"crypto/sha256"
	_ "embed" // for the page
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/report"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/request"
)

//go:embed page.html.tmpl
var pageText string

//go:embed page.css
var pageStyle string

// sheet is what the page's template sees. Every text in it is clean; the
// template escapes it for where it stands.
type sheet struct {
	Title, Header, Sign, Outcome string
	Policy                       template.HTMLAttr
	CSS                          template.CSS
	D                            *report.Document
	Grid                         []report.Property
	Groups                       []sheetGroup
	Gaps                         []sheetGap
}

// sheetGroup is a group of findings.
type sheetGroup struct {
	Severity, Sign, Rule, Where, Message, Next string
	Proof                                      []string
}

// sheetGap is what is not known, and what has no verdict because of it.
type sheetGap struct{ Where, Reason, Checks string }

// htmlPage writes one page that needs nothing else: no network, no script, and
// a policy by which a browser would load none.
func htmlPage(w io.Writer, d *report.Document) error {
	t, err := template.New("page").Funcs(template.FuncMap{
		"clean":     Clean,
		"sign":      func(kind string) string { return signs[kind][0] },
		"stateSign": func(pr *request.Probe, path request.Path) string { return stateSign(pr, &path) },
		"join":      func(s []string) string { return Clean(strings.Join(s, ", ")) }}).Parse(pageText)
	if err != nil {
		return fmt.Errorf("page: %w", err)
	}
	return t.Execute(w, sheetOf(d))
}

func sheetOf(d *report.Document) sheet {
	p := page{nil, d, Options{Format: "wide"}}
	sum := sha256.Sum256([]byte(pageStyle))
	s := sheet{
		Title: Clean(d.Verdict.Text), Header: p.header(), D: d,
		Outcome: string(d.Verdict.Outcome), Sign: verdictSign(d),
		CSS:    template.CSS(pageStyle),                                                                                                                                               //nolint:gosec // a constant of this package
		Policy: template.HTMLAttr(fmt.Sprintf(`content="default-src 'none'; style-src 'sha256-%s'; base-uri 'none'; form-action 'none'"`, base64.StdEncoding.EncodeToString(sum[:]))), //nolint:gosec // nothing of the cluster
		Grid:   report.Grid(d.Nodes),
	}
	for _, g := range groups(d.Findings) {
		x := sheetGroup{Severity: g.Severity, Sign: signs[g.Severity][0], Rule: Clean(g.Rule), Where: Clean(p.where(g)), Message: Clean(g.Message)}
		for _, e := range compact(g.evidence) {
			x.Proof = append(x.Proof, Clean(e))
		}
		if len(g.Next) > 0 {
			x.Next = Clean(quote(g.Next))
		}
		s.Groups = append(s.Groups, x)
	}
	for _, g := range d.Gaps {
		where := g.Node
		if where == "" {
			where = "cluster"
		}
		if g.Topic != "" {
			where += ": " + g.Topic
		}
		s.Gaps = append(s.Gaps, sheetGap{Clean(where), Clean(g.Reason), Clean(strings.Join(g.Checks, ", "))})
	}
	return s
}

func verdictSign(d *report.Document) string {
	switch {
	case d.Verdict.Outcome == report.Found:
		return signs["error"][0]
	case d.Verdict.Outcome == report.Unknown:
		return signs["unknown"][0]
	case d.Verdict.Warnings > 0:
		return signs["warning"][0]
	}
	return signs["ok"][0]
}
