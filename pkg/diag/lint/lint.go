package lint

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/internal/cilium"
	"github.com/kubectl-kpr/kubectl-kpr/internal/helm"
	"github.com/kubectl-kpr/kubectl-kpr/internal/rancher"
	"github.com/kubectl-kpr/kubectl-kpr/internal/yamlfile"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// Newest is the version that values are judged for where nobody says one.
const Newest = "1.20"

// Input is what there is to judge; either part may be nil.
type Input struct {
	Values  *helm.Values
	Rancher *rancher.Config
	// Version of Cilium that the values are for, as chart or image spell it; ""
	// takes what the values say, and Newest where they say nothing.
	Version string
}

// Run judges the files and gives the outcome in the form of any other run, so
// that every output format has it. Names are the files and folders as the user
// gave them.
func Run(in Input, names []string) *diag.Run {
	l := newLinter(in)
	if in.Values != nil {
		l.values()
	}
	if in.Rancher != nil {
		l.rancher()
	}
	l.together()
	slices.SortStableFunc(l.found, func(a, b diag.Finding) int { return cmp.Compare(b.Severity, a.Severity) })
	run := &diag.Run{
		About: source.About{Kind: "files", Name: strings.Join(names, ", ")},
		Store: fact.NewStore(nil),
	}
	if in.Values != nil {
		run.About.Cilium = []string{l.version}
	}
	run.Results = []diag.Result{{Check: check(), Findings: l.found, Notes: l.notes}}
	if len(l.found) > 0 {
		run.Results[0].Outcome = diag.Found
	}
	return run
}

// check stands for the lint in reports, which speak of checks.
func check() *diag.Check {
	return &diag.Check{Name: "lint", Doc: "files before they are merged", Rules: append(Rules(), K3sDisableList)}
}

// linter collects what is wrong.
type linter struct {
	in      Input
	version string
	caps    cilium.Capabilities
	places  map[string]place // of each key in the values, by path
	found   []diag.Finding
	notes   []string
}

func newLinter(in Input) *linter {
	l := &linter{in: in, version: in.Version, places: map[string]place{}}
	if in.Values != nil {
		l.version = cmp.Or(l.version, in.Values.Version)
		in.Values.Walk(func(path string, line int, v *yamlfile.Value) { l.places[path] = place{v.File, line} })
	}
	if cilium.CapabilitiesOf(l.version) == (cilium.Capabilities{}) {
		l.version = Newest
		if in.Values != nil {
			l.notes = append(l.notes, "the files name no version: judged as Cilium "+Newest+"; give --cilium-version for another")
		}
	}
	l.version = strings.TrimPrefix(l.version, "v")
	l.caps = cilium.CapabilitiesOf(l.version)
	return l
}

// place is where something stands.
type place struct {
	file string
	line int
}

func (p place) String() string { return p.file + ":" + strconv.Itoa(p.line) }

// find reports a broken rule of the key at a place. What one rule has to say of
// one key is one finding.
func (l *linter) find(rule *diag.Rule, severity diag.Severity, at place, key, message string) {
	f := diag.Finding{
		// Lines shift with every edit, so the key has the file alone.
		Key:  strings.Join([]string{rule.Name, at.file, "", key}, "|"),
		Rule: rule, Severity: severity, Subject: at.String(), Address: key, Message: message,
		Refs: []fact.Ref{{Origin: at.String() + " " + key}},
	}
	i := slices.IndexFunc(l.found, func(o diag.Finding) bool { return o.Key == f.Key })
	if i < 0 {
		l.found = append(l.found, f)
		return
	}
	old := &l.found[i]
	old.Severity, old.Message = max(old.Severity, severity), old.Message+"; "+message
}
