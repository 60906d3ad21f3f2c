package report

import (
	"slices"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
)

// differenceOf words the rules that a difference between layers breaks.
func differenceOf(rule string) string {
	switch rule {
	case "backend-missing":
		return "is missing"
	case "backend-stale":
		return "is stale"
	case "backend-state":
		return "is in the wrong state"
	case "frontend-missing":
		return "is absent"
	case "agent-vs-bpf":
		return "differs in the map"
	}
	return ""
}

// compared fills in the Services of nodes, from the findings: a difference that
// a second look did not have is none.
func compared(d *Document, v *fact.View) {
	for i := range d.Nodes {
		n := &d.Nodes[i]
		on := v.On(n.Name)
		if on.Err(fact.Behind) != nil || on.Err(fact.Unwritten) != nil {
			continue
		}
		n.Services = &Services{InSync: true}
	}
	for _, f := range d.Findings {
		words := differenceOf(f.Rule)
		i := slices.IndexFunc(d.Nodes, func(n Node) bool { return n.Name == f.Node })
		if words == "" || i < 0 {
			continue
		}
		s := d.Nodes[i].Services
		if s == nil {
			s = &Services{}
			d.Nodes[i].Services = s
		}
		s.InSync = false
		if text := f.Address + " " + words; !slices.Contains(s.Differences, text) {
			s.Differences = append(s.Differences, text)
		}
	}
}
