package trace

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/internal/words"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// judgement is what becomes of connections to one frontend on one node.
type judgement struct {
	state          State
	layer          Layer
	severity       string // "" for that of the state
	text           string
	share, outcome string
}

func (t *tracer) group(i instance, key front) Group {
	j, stops := t.stopsAt(i)
	if !stops {
		j = i.judge(t.at)
	}
	if j.severity == "" {
		j.severity = map[State]string{Behind: "error", Nobody: "error", Unknown: "warning"}[j.state]
	}
	g := Group{
		State: j.state, Severity: cmp.Or(j.severity, "info"), Layer: j.layer, Text: j.text, Share: j.share, Outcome: j.outcome,
		serving: i.serving(), redirected: i.redirected(),
		Notes: i.notes(), Paths: t.paths(i, key, j), Backends: t.backends(i),
		Layers: Layers{
			API:    presence(i.desired, i.desiredErr),
			Agent:  presence(i.agent, i.agentErr),
			Kernel: presence(i.kernel, i.kernelErr),
		},
	}
	if d := i.desired; j.state == Stops && d != nil && d.Cause == lb.NoneLocal && strings.HasPrefix(d.Reason, "external") {
		if o := t.services[d.Service]; o != nil && o.Spec.HealthCheckNodePort > 0 {
			g.Text += fmt.Sprintf("; a balancer learns it from healthCheckNodePort %d", o.Spec.HealthCheckNodePort)
		}
	}
	if stops { // what the layers hold makes no difference to this client
		g.Notes, g.Backends = nil, []Backend{}
	}
	return g
}

func presence(r *lb.Row, err error) string {
	switch {
	case err != nil:
		return Unread
	case r == nil:
		return Missing
	case r.Optional != "":
		return MayLack
	}
	return Present
}

// judge weighs the layers, from what breaks connections down to what is well.
func (i instance) judge(at place) judgement {
	if i.agentErr != nil && i.kernelErr != nil {
		if j, ok := i.nobody(at); ok && j.layer == API {
			return j // whatever the node holds, nobody is there to serve
		}
		return judgement{state: Unknown, text: i.unseen()}
	}
	if j, ok := i.differs(at); ok {
		return j
	}
	if i.desired != nil && i.desired.Optional != "" && i.agent == nil && i.kernel == nil {
		return i.unserved()
	}
	if j, ok := i.nobody(at); ok {
		return j
	}
	var unread []string
	for _, l := range []struct {
		name string
		err  error
	}{{"the API", i.desiredErr}, {"the map", i.kernelErr}} {
		if l.err != nil {
			unread = append(unread, l.name+" was not read ("+i.reason(l.err)+")")
		}
	}
	if len(unread) > 0 {
		return judgement{state: Unknown, text: strings.Join(unread, "; ") + i.agreeing()}
	}
	return judgement{state: OK, text: i.well()}
}

// unserved judges a frontend that need not be there and is not.
func (i instance) unserved() judgement {
	switch i.serves(i.desired.Type) {
	case lb.No:
		state, text := i.otherwise(i.desired.Optional)
		return judgement{state: state, text: text}
	case lb.Unknown:
		return judgement{state: Unknown, text: i.desired.Optional}
	}
	return judgement{state: Excluded, text: i.desired.Optional}
}

// agreeing names the layers that were read and agree.
func (i instance) agreeing() string {
	switch {
	case i.desiredErr == nil && i.agentErr == nil:
		return "; API and agent agree"
	case i.agentErr == nil && i.kernelErr == nil:
		return "; agent and map agree"
	}
	return ""
}

// unseen says why nothing of the node is known.
func (i instance) unseen() string {
	switch {
	case i.life.Life == fact.Down:
		return "the agent is down (" + i.life.Reason + "); the map stays as it was and cannot be read"
	case errors.Is(i.agentErr, source.ErrAbsent):
		return "neither the agent's view nor the map was read: " + i.reason(i.kernelErr)
	}
	return "neither the agent's view nor the map was read: " + i.reason(i.agentErr)
}

// nobody holds where no layer has a backend, and says why the API has none.
func (i instance) nobody(at place) (judgement, bool) {
	if i.redirected() || i.serving() > 0 {
		return judgement{}, false
	}
	all := judgement{share: "all new connections", outcome: "fail"}
	d := i.desired
	switch {
	case d == nil && i.desiredErr != nil:
		return judgement{}, false
	case d == nil:
		all.state, all.layer, all.text = Nobody, API, "no Service asks for this frontend, and it has no backend"
		return all, true
	case d.Required() || d.Cause == lb.Contended:
		return judgement{}, false
	case d.Cause == lb.NoneLocal:
		all.state, all.text, all.outcome = Stops, d.Reason+": connections are dropped on purpose", "are dropped"
		return all, true
	}
	all.state, all.layer, all.text = Nobody, API, "the API has nobody behind it: "+cmp.Or(d.Reason, "no endpoint is usable")
	if d.Cause == lb.NoneLocal {
		all.layer = ""
	}
	if at.inside() && i.translates(at.kinds[0]) == bySocketLB {
		all.outcome = `fail at once ("no route to host")`
	}
	return all, true
}

// redirected holds where another answers in place of the backends.
func (i instance) redirected() bool {
	for _, r := range []*lb.Row{i.desired, i.agent, i.kernel} {
		if r != nil && r.Redirect != lb.Direct {
			return true
		}
	}
	return false
}

// serving counts the backends that new connections reach, in the lowest layer
// that was read.
func (i instance) serving() int {
	switch {
	case i.kernel != nil:
		return slots(i.kernel)
	case i.kernelErr != nil && i.agent != nil:
		return usable(i.agent)
	case i.kernelErr != nil && i.agentErr != nil && i.desired != nil:
		return usable(i.desired)
	}
	return 0
}

// slots are the rows that take new connections: the count of slot 0, or all.
func slots(r *lb.Row) int {
	if r.Counts.Active > 0 {
		return min(r.Counts.Active, len(r.Entries))
	}
	return len(r.Entries)
}

// usable are backends that take new connections: active ones, and those that
// terminate where there is no other.
func usable(r *lb.Row) int {
	active, leaving := 0, 0
	for _, e := range r.Entries {
		switch e.State {
		case lb.Active, "":
			active++
		case lb.Terminating:
			leaving++
		}
	}
	if active == 0 {
		return leaving
	}
	return active
}

// well is the sentence about layers that agree.
func (i instance) well() string {
	var who []string
	if i.desiredErr == nil {
		who = append(who, "API")
	}
	if i.agentErr == nil {
		who = append(who, "agent")
	}
	if i.kernelErr == nil {
		who = append(who, "kernel")
	}
	s := listed(who) + " agree"
	for _, r := range []*lb.Row{i.kernel, i.agent, i.desired} {
		if r == nil {
			continue
		}
		switch {
		case r.Redirect == lb.L7Redirect && r.ProxyPort > 0:
			return fmt.Sprintf("%s: the node's Envoy answers, on proxy port %d; no backends is right here", s, r.ProxyPort)
		case r.Redirect == lb.L7Redirect:
			return s + ": the node's Envoy answers; no backends is right here"
		case r.Redirect == lb.LocalRedirect:
			return s + ": a local redirect policy's pod answers"
		}
	}
	s += ": " + words.Count(i.serving(), "backend")
	if i.desired != nil {
		switch i.desired.Cause {
		case lb.AllDraining, lb.Topology, lb.TopologyUnmet, lb.Contended:
			s += "; " + i.desired.Reason
		}
	}
	return s
}

// notes explains what differs and is as it should be.
func (i instance) notes() []string {
	var notes []string
	for _, d := range slices.Concat(i.behind, i.unwritten) {
		if d.Expected == "" {
			continue
		}
		s := d.Expected
		if d.Backend.IP.IsValid() {
			s = bare(d.Backend) + ": " + s
		}
		notes = append(notes, s)
	}
	return uniq(notes)
}
