package service

import (
	"fmt"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
)

// pressure is the rule about load-balancing maps without room.
var pressure = &diag.Rule{
	Name: "map-pressure", Severity: diag.Error,
	Title: "a load-balancing map of a node is full, or nearly so",
	Doc: `Cilium's maps have a fixed size. When one is full the agent cannot write what is new: a Service that was
made or changed last has no row, or not all of its backends, on this node. Everything older goes on working,
so the fault looks like one of that Service, and status stays healthy.

Each frontend takes one row of the service map and one more for each backend behind it: a NodePort of ten
backends on a node with three addresses takes 44. The backend map has a row for each backend once. Rows
are counted here; the metric of map pressure is not asked, as in several versions it did not follow these maps.

Full is an error, and so is a write that failed for want of room. From nine tenths on it is a warning.`,
	Proof: []string{
		"kubectl kpr exec NODE -- cilium-dbg bpf lb list --frontends | wc -l",
		"kubectl kpr exec NODE -- cilium-dbg status --verbose",
		"kubectl logs -n kube-system AGENT-POD | grep 'map is full'",
	},
	Remedy: `Raise bpf-lb-map-max (Helm: bpf.lbMapMax) and restart the agents. A map of another size is made anew: connections
through Services may be cut once, so do it node by node. Fewer frontends help as well: externalTrafficPolicy,
allocateLoadBalancerNodePorts: false, and Services that nobody uses.`,
}

// Pressure checks that the load-balancing maps of each node have room.
func Pressure() *diag.Check {
	return &diag.Check{
		Name: pressure.Name, Doc: "the load-balancing maps of each node have room",
		Scope: diag.OfNode, Rules: []*diag.Rule{pressure},
		Needs:   []fact.Named{fact.MapUse},
		Wants:   []fact.Named{fact.AgentOf},
		Applies: noAgentMeant,
		Run:     judgeRoom,
	}
}

func judgeRoom(p *diag.Pass) error {
	fills, _ := fact.MapUse.From(p.View())
	for _, f := range fills {
		full := f.Rows >= f.Size
		logged := f.Logged > 0 && !f.Rewritten
		severity := diag.Error
		switch {
		case full, len(f.Refused) > 0, logged:
		case f.Logged > 0, f.Rows*10 >= f.Size*9:
			severity = diag.Warning
		default:
			continue
		}
		p.Find(pressure, diag.Report{
			Subject: "node/" + p.Node(), Address: f.Map, Severity: severity, Message: roomMessage(f, full), Proof: []fact.Named{fact.MapUse},
		})
	}
	return nil
}

// roomMessage names the map, what shows it, and what follows.
func roomMessage(f fact.Fill, full bool) string {
	var shown []string
	if f.Rows*10 >= f.Size*9 {
		shown = append(shown, fmt.Sprintf("holds %d of %d rows (%s)", f.Rows, f.Size, f.By))
	}
	if n := len(f.Refused); n > 0 {
		var names []string
		for _, a := range f.Refused {
			names = append(names, a.String())
		}
		shown = append(shown, fmt.Sprintf("is full by the agent's own word, which cannot write %s", listed(names)))
	}
	if f.Logged > 0 {
		times := "once"
		if f.Logged > 1 {
			times = fmt.Sprintf("%d times", f.Logged)
		}
		shown = append(shown, fmt.Sprintf("was full %s when the agent wrote to it, by its log", times))
	}
	s := fmt.Sprintf("the %s map %s", f.Map, strings.Join(shown, " and "))
	switch {
	case full || len(f.Refused) > 0 || f.Logged > 0 && !f.Rewritten:
		return s + ": what is new in Services is not written there; raise bpf-lb-map-max"
	case f.Logged > 0:
		return s + "; all of it is written by now"
	}
	return s + ": once it is full, what is new in Services is not written; raise bpf-lb-map-max before"
}
