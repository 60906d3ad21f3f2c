package report

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/stage"
)

// Facts are what a Document is made of beside findings: the versions of its first
// line and, where it shows them, its nodes. Whoever builds one has to have them
// collected.
func Facts(nodes bool) []fact.Named {
	if !nodes {
		return []fact.Named{fact.Status}
	}
	return []fact.Named{fact.Status, fact.AgentOf, fact.KubeProxy, fact.APIServer, fact.Behind, fact.Unwritten}
}

// Options are what a Document needs besides the run.
type Options struct {
	Command string
	Tool    string
	Now     time.Time
	FailOn  diag.Severity
	// Nodes adds the nodes and lets the verdict speak of KPR.
	Nodes bool
	// Residue adds what kube-proxy has on each node, which takes ResidueFacts;
	// a kube-proxy beside KPR then always counts as found. It implies Nodes.
	Residue bool
	// Settings adds the table of settings, which takes SettingFacts; Chart are
	// the chart's values beside it, nil where nobody asked for them.
	Settings bool
	Chart    *Chart
	// Stage tells where the nodes stand on the way from kube-proxy to KPR, which
	// takes StageFacts, and whether they are where it wants them.
	Stage *stage.Stage
	// Waivers and Baseline take findings out of the count.
	Waivers  []Waiver
	Baseline *Baseline
}

// Build makes the Document of a run.
func Build(run *diag.Run, o Options) *Document {
	d := &Document{
		SchemaVersion: SchemaVersion, Command: o.Command, Tool: o.Tool, Time: o.Now.UTC().Truncate(time.Second),
		Source: run.About, Skipped: run.Skipped,
		Cilium: []string{}, Findings: []Finding{}, Gaps: []Gap{}, Notes: []string{}, Checks: []Check{}, Nodes: []Node{},
	}
	v := run.Store.Cluster()
	for _, n := range v.Nodes() {
		d.Nodes = append(d.Nodes, nodeOf(v.On(n.Name)))
	}
	d.NodeCount = len(d.Nodes)
	if d.Cilium = versions(d.Nodes); len(d.Cilium) == 0 && len(run.About.Cilium) > 0 {
		d.Cilium = run.About.Cilium
	}
	if d.Source.Version == "" {
		d.Source.Version = kubernetesOf(v)
	}
	for _, r := range run.Results {
		d.Checks = append(d.Checks, checkOf(r))
		for _, n := range r.Notes { // checks of nodes say the same of each
			if !slices.Contains(d.Notes, n) {
				d.Notes = append(d.Notes, n)
			}
		}
		for _, f := range r.Findings {
			d.Findings = append(d.Findings, finding(f))
		}
	}
	slices.SortStableFunc(d.Findings, worstFirst)
	compared(d, v)
	for _, g := range diag.Gaps(run.Results) {
		d.Gaps = append(d.Gaps, Gap{What: string(g.What), Topic: string(g.Topic), Node: g.Node, Class: g.Class, Reason: g.Reason, Checks: g.Checks})
	}
	if o.Residue {
		o.Nodes = true
		residue(d, v)
	}
	if o.Settings {
		settings(d, v, o.Chart)
	}
	if o.Stage != nil {
		d.Stage = stageOf(v, *o.Stage)
	}
	waive(d, o)
	d.Verdict = verdict(d, o)
	if !o.Nodes {
		d.Nodes = []Node{}
	}
	return d
}

func checkOf(r diag.Result) Check {
	c := Check{Name: r.Check.Name, Outcome: r.Outcome.String()}
	for _, rule := range r.Check.Rules {
		c.Rules = append(c.Rules, rule.Name)
	}
	return c
}

func finding(f diag.Finding) Finding {
	out := Finding{
		Key: f.Key, Rule: f.Rule.Name, Severity: f.Severity.String(), Subject: f.Subject,
		Node: f.Node, Address: f.Address, Message: f.Message, Next: f.Next, Evidence: f.Refs,
	}
	if out.Evidence == nil {
		out.Evidence = []fact.Ref{}
	}
	return out
}

// worstFirst orders findings by severity, rule, subject and node; what is
// merely incomplete comes after what was found.
func worstFirst(a, b Finding) int {
	return cmp.Or(
		cmp.Compare(rank(b), rank(a)),
		cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Key, b.Key),
	)
}

func rank(f Finding) int {
	if f.Rule == diag.Incomplete.Name {
		return -1
	}
	s, _ := diag.ParseSeverity(f.Severity)
	return int(s)
}

func versions(nodes []Node) []string {
	seen := []string{}
	for _, n := range nodes {
		if n.Agent.Version != "" && !slices.Contains(seen, n.Agent.Version) {
			seen = append(seen, n.Agent.Version)
		}
	}
	slices.Sort(seen)
	return seen
}

func kubernetesOf(v *fact.View) string {
	for _, r := range fact.Status.Each(v) {
		if r.Value != nil && r.Value.KubeVer != "" {
			return r.Value.KubeVer
		}
	}
	return ""
}

func joinErr(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
