package trace

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// paths says how each kind of client gets to a backend over this frontend;
// kinds that go the same way are one.
func (t *tracer) paths(i instance, key front, j judgement) []Path {
	out := []Path{}
	var clients [][]string
	labels := map[kind]string{aPod: "pods of the node", aHost: "the node itself", anOutsider: "outside"}
	for _, k := range t.at.kinds {
		if len(t.at.kinds) > 1 && !i.meets(k, key) {
			continue
		}
		hops := i.hops(k, key, j)
		at := slices.IndexFunc(out, func(p Path) bool { return slices.Equal(p.Hops, hops) })
		if at < 0 {
			at = len(out)
			out, clients = append(out, Path{Hops: hops}), append(clients, nil)
		}
		clients[at] = append(clients[at], labels[k])
		if out[at].Client = "from " + listed(clients[at]); len(t.at.kinds) == 1 {
			out[at].Client = t.at.client.words()
		}
	}
	return out
}

// meets holds for the clients whose connections are looked up in this row.
func (i instance) meets(k kind, key front) bool {
	switch {
	case k == anOutsider && key.address.Scope == lb.Internal, k != anOutsider && key.address.Scope == lb.External && i.twoScopes():
		return false
	case !key.address.Surrogate():
		return true
	}
	how := i.translates(k)
	packets := how == byDevice || how == byPacket
	return key.onNodes == packets || how == howUnknown || how == byProxy
}

// twoScopes holds where clients in the cluster have a row of their own.
func (i instance) twoScopes() bool {
	twin := i.address
	twin.Scope = lb.Internal
	if i.kernelErr == nil {
		return rowAt(i.node.kernel, twin) != nil
	}
	if i.agentErr == nil {
		return rowAt(i.node.agent, twin) != nil
	}
	r := rowAt(i.node.desired, twin)
	return r != nil && r.Optional == ""
}

func (i instance) hops(k kind, key front, j judgement) []Hop {
	how := i.translates(k)
	if how == byProxy || how == byNobody {
		_, text := i.otherwise("Cilium does not translate here")
		return []Hop{{"client", text}}
	}
	if k == anOutsider {
		if stop, ok := i.stopsOutside(); ok {
			return []Hop{{"frontend", stop.text}}
		}
	}
	if i.guarded(k) {
		return []Hop{{"client", guard}}
	}
	hops := []Hop{{"client", i.clientWords(how)}, {"frontend", i.rowWords(k, key)}}
	switch j.state {
	case Nobody, Stops:
		return append(hops, Hop{"choice", "ends: no backend"})
	case Unknown:
		if i.serving() == 0 {
			return append(hops, Hop{"choice", "not known: " + j.text})
		}
	}
	hops = append(hops, Hop{"choice", i.choiceWords(how)})
	if s := i.affinityWords(how); s != "" {
		hops = append(hops, Hop{"affinity", s})
	}
	if s := i.sourceWords(); s != "" && k == anOutsider && !i.redirected() {
		hops = append(hops, Hop{"source", s})
	}
	if s := i.replyWords(how); s != "" {
		hops = append(hops, Hop{"reply", s})
	}
	return hops
}

func (i instance) udp() bool { return i.address.Protocol == lb.UDP }

func (i instance) clientWords(how how) string {
	switch {
	case how == bySocketLB && i.udp():
		return "socket LB rewrites the address when the socket sends"
	case how == bySocketLB:
		return "socket LB rewrites the address at connect"
	case how == byPacket:
		return "the packet is translated where it leaves the pod"
	case how == byDevice:
		s := "the packet is translated where it enters the node"
		var devices []string
		if i.status != nil {
			for _, d := range i.status.Devices {
				devices = append(devices, d.Name)
			}
			if len(devices) > 0 {
				s += ", at " + listed(devices)
			}
			if x := strings.ToLower(i.status.XDP); x != "" && x != "disabled" && x != "none" {
				s += " by XDP (" + x + ")"
			}
		}
		return s
	}
	return "how it is translated is not known"
}

// PlainRow is the text of a hop over a frontend's only row, with nothing to say
// of it.
const PlainRow = "row of the frontend"

func (i instance) rowWords(k kind, key front) string {
	s := PlainRow
	if i.twoScopes() || key.address.Scope == lb.Internal {
		s = "internal " + s
		if k == anOutsider {
			s = "external " + strings.TrimPrefix(s, "internal ")
		}
	}
	for _, r := range []*lb.Row{i.kernel, i.agent, i.desired} {
		if k == anOutsider && r != nil && r.Flags.SourceCheck == lb.Yes {
			return s + ", " + rangeWords(i)
		}
	}
	return s
}

func rangeWords(i instance) string {
	for _, r := range []*lb.Row{i.kernel, i.desired} {
		if r != nil && r.Flags.RangesTold {
			var words []string
			for _, p := range r.Flags.Ranges {
				words = append(words, p.String())
			}
			if len(words) == 0 {
				return "for no source address of this family"
			}
			return "for sources in " + listed(words) + " only"
		}
	}
	return "for allowed source ranges only"
}

func (i instance) choiceWords(how how) string {
	for _, r := range []*lb.Row{i.kernel, i.agent, i.desired} {
		switch {
		case r == nil:
		case r.Redirect == lb.L7Redirect && r.ProxyPort > 0:
			return fmt.Sprintf("the node's Envoy on port %d", r.ProxyPort)
		case r.Redirect == lb.L7Redirect:
			return "the node's Envoy"
		case r.Redirect == lb.LocalRedirect:
			return "the pod of a local redirect policy"
		}
	}
	n := i.serving()
	switch {
	case n == 0:
		return "no backend"
	case n == 1:
		return "the only backend"
	case how == byDevice && i.status != nil && i.status.Algorithm == "Maglev":
		return fmt.Sprintf("one of %d backends by Maglev", n)
	case how == byDevice && i.status != nil && i.status.Algorithm == "":
		return fmt.Sprintf("one of %d backends", n)
	}
	return fmt.Sprintf("one of %d backends at random", n)
}

// affinityWords: socket LB tells clients apart by network namespace, packets by
// source address.
func (i instance) affinityWords(how how) string {
	for _, r := range []*lb.Row{i.kernel, i.agent, i.desired} {
		if r == nil || r.Flags.Affinity != lb.Yes {
			continue
		}
		s := "the same one for the same source address"
		if how == bySocketLB {
			s = "the same one for the same pod"
		}
		for _, q := range []*lb.Row{i.kernel, i.desired} {
			if q != nil && q.Flags.AffinityTimeout > 0 {
				return fmt.Sprintf("%s, until %d s without use", s, q.Flags.AffinityTimeout)
			}
		}
		return s
	}
	return ""
}

// direct tells whether the backend's node answers the client by itself; Hybrid
// does so for TCP.
func (i instance) direct() lb.Answer {
	if i.status == nil {
		return lb.Unknown
	}
	switch i.status.LBMode {
	case "DSR":
		return lb.Yes
	case "Hybrid":
		return lb.AnswerOf(i.address.Protocol == lb.TCP)
	case "SNAT":
		return lb.No
	}
	return lb.Unknown
}

func (i instance) sourceWords() string {
	switch {
	case i.local():
		return "the client's address is kept (externalTrafficPolicy Local)"
	case i.direct() == lb.Yes:
		return "the client's address is kept (DSR)"
	case i.direct() == lb.No:
		return "for a backend on another node the source becomes this node's address (SNAT)"
	}
	return ""
}

func (i instance) local() bool {
	for _, r := range []*lb.Row{i.desired, i.kernel, i.agent} {
		if r != nil && r.Flags.External != "" && r.Type != "ClusterIP" {
			return r.Flags.External == lb.Local
		}
	}
	return false
}

func (i instance) replyWords(how how) string {
	switch {
	case how == bySocketLB && i.udp():
		return "replies get the frontend's address back when the socket receives"
	case how == bySocketLB:
		return "replies come straight back"
	case how == byPacket:
		return "replies are translated back at the pod"
	case how == byDevice && !i.local() && i.direct() == lb.Yes:
		return "the backend's node answers the client itself"
	case how == byDevice:
		return "replies go back through this node"
	}
	return ""
}
