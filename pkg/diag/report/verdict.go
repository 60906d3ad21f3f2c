package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/internal/words"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
)

// Exit codes of reading commands, the same in every output format.
const (
	ExitOK      = 0
	ExitFailed  = 1
	ExitFound   = 2
	ExitUnknown = 3
)

// verdict weighs the findings and gaps. What was found wins over what is
// unknown, and both over what is well.
func verdict(d *Document, o Options) Verdict {
	v := Verdict{Outcome: OK, ExitCode: ExitOK, FailOn: o.FailOn.String()}
	failing := false
	for _, f := range d.Findings {
		s, _ := diag.ParseSeverity(f.Severity)
		switch s {
		case diag.Error:
			v.Errors++
		case diag.Warning:
			v.Warnings++
		default:
			v.Infos++
		}
		failing = failing || (s >= o.FailOn && f.Rule != diag.Incomplete.Name)
	}
	failing = failing || o.Residue && runsBeside(d)
	unknown := len(d.Gaps) > 0 || slices.ContainsFunc(d.Checks, func(c Check) bool { return c.Outcome == diag.Unknown.String() })
	switch {
	case failing:
		v.Outcome, v.ExitCode = Found, ExitFound
	case unknown:
		v.Outcome, v.ExitCode = Unknown, ExitUnknown
	}
	v.Text = sentence(d, v, o)
	return v
}

// sentence is the verdict in words: the state of KPR when nodes are shown,
// then what was found and what is not known.
func sentence(d *Document, v Verdict, o Options) string {
	var parts []string
	if o.Residue {
		parts = append(parts, stateOfResidue(d)...)
	} else if o.Nodes {
		parts = append(parts, stateOfKPR(d.Nodes), stateOfProxy(d.Nodes), stateOfServices(d.Nodes))
	}
	if o.Settings {
		parts = append(parts, stateOfSettings(d))
	}
	if d.Stage != nil {
		parts = slices.Insert(parts, 0, stateOfStage(d, v))
	}
	if counts := countWords(d, v); counts != "" {
		parts = append(parts, counts)
	}
	if v.Outcome == OK && v.Warnings > 0 {
		parts = append(parts, "warnings do not change the exit code (--fail-on warning)")
	}
	if len(parts) == 0 && d.Source.Kind == "files" {
		parts = append(parts, "no fault found in "+d.Source.Name)
	}
	if len(parts) == 0 {
		parts = append(parts, fmt.Sprintf("no fault found by %s on %s", words.Count(len(d.Checks)-1, "check"), words.Count(d.NodeCount, "node")))
		switch {
		case o.Baseline != nil:
			parts[0] = strings.Replace(parts[0], "nothing", "nothing new", 1)
		case len(d.Waived) > 0:
			parts[0] = strings.Replace(parts[0], "nothing", "nothing else", 1)
		}
	}
	parts = append(parts, waivedWords(d))
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}

func countWords(d *Document, v Verdict) string {
	missing := 0
	for _, f := range d.Findings {
		if f.Rule == diag.Incomplete.Name {
			missing++
		}
	}
	var parts []string
	add := func(n int, one, many string) {
		if n == 1 {
			parts = append(parts, "1 "+one)
		} else if n > 1 {
			parts = append(parts, fmt.Sprintf("%d %s", n, many))
		}
	}
	add(v.Errors, "error", "errors")
	add(v.Warnings-missing, "warning", "warnings")
	if missing > 0 {
		parts = append(parts, "no full answer on "+gapWords(d))
	} else if v.Outcome == Unknown {
		parts = append(parts, "no full answer")
	}
	return strings.Join(parts, ", ")
}

func gapWords(d *Document) string {
	nodes := map[string]bool{}
	for _, g := range d.Gaps {
		nodes[g.Node] = true
	}
	cluster := nodes[""]
	delete(nodes, "")
	switch {
	case len(nodes) == 0:
		return "the cluster"
	case cluster:
		return fmt.Sprintf("the cluster and %s", words.Count(len(nodes), "node"))
	}
	return words.Count(len(nodes), "node")
}

// stateOfKPR counts the modes over the nodes that should have an agent.
func stateOfKPR(nodes []Node) string {
	meant, active, off, partial, unknown := 0, 0, 0, 0, 0
	for _, n := range nodes {
		if n.Agent.State == "not wanted" {
			continue
		}
		meant++
		switch {
		case n.KPR == nil:
			unknown++
		case n.KPR.Mode == "True":
			active++
		case n.KPR.Mode == "False":
			off++
		default:
			partial++
		}
	}
	switch {
	case meant == 0:
		return "no node is known"
	case active == meant:
		return "KPR is active on " + all(meant)
	case off == meant:
		return "KPR is off on " + all(meant)
	case unknown == meant:
		return "whether KPR is active is not known" + onAny(meant)
	}
	s := fmt.Sprintf("KPR is active on %d of %s", active, words.Count(meant, "node"))
	for _, part := range []struct {
		n    int
		word string
	}{{partial, "partial"}, {off, "off"}, {unknown, "not known"}} {
		if part.n > 0 {
			s += fmt.Sprintf(", %s on %d", part.word, part.n)
		}
	}
	return s
}

func stateOfProxy(nodes []Node) string {
	running, no, unknown := 0, 0, 0
	for _, n := range nodes {
		switch n.KubeProxy.Running {
		case "yes":
			running++
		case "no":
			no++
		default:
			unknown++
		}
	}
	switch {
	case len(nodes) == 0:
		return ""
	case no == len(nodes):
		return "kube-proxy runs on none"
	case running == len(nodes):
		return "kube-proxy runs on " + all(running)
	case unknown == len(nodes):
		return "whether kube-proxy runs is not known"
	}
	s := fmt.Sprintf("kube-proxy runs on %d of %d", running, len(nodes))
	if running == 0 {
		s = "kube-proxy runs on none"
	}
	if unknown > 0 {
		s += fmt.Sprintf(" (not known on %d)", unknown)
	}
	return s
}

func stateOfServices(nodes []Node) string {
	meant, same, differ := 0, 0, 0
	for _, n := range nodes {
		switch {
		case n.Agent.State == "not wanted":
			continue
		case n.Services == nil:
		case n.Services.InSync:
			same++
		default:
			differ++
		}
		meant++
	}
	unknown := ""
	if n := meant - same - differ; n > 0 {
		unknown = fmt.Sprintf(" (not known on %d)", n)
	}
	switch {
	case differ > 0:
		return fmt.Sprintf("Services differ on %d of %s", differ, words.Count(meant, "node")) + unknown
	case same == 0:
		return ""
	}
	return "Services are in sync" + unknown
}

func onAny(n int) string {
	if n == 1 {
		return ""
	}
	return fmt.Sprintf(" on any of %d nodes", n)
}

func all(n int) string {
	switch n {
	case 1:
		return "the only node"
	case 2:
		return "both nodes"
	}
	return fmt.Sprintf("all %d nodes", n)
}
