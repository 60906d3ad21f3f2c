package service

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/internal/words"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// divergence is the rule about nodes that disagree.
var divergence = &diag.Rule{
	Name: "node-divergence", Severity: diag.Warning, Settles: true,
	Title: "nodes that should hold the same for a Service hold different backends",
	Doc: `The agents of all nodes hear of the same Services, so that but for what is one node's own they hold the same.
Where they do not, requests succeed or fail by the node they pass: the usual cause of "it fails one time in
three". The finding names the nodes that stand apart and what they have or lack, and which side the API is on.

What differs by design is left out: Local traffic policies, zone hints and traffic distribution, node addresses
and host ports, what Envoy or a local redirect answers, nodes with another part of the replacement switched on, and nodes
without an agent. A Service that is wrong on every node is left to the rules that say what is wrong.

For a global Service the backends of other clusters are compared as well; where a node lacks some it is an
error, as no other rule can see it.`,
	Proof: []string{
		"kubectl kpr trace svc/NAME -n NAMESPACE",
		"kubectl kpr exec NODE -- cilium-dbg service list",
	},
	Remedy: `Look at the agents of the nodes that stand apart: whether they hear the API server (or, for global Services, the
other cluster's), and what their logs tell. Restarting such an agent makes it read everything anew.`,
}

// Divergence checks that the nodes hold the same.
func Divergence() *diag.Check {
	return &diag.Check{
		Name: divergence.Name, Doc: "nodes that should hold the same backends do",
		Scope: diag.OfCluster, Rules: []*diag.Rule{divergence},
		Wants: []fact.Named{fact.Index, fact.Behind, fact.Desired, fact.Held, fact.Capabilities, fact.AgentOf, fact.NodeView, fact.CiliumConfig},
		Run:   judgeDivergence,
	}
}

// manyAlike is from how many Services on a split of the nodes is told once and
// not for each of them: then a node is at fault, not the Services.
const manyAlike = 6

func judgeDivergence(p *diag.Pass) error {
	c := comparison{view: p.View(), marks: map[topic]map[string][]mark{}}
	_, err := fact.Index.From(p.View())
	if err != nil {
		p.Unknown(fact.Index.ID(), err)
	}
	for _, n := range p.View().Nodes() {
		v := p.View().On(n.Name)
		if noAgentMeant(v) != "" {
			continue
		}
		if heldErr := c.take(v); heldErr != nil {
			p.On(n.Name).Unknown(fact.Behind.ID(), heldErr)
		}
	}
	c.guess(p.View())
	for _, alike := range c.splits() {
		if len(alike) < manyAlike {
			for _, s := range alike {
				p.Find(divergence, s.report())
			}
			continue
		}
		p.Find(divergence, together(alike))
	}
	for _, a := range globals(p.View()) {
		if parties := a.parties(); len(parties) > 1 {
			p.Find(divergence, a.divided(parties))
		}
	}
	return nil
}

// report is the finding about one Service, or one frontend that is nobody's.
func (s split) report() diag.Report {
	r := diag.Report{
		Subject: "frontend/" + s.topic.frontend.String(), Severity: diag.Warning,
		Proof: []fact.Named{fact.EndpointSlices}, Message: s.message(),
	}
	if s.topic.service != (lb.Name{}) {
		r.Subject = "service/" + s.topic.service.String()
		r.Next = []string{"kubectl", "kpr", "trace", "svc/" + s.topic.service.Name, "-n", s.topic.service.Namespace}
	}
	return r
}

// message tells what each party has, the one that the API is with first.
func (s split) message() string {
	parties := slices.Clone(s.parties)
	slices.SortStableFunc(parties, func(a, b party) int {
		if a.asWanted() == b.asWanted() {
			return 0
		}
		if a.asWanted() {
			return -1
		}
		return 1
	})
	var frontends, sides []string
	for _, p := range parties {
		for _, m := range p.marks {
			if f := dialled(m.frontend); !slices.Contains(frontends, f) {
				frontends = append(frontends, f)
			}
		}
		sides = append(sides, s.side(p))
	}
	return fmt.Sprintf("%s: %s", listed(frontends), strings.Join(sides, "; "))
}

// side is what one party has: "w-1, w-2 have 2 backends, 10.0.0.1:80 besides".
func (s split) side(p party) string {
	number, ok := s.number(p)
	if !ok {
		return fmt.Sprintf("%s %s no such frontend", listed(p.nodes), verb(p.nodes))
	}
	has := fmt.Sprintf("%s %s %s", listed(p.nodes), verb(p.nodes), words.Count(number, "backend"))
	if p.asWanted() {
		return has + ", as the API wants"
	}
	var besides, without []string
	for _, m := range p.marks {
		switch m.kind {
		case lb.BackendExtra:
			if b := m.backend.String(); !s.common(m) && !slices.Contains(besides, b) {
				besides = append(besides, b)
			}
		case lb.BackendMissing:
			if b := m.backend.String(); !slices.Contains(without, b) {
				without = append(without, b)
			}
		}
	}
	if len(besides) > 0 {
		has += ", " + listed(besides) + " among them"
	}
	if len(without) > 0 {
		has += ", " + listed(without) + " not among them"
	}
	return has
}

// number is how many backends a party has behind the first frontend that
// differs; false where it does not have the frontend.
func (s split) number(p party) (int, bool) {
	for _, o := range s.parties {
		if len(o.marks) > 0 {
			have, _ := fact.Held.From(s.view.On(p.nodes[0]))
			r, ok := findAny(have, o.marks[0].frontend)
			return len(r.Entries), ok
		}
	}
	return 0, false
}

// common holds for what all parties have.
func (s split) common(m mark) bool {
	return !slices.ContainsFunc(s.parties, func(p party) bool { return !slices.Contains(p.marks, m) })
}

// together is the finding about many Services on which the same nodes part.
func together(alike []split) diag.Report {
	s := alike[0]
	names := make([]string, len(alike))
	for i, o := range alike {
		names[i] = strings.TrimPrefix(o.report().Subject, "service/")
	}
	var sides, apart []string
	for _, side := range s.parties {
		words := listed(side.nodes)
		if side.asWanted() {
			words += " (as the API wants)"
		} else {
			apart = append(apart, side.nodes...)
		}
		sides = append(sides, words)
	}
	r := diag.Report{
		Subject: "cluster", Severity: diag.Warning, Proof: []fact.Named{fact.EndpointSlices}, Address: listed(apart),
		Message: fmt.Sprintf("nodes hold different backends for %d Services: %s; the Services are %s", len(alike), strings.Join(sides, " against "), listed(names)),
	}
	if len(apart) == 1 {
		r.Subject, r.Address = "node/"+apart[0], ""
	}
	return r
}

// divided is the finding about a global Service of which nodes have different
// foreign backends.
func (a *abroad) divided(parties [][]string) diag.Report {
	var sides []string
	for _, nodes := range parties {
		has := a.nodes[nodes[0]]
		var lacks []string
		for _, b := range a.backends() {
			if !has[b] {
				lacks = append(lacks, b.String())
			}
		}
		side := fmt.Sprintf("%s %s %s", listed(nodes), verb(nodes), words.Count(len(has), "backend"))
		if len(lacks) > 0 {
			side += " and not " + listed(lacks)
		}
		sides = append(sides, side)
	}
	return diag.Report{
		Subject: "service/" + a.service.String(), Address: "other clusters", Severity: diag.Error,
		Message: "nodes hold different backends of other clusters: " + strings.Join(sides, "; "),
		Proof:   []fact.Named{fact.Services},
		Next:    []string{"kubectl", "kpr", "trace", "svc/" + a.service.Name, "-n", a.service.Namespace},
	}
}

func verb(nodes []string) string {
	if len(nodes) == 1 {
		return "has"
	}
	return "have"
}
