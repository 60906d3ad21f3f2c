package report

import (
	"cmp"
	"slices"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// Diff is what changed from one look at a cluster to another. Nodes that
// changed alike share an entry.
type Diff struct {
	Before      source.About     `json:"before"` // Document.Source is what it is compared with
	BeforeNodes int              `json:"beforeNodeCount"`
	New         []Finding        `json:"new"`  // found after and not before
	Gone        []Finding        `json:"gone"` // found before and not after
	Changed     []ChangedFinding `json:"changed"`
	Came        []string         `json:"nodesCame"` // nodes that are there after alone
	Went        []string         `json:"nodesWent"`
	Properties  []PropertyChange `json:"properties"` // versions, mode, kube-proxy and the like
	Settings    []SettingChange  `json:"settings"`
	Frontends   []FrontendChange `json:"frontends"`
	Uncompared  []Uncompared     `json:"uncompared"`
}

// ChangedFinding is one finding, by key, with another severity or message.
type ChangedFinding struct {
	Finding        // as it is after
	Was     string `json:"was"`         // the message before
	WasAt   string `json:"wasSeverity"` // the severity before
}

// PropertyChange is another value of something that Grid shows, or of a version.
// Without nodes it is about the cluster.
type PropertyChange struct {
	Property string   `json:"property"`
	Before   string   `json:"before"`
	After    string   `json:"after"`
	Nodes    []string `json:"nodes,omitempty"`
}

// SettingChange is another value of a setting. In says where: "cilium-config",
// "CiliumNodeConfig" or "agents", which is what they run.
type SettingChange struct {
	Key    string   `json:"key"`
	In     string   `json:"in"`
	Before *string  `json:"before,omitempty"` // absent where the key was not there
	After  *string  `json:"after,omitempty"`
	Nodes  []string `json:"nodes,omitempty"`
}

// FrontendChange is a difference in one of the three layers.
type FrontendChange struct {
	Layer    string   `json:"layer"` // desired, agent, kernel
	Frontend string   `json:"frontend"`
	Service  string   `json:"service,omitempty"`
	What     string   `json:"what"` // "frontend new", "backend gone", "state"
	Backend  string   `json:"backend,omitempty"`
	Before   string   `json:"before,omitempty"`
	After    string   `json:"after,omitempty"`
	Nodes    []string `json:"nodes"`
}

// Uncompared is what one of the sides, or both, could not tell.
type Uncompared struct {
	What   string   `json:"what"`
	Side   string   `json:"side"` // before, after, both
	Reason string   `json:"reason"`
	Nodes  []string `json:"nodes,omitempty"`
}

// DiffFacts are what Compare reads beside the checks' own facts.
func DiffFacts() []fact.Named {
	facts := append(Facts(true), SettingFacts()...)
	return append(facts, fact.Nodes, fact.Desired, fact.AgentTable, fact.KernelTable)
}

// Compare makes the Document of a comparison of two runs with the same checks
// and DiffFacts. Options are those of Build; findings count whatever their
// severity.
func Compare(before, after *diag.Run, o Options) *Document {
	o.Nodes = true
	was, d := Build(before, o), Build(after, o)
	c := comparison{was: was, is: d, a: before.Store.Cluster(), b: after.Store.Cluster(), diff: &Diff{
		Before: was.Source, BeforeNodes: was.NodeCount, New: []Finding{}, Gone: []Finding{}, Changed: []ChangedFinding{}, Came: []string{}, Went: []string{},
		Properties: []PropertyChange{}, Settings: []SettingChange{}, Frontends: []FrontendChange{}, Uncompared: []Uncompared{},
	}}
	c.diff.Before.Cilium = was.Cilium
	c.nodes()
	c.properties()
	c.findings()
	c.settings()
	c.frontends()
	d.Diff = c.diff
	// What is alike is no news, and the nodes are in the changes.
	d.Findings, d.Gaps, d.Notes, d.Nodes, d.Waived = []Finding{}, []Gap{}, c.strangers(), []Node{}, nil
	d.Verdict = c.verdict(o)
	return d
}

// comparison is two sides and what was found between them so far.
type comparison struct {
	was, is *Document
	a, b    *fact.View
	both    []string // nodes of both sides, sorted
	diff    *Diff
}

func (c *comparison) nodes() {
	names := func(v *fact.View) []string {
		var out []string
		for _, n := range v.Nodes() {
			out = append(out, n.Name)
		}
		return out
	}
	before, after := names(c.a), names(c.b)
	for _, n := range before {
		if slices.Contains(after, n) {
			c.both = append(c.both, n)
		} else {
			c.diff.Went = append(c.diff.Went, n)
		}
	}
	for _, n := range after {
		if !slices.Contains(before, n) {
			c.diff.Came = append(c.diff.Came, n)
		}
	}
}

// strangers says what speaks against two looks at one cluster.
func (c *comparison) strangers() []string {
	switch a, b := c.was.Source, c.is.Source; {
	case a.Redacted != b.Redacted:
		return []string{"one side is redacted and the other is not: their names have nothing to do with each other"}
	case len(c.both) == 0 && len(c.diff.Came) > 0 && len(c.diff.Went) > 0 && a.Redacted:
		return []string{"no node is on both sides: these are two clusters, or were redacted with two keys"}
	case len(c.both) == 0 && len(c.diff.Came) > 0 && len(c.diff.Went) > 0:
		return []string{"no node is on both sides: these are two clusters"}
	case a.Server != b.Server && a.Server != "" && b.Server != "":
		return []string{"the API server is another: " + a.Server + " before, " + b.Server + " after"}
	}
	return []string{}
}

// agents are the nodes of both sides that are meant to have an agent on one of
// them.
func (c *comparison) agents() []string {
	before, after := nodesByName(c.was.Nodes), nodesByName(c.is.Nodes)
	return slices.DeleteFunc(slices.Clone(c.both), func(n string) bool {
		return before[n].Agent.State == "not wanted" && after[n].Agent.State == "not wanted"
	})
}

// uncompared notes what could not be compared on a node, "" for the cluster.
// An error is nil where that side knows.
func (c *comparison) uncompared(what, node string, before, after error) {
	side, err := "both", before
	switch {
	case before == nil && after == nil:
		return
	case before == nil:
		side, err = "after", after
	case after == nil:
		side = "before"
	}
	c.lacks(Uncompared{What: what, Side: side, Reason: diag.Reason(err, node)}, node)
}

func (c *comparison) lacks(u Uncompared, node string) {
	all := c.diff.Uncompared
	i := slices.IndexFunc(all, func(x Uncompared) bool { return x.What == u.What && x.Side == u.Side && x.Reason == u.Reason })
	if i < 0 {
		i = len(all)
		c.diff.Uncompared = append(all, u)
	}
	if node != "" && !slices.Contains(c.diff.Uncompared[i].Nodes, node) {
		c.diff.Uncompared[i].Nodes = append(c.diff.Uncompared[i].Nodes, node)
	}
}

// findings compares by key. A finding that the other side lacks because it
// could not look is neither new nor gone.
func (c *comparison) findings() {
	before, after := byKey(c.was), byKey(c.is)
	for _, f := range c.is.Findings {
		old, ok := before[f.Key]
		switch {
		case f.Rule == diag.Incomplete.Name:
		case !ok && c.blind(c.was, f):
			c.lacks(Uncompared{What: "rule " + f.Rule, Side: "before", Reason: "not decided there; found after: " + f.Subject}, f.Node)
		case !ok:
			c.diff.New = append(c.diff.New, f)
		case old.Severity != f.Severity || old.Message != f.Message:
			c.diff.Changed = append(c.diff.Changed, ChangedFinding{f, old.Message, old.Severity})
		}
	}
	for _, f := range c.was.Findings {
		if _, ok := after[f.Key]; ok || f.Rule == diag.Incomplete.Name || slices.Contains(c.diff.Went, f.Node) {
			continue
		}
		if c.blind(c.is, f) {
			c.lacks(Uncompared{What: "rule " + f.Rule, Side: "after", Reason: "not decided there; found before: " + f.Subject}, f.Node)
			continue
		}
		c.diff.Gone = append(c.diff.Gone, f)
	}
}

func byKey(d *Document) map[string]Finding {
	all := make(map[string]Finding, len(d.Findings))
	for _, f := range d.Findings {
		all[f.Key] = f
	}
	return all
}

// blind holds where a side could not judge the rule of a finding, on its node
// or at all.
func (c *comparison) blind(d *Document, f Finding) bool {
	i := slices.IndexFunc(d.Checks, func(k Check) bool { return slices.Contains(k.Rules, f.Rule) })
	if i < 0 {
		return true
	}
	return slices.ContainsFunc(d.Gaps, func(g Gap) bool {
		return slices.Contains(g.Checks, d.Checks[i].Name) && (g.Node == f.Node || g.Node == "" || f.Node == "")
	})
}

func sortChanges(d *Diff) {
	slices.SortStableFunc(d.Frontends, func(x, y FrontendChange) int {
		return cmp.Or(cmp.Compare(x.Service, y.Service), cmp.Compare(layerOrder[x.Layer], layerOrder[y.Layer]), cmp.Compare(x.Frontend, y.Frontend), cmp.Compare(x.What, y.What), cmp.Compare(x.Backend, y.Backend))
	})
	slices.SortStableFunc(d.Settings, func(x, y SettingChange) int {
		return cmp.Or(cmp.Compare(x.Key, y.Key), cmp.Compare(y.In, x.In))
	})
}

var layerOrder = map[string]int{"desired": 0, "agent": 1, "kernel": 2}
