package report

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/kubectl-kpr/kubectl-kpr/internal/cilium"
	"github.com/kubectl-kpr/kubectl-kpr/internal/words"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// SettingFacts are what the table of settings is made of.
func SettingFacts() []fact.Named {
	return []fact.Named{fact.Status, fact.AgentOf, fact.KubeProxy, fact.AgentSets, fact.APIServer, fact.CiliumConfig, fact.Config, fact.Drift}
}

// Chart is where the chart's values came from.
type Chart struct {
	Said  string // "release kube-system/cilium, revision 4 (chart cilium 1.20.2)", "v.yaml"
	Value func(path string) (text string, set, ok bool)
	Err   error // why they could not be read, where somebody asked for them
}

// Settings compares what the agents were told with what they run.
type Settings struct {
	Chart string    `json:"chart"` // where its values came from; "not read"
	Rows  []Setting `json:"rows"`
}

// Setting is one key in all its layers.
type Setting struct {
	Key       string         `json:"key,omitempty"`  // of cilium-config
	Helm      string         `json:"helm,omitempty"` // path of the chart's value
	Chart     *ChartValue    `json:"chart,omitempty"`
	ConfigMap *string        `json:"ciliumConfig,omitempty"` // absent where the key is not there
	Groups    []SettingGroup `json:"groups"`                 // nodes that are alike, most first
	Marks     []SettingMark  `json:"marks,omitempty"`        // of the key as a whole or of some nodes
	Different bool           `json:"different"`              // the layers or the nodes differ
}

// ChartValue is what the chart was given.
type ChartValue struct {
	Value   string `json:"value"`
	Default bool   `json:"default,omitempty"` // of the chart itself
}

// SettingGroup is nodes that were told the same and run the same.
type SettingGroup struct {
	Told  string   `json:"told,omitempty"`
	By    string   `json:"by,omitempty"`   // the CiliumNodeConfig, "" for cilium-config
	Runs  string   `json:"runs,omitempty"` // as the agent prints it; true or false of switches
	Known bool     `json:"known"`          // whether the agent shows it
	Mark  string   `json:"mark,omitempty"`
	Nodes []string `json:"nodes"`
}

// SettingMark is what stands out about a key.
type SettingMark struct {
	Mark  string   `json:"mark"`
	Why   string   `json:"why"`
	Nodes []string `json:"nodes,omitempty"` // none for all
}

// Marks that are not about one agent; those of agents are fact.Drift's.
const (
	MarkNotApplied = "not applied"
	MarkExits      = "exits at start"
)

// settings makes the table. What is missing for it is a gap.
func settings(d *Document, v *fact.View, chart *Chart) {
	d.Settings = &Settings{Chart: "not read", Rows: []Setting{}}
	if chart != nil {
		d.Settings.Chart = chart.Said
		if chart.Err != nil {
			d.Settings.Chart = "not read: " + joinErr(chart.Err)
			d.Gaps = append(d.Gaps, Gap{What: "chart-values", Class: string(source.ClassOf(chart.Err)), Reason: joinErr(chart.Err), Checks: []string{"config"}})
			chart = nil
		}
	}
	told, err := fact.CiliumConfig.From(v)
	if err != nil && !slices.ContainsFunc(d.Gaps, func(g Gap) bool { return g.Topic == "cilium-config" }) {
		d.Gaps = append(d.Gaps, Gap{What: "cilium-config", Topic: "cilium-config", Class: string(source.ClassOf(err)), Reason: joinErr(err), Checks: []string{"config"}})
	}
	rows := drifts(v)
	faults := startFaults(v)
	for _, s := range cilium.Settings() {
		if s.Key == "" {
			continue
		}
		row := Setting{Key: s.Key, Helm: s.Helm, Groups: append([]SettingGroup{}, rows[s.Key]...)}
		if value, ok := told[s.Key]; ok {
			row.ConfigMap = &value
		}
		row.Marks = faults[s.Key]
		row.fromChart(s, chart, err == nil)
		if row.ConfigMap == nil && len(row.Groups) == 0 && row.Chart == nil && len(row.Marks) == 0 {
			continue
		}
		row.Different = row.differs()
		d.Settings.Rows = append(d.Settings.Rows, row)
	}
	d.Settings.Rows = append(d.Settings.Rows, apiServerRow(v, chart)...)
}

// drifts groups what the nodes were told and run, by key.
func drifts(v *fact.View) map[string][]SettingGroup {
	out := map[string][]SettingGroup{}
	for node, r := range fact.Drift.Each(v) {
		for _, row := range r.Value {
			g := SettingGroup{Told: row.Told, By: row.By, Runs: row.Runs, Known: row.Known, Mark: row.Mark}
			out[row.Key] = join(out[row.Key], g, node)
		}
	}
	for _, groups := range out {
		slices.SortStableFunc(groups, func(a, b SettingGroup) int {
			return cmp.Or(cmp.Compare(len(b.Nodes), len(a.Nodes)), cmp.Compare(a.Runs, b.Runs))
		})
	}
	return out
}

func join(groups []SettingGroup, g SettingGroup, node string) []SettingGroup {
	i := slices.IndexFunc(groups, func(o SettingGroup) bool {
		return o.Told == g.Told && o.By == g.By && o.Runs == g.Runs && o.Known == g.Known && o.Mark == g.Mark
	})
	if i < 0 {
		g.Nodes = []string{node}
		return append(groups, g)
	}
	groups[i].Nodes = append(groups[i].Nodes, node)
	return groups
}

// startFaults are the combinations with which agents would exit, by the key to
// change first.
func startFaults(v *fact.View) map[string][]SettingMark {
	out := map[string][]SettingMark{}
	for node, r := range fact.Config.Each(v) {
		st, _ := fact.Status.From(v.On(node))
		if r.Err != nil || st == nil {
			continue
		}
		get := func(key string) string { return r.Value.Data[key] }
		for _, f := range cilium.StartFaults(get, cilium.CapabilitiesOf(st.Version)) {
			marks := out[f.Keys[0]]
			if i := slices.IndexFunc(marks, func(m SettingMark) bool { return m.Why == f.Why }); i >= 0 {
				marks[i].Nodes = append(marks[i].Nodes, node)
				continue
			}
			out[f.Keys[0]] = append(marks, SettingMark{Mark: MarkExits, Why: f.Why, Nodes: []string{node}})
		}
	}
	return out
}

// fromChart adds the chart's value, and whether cilium-config follows it.
func (row *Setting) fromChart(s cilium.Setting, chart *Chart, read bool) {
	if chart == nil || s.Helm == "" {
		return
	}
	value, set, ok := chart.Value(s.Helm)
	if !ok {
		return
	}
	row.Chart = &ChartValue{value, !set}
	if !read || chart.forces(s.Key) {
		return
	}
	told := s.Default
	switch {
	case row.ConfigMap != nil:
		told = *row.ConfigMap
	case !set || told == "":
		return // the chart leaves out what is the agent's default
	}
	if s.Same(value, told) == lb.No {
		has := "cilium-config " + told
		if row.ConfigMap == nil {
			has = "cilium-config does not have the key"
		}
		row.Marks = append(row.Marks, SettingMark{Mark: MarkNotApplied, Why: fmt.Sprintf("the chart says %s, %s", value, has)})
	}
}

// forces tells that another value decides about the key, whatever its own says.
func (c *Chart) forces(key string) bool {
	gateway, _, _ := c.Value("gatewayAPI.enabled")
	return gateway == "true" && (key == "bpf-lb-sock-hostns-only" || key == "bpf-lb-algorithm-annotation")
}

func (row *Setting) differs() bool {
	return len(row.Marks) > 0 || len(row.Groups) > 1 ||
		slices.ContainsFunc(row.Groups, func(g SettingGroup) bool { return g.Mark != "" || g.By != "" })
}

// apiServerRow is the address that agents dial, which is in no key.
func apiServerRow(v *fact.View, chart *Chart) []Setting {
	row := Setting{Helm: "k8sServiceHost, k8sServicePort"}
	for node, r := range fact.APIServer.Each(v) {
		g := SettingGroup{Known: r.Err == nil}
		if g.Known {
			g.Runs = r.Value.String()
		}
		row.Groups = join(row.Groups, g, node)
	}
	if chart != nil {
		host, set, ok := chart.Value("k8sServiceHost")
		port, _, _ := chart.Value("k8sServicePort")
		if ok && host != "" {
			row.Chart = &ChartValue{fact.API{Host: host, Port: port}.String(), !set}
		}
	}
	if len(row.Groups) == 0 && row.Chart == nil {
		return nil
	}
	slices.SortStableFunc(row.Groups, func(a, b SettingGroup) int { return cmp.Compare(len(b.Nodes), len(a.Nodes)) })
	if row.Chart != nil && slices.ContainsFunc(row.Groups, func(g SettingGroup) bool { return g.Known && g.Runs != row.Chart.Value }) && row.Chart.Value != "auto" {
		row.Marks = append(row.Marks, SettingMark{Mark: MarkNotApplied, Why: "the chart says " + row.Chart.Value})
	}
	row.Different = row.differs()
	return []Setting{row}
}

// stateOfSettings is the table in a few words, for the verdict. What the
// replacement forces is as it should be.
func stateOfSettings(d *Document) string {
	out := 0
	for _, r := range d.Settings.Rows {
		forced := len(r.Marks) == 0 && !slices.ContainsFunc(r.Groups, func(g SettingGroup) bool { return g.Mark != fact.MarkForced })
		if r.Different && !forced {
			out++
		}
	}
	switch total := words.Count(len(d.Settings.Rows), "setting"); {
	case len(d.Settings.Rows) == 0:
		return "nothing is known of the settings"
	case out == 0:
		return "the agents run what they were told"
	case out == 1:
		return "1 of " + total + " stands out"
	default:
		return fmt.Sprintf("%d of %s stand out", out, total)
	}
}
