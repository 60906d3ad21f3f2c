package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/internal/words"
)

// stage says where the nodes stand on the way from kube-proxy to KPR.
func (p page) stage() {
	s := p.d.Stage
	if s == nil {
		return
	}
	p.say(0, "")
	p.say(0, Clean(fmt.Sprintf("Stage %s: %s.", s.Name, s.Wants)))
	for _, g := range s.Stands {
		sign := "ok"
		switch {
		case g.Stage < 0:
			sign = "unknown"
		case g.Stage < s.Number && !(s.Number == 3 && g.Stage == 2), s.Number == 0 && g.Stage > 0:
			sign = "error"
		}
		_, _ = p.WriteString("  " + p.sign(sign) + " ")
		nodes := words.Count(len(g.Nodes), "node")
		if len(s.Stands) > 1 {
			nodes += " (" + p.nodeNames(g.Nodes) + ")"
		}
		_, _ = p.WriteString(fold(Clean(nodes+": "+g.Words), p.o.Width, 4) + "\n")
	}
	if s.Reached {
		p.say(2, Clean("Next: "+s.Next))
	}
}

// nodeNames lists nodes, in the text form no more than fit a line.
func (p page) nodeNames(names []string) string {
	if p.wide() || len(names) <= maxNodes {
		return strings.Join(names, ", ")
	}
	return strings.Join(slices.Clone(names[:maxNodes]), ", ") + fmt.Sprintf(", +%d more", len(names)-maxNodes)
}
