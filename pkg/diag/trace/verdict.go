package trace

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/internal/words"
)

// issue is one thing to say of a Service, with the frontends and nodes that it
// is true of.
type issue struct {
	services       []*Service
	state          State
	severity       string
	layer          Layer
	text           string
	share, outcome string
	nodes, fronts  []string
	inside         bool // only clients in the cluster can meet these frontends
}

// rank orders issues by what they do to the verdict; what is less than OK does
// not count while anything is OK.
func (i issue) rank() int {
	switch {
	case i.state == Behind && i.severity != "error":
		return 2
	case i.state == Stops && i.share == "": // true of every ClusterIP
		return 6
	}
	return slices.Index([]State{Behind, Nobody, "", Unknown, OK, Stops, "", Elsewhere, Excluded}, i.state)
}

// verdict is the worst of what there is to say, in a line.
func (t *tracer) verdict(tr *Trace) Verdict {
	if a := t.found.answer; a != nil {
		v := *a
		v.Severity, v.Next = severityOf(v.State), t.next(issue{state: v.State})
		return v
	}
	all := t.issues(tr)
	slices.SortStableFunc(all, func(a, b issue) int { return a.rank() - b.rank() })
	if len(all) == 0 {
		return Verdict{State: Unknown, Severity: "warning", Text: tr.Target + ": " + t.noAnswer(), Next: t.next(issue{state: Unknown})}
	}
	worst := all[0]
	v := Verdict{State: worst.state, Severity: cmp.Or(worst.severity, severityOf(worst.state)), Layer: worst.layer, Next: t.next(worst)}
	v.Text = t.sentence(worst)
	v.Text += t.others(worst, all)
	return v
}

func severityOf(s State) string {
	switch s {
	case Behind, Nobody, Stops:
		return "error"
	case Unknown, Elsewhere:
		return "warning"
	}
	return "info"
}

// noAnswer says why there is nothing to judge.
func (t *tracer) noAnswer() string {
	switch {
	case len(t.nodes) == 0:
		return "no node was looked at"
	case t.servicesErr != nil:
		return "not known: " + strings.ReplaceAll(t.servicesErr.Error(), "\n", "; ")
	}
	for _, n := range t.at.nodes {
		if n.desiredErr != nil {
			return "not known: " + n.reason(n.desiredErr)
		}
	}
	return "no frontend was found for it on any node"
}

// issues are the groups of all frontends, and what is absent where that leaves
// the client with nothing.
func (t *tracer) issues(tr *Trace) []issue {
	var out []issue
	add := func(i issue) {
		at := slices.IndexFunc(out, func(o issue) bool {
			return o.state == i.state && o.layer == i.layer && o.text == i.text && o.share == i.share && o.outcome == i.outcome
		})
		if at < 0 {
			out = append(out, i)
			return
		}
		if !slices.Contains(out[at].services, i.services[0]) {
			out[at].services = append(out[at].services, i.services[0])
		}
		out[at].nodes = uniq(append(out[at].nodes, i.nodes...))
		out[at].fronts = uniq(append(out[at].fronts, i.fronts...))
		out[at].inside = out[at].inside && i.inside
		if i.severity == "error" {
			out[at].severity = i.severity
		}
	}
	for k := range tr.Services {
		s := &tr.Services[k]
		for _, f := range s.Frontends {
			for _, g := range f.Groups {
				i := issue{
					services: []*Service{s}, state: g.State, severity: g.Severity, layer: g.Layer, text: g.Text, share: g.Share, outcome: g.Outcome,
					nodes: g.Nodes, fronts: []string{f.name()}, inside: f.Type == "ClusterIP" || f.Scope == "internal",
				}
				switch i.state {
				case OK:
					i.text = "" // what agrees is summed up
				case Stops, Elsewhere:
					i.severity = "" // which counts only where nothing else is left
				}
				add(i)
			}
		}
		for _, a := range s.Absent {
			if len(s.Frontends) == 0 || a.State == Nobody && !t.at.inside() {
				add(issue{services: []*Service{s}, state: a.State, severity: severityOf(a.State), text: a.Text, nodes: a.Nodes})
			}
		}
	}
	return out
}

// name is the frontend in a sentence.
func (f Frontend) name() string {
	switch a := f.key.address; {
	case a.Surrogate():
		return fmt.Sprintf("%s %d/%s", f.Type, a.Port, a.Protocol)
	default:
		return strings.TrimSuffix(f.Address, "/i")
	}
}

func (s *Service) name() string {
	switch {
	case s.Name == "":
		return "a frontend of no known Service"
	case s.pod:
		return "pod " + s.Namespace + "/" + s.Name
	}
	return s.Namespace + "/" + s.Name
}

// sentence names the Service, the client, the layer, the nodes, and what
// becomes of new connections.
func (t *tracer) sentence(i issue) string {
	names := make([]string, len(i.services))
	for k, one := range i.services {
		names[k] = one.name()
	}
	s := listed(names)
	if w := t.at.client.words(); w != "" {
		s += " " + w
	}
	nodes := onNodes(i.nodes, len(t.at.nodes))
	switch i.state {
	case Behind:
		s += fmt.Sprintf(": the %s is behind on %s: %s", i.layer, nodes, i.text)
		if i.layer == API {
			s = fmt.Sprintf("%s: %s", s, i.text)
		}
	case Nobody:
		s += ": " + i.text
		if len(i.nodes) < len(t.at.nodes) {
			s += " (" + nodes + ")"
		}
	case Unknown:
		s += fmt.Sprintf(": not known on %s: %s", nodes, i.text)
	case OK:
		return s + ": " + t.wellOn(i)
	case Stops:
		s += fmt.Sprintf(": stops on %s: %s", nodes, i.text)
	default:
		return s + ": " + i.text
	}
	if i.share != "" {
		s += "; " + i.share + " " + t.whence(i) + " " + i.outcome
	}
	return s
}

// whence says of which clients and frontends an issue of some nodes is true.
func (t *tracer) whence(i issue) string {
	to := "to " + listed(i.fronts)
	switch {
	case i.state == Nobody || i.state == Stops && len(i.nodes) == len(t.at.nodes):
		return to
	case t.at.only(anOutsider):
		return to + " that enter there"
	case i.inside || t.at.inside():
		return "from there " + to
	}
	return "from or through there " + to
}

// wellOn sums up what is OK.
func (t *tracer) wellOn(i issue) string {
	nodes := onNodes(i.nodes, len(t.at.nodes))
	agree, least, most := "", -1, 0
	for _, s := range i.services {
		for _, f := range s.Frontends {
			for _, g := range f.Groups {
				if g.State != OK {
					continue
				}
				words, rest, _ := strings.Cut(g.Text, ":")
				if agree = words; g.redirected && len(i.services) == 1 {
					return agree + " on " + nodes + ":" + rest
				}
				if n := g.serving; !g.redirected {
					least, most = min(max(least, n), n), max(most, n)
				}
			}
		}
	}
	s := fmt.Sprintf("%s on %s: %s behind %s", agree, nodes, spread(least, most), words.Count(len(i.fronts), "frontend"))
	if len(t.at.kinds) > 1 && slices.ContainsFunc(t.at.nodes, func(n *node) bool { return n.translates(aHost) == byProxy }) {
		s += ", for pods; the node itself and clients outside are kube-proxy's"
	}
	return s
}

// spread is a number of backends, or from how many to how many.
func spread(least, most int) string {
	if least < 0 || least == most {
		return words.Count(most, "backend")
	}
	return fmt.Sprintf("%d to %d backends", least, most)
}

// others adds in short what else there is to say.
func (t *tracer) others(worst issue, all []issue) string {
	bad, s := 0, ""
	for _, i := range all[1:] {
		switch {
		case i.rank() < (issue{state: OK}).rank():
			bad++
		case i.state == Stops && i.share != "" && worst.state == OK && s == "":
			s = fmt.Sprintf("; by design not to %s on %s: %s", listed(i.fronts), onNodes(i.nodes, len(t.at.nodes)), i.text)
		}
	}
	if bad > 0 {
		s += "; and " + words.Count(bad, "more problem") + " below"
	}
	return s
}
