package service

import (
	"fmt"
	"slices"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// protocol is the rule about TCP and UDP of one address and port.
var protocol = &diag.Rule{
	Name: "protocol", Severity: diag.Error, Settles: true,
	Title: "rows without a protocol serve the wrong backends, or none",
	Doc: `Up to 1.16 Cilium keeps frontends without their protocol: TCP and UDP on one address and port share one row. That is
no fault while both lead to the same backends, as with DNS; where they do not, one of the two is sent to the
other's backends.

From 1.17 on each protocol has its own row. The upgrade keeps the rows that are there, so as not to cut
connections: they serve both protocols until the Service is created anew, which is told as information. In some
releases such a row is left without backends once rows with a protocol stand beside it, and connections to it fail.`,
	Proof: []string{
		"kubectl kpr exec NODE -- cilium-dbg service list",
		"kubectl kpr exec NODE -- cilium-dbg bpf lb list",
	},
	Remedy: `For an empty row, upgrade to the newest patch release, or delete the Service and create it again: its addresses are
cut for that moment, so keep the LoadBalancer address fixed first. For a shared row, upgrade to 1.17 or later, or
give the two protocols two ports. A row that only lacks its protocol needs nothing.`,
}

// Protocol checks that each protocol of a frontend leads to its own backends.
func Protocol() *diag.Check {
	return ofNode(protocol.Name, "TCP and UDP of one address and port lead to their own backends", protocol, func(p *diag.Pass) error {
		v := p.View()
		ds, _ := fact.Behind.From(v)
		broken := map[lb.Name]bool{}
		for _, f := range perService(ds, func(d lb.Delta) bool { return claim(v, d) == protocol.Name }) {
			broken[f.service] = true
			message := fmt.Sprintf("%s: the row was kept without protocol through the upgrade and has no backend, while rows with a protocol stand beside it; connections to it fail", f.on())
			if !mixedProtocols(v, f.deltas[0]) {
				message = fmt.Sprintf("%s: this version keeps one row for all protocols of an address and port, and TCP and UDP should lead to different backends; one of them reaches the other's", f.on())
			}
			r := f.report(diag.Error, message, fact.EndpointSlices, fact.AgentFrontends)
			r.Address = ""
			p.Find(protocol, r)
		}
		tellKept(p, broken)
		return nil
	})
}

// tellKept informs of rows that only lack their protocol.
func tellKept(p *diag.Pass, broken map[lb.Name]bool) {
	v := p.View()
	have, err := fact.Held.From(v)
	if err != nil || !keepsProtocols(v, have) {
		return
	}
	want, _ := fact.Desired.From(v)
	kept := map[lb.Name][]string{}
	var order []lb.Name
	for _, r := range have.Rows {
		if r.Wildcard || r.Address.Protocol != lb.ANY || r.Expansion {
			continue
		}
		name := ownerOf(want, r)
		if len(kept[name]) == 0 {
			order = append(order, name)
		}
		kept[name] = append(kept[name], r.Address.String())
	}
	for _, name := range order {
		if name == (lb.Name{}) || broken[name] {
			continue
		}
		p.Find(protocol, diag.Report{
			Subject: "service/" + name.String(), Severity: diag.Info, Proof: []fact.Named{fact.AgentFrontends},
			Message: fmt.Sprintf("%s: kept without protocol since the upgrade to 1.17; it serves all protocols and goes away when the Service is created anew", listed(kept[name])),
		})
	}
}

// ownerOf is the Service of a row; maps and text lists tell none, the API does.
func ownerOf(want lb.Table, r lb.Row) lb.Name {
	if r.Service != (lb.Name{}) {
		return r.Service
	}
	for _, w := range atSocket(want, r.Address) {
		if r.Address.Protocol == lb.ANY || w.Address.Protocol == r.Address.Protocol {
			return w.Service
		}
	}
	return lb.Name{}
}

// atSocket gives the rows of all protocols of an IP, port and scope.
func atSocket(t lb.Table, a lb.Address) []lb.Row {
	var rows []lb.Row
	for _, p := range []lb.Protocol{lb.ANY, lb.SCTP, lb.TCP, lb.UDP} {
		a.Protocol = p
		if r, ok := t.Find(a); ok {
			rows = append(rows, r)
		}
	}
	return rows
}

// mixedProtocols holds for a frontend whose row was kept without protocol
// through the upgrade to 1.17 and is empty, while rows with a protocol stand
// beside it.
func mixedProtocols(v *fact.View, d lb.Delta) bool {
	have, err := fact.Held.From(v)
	if err != nil || d.Kind != lb.BackendMissing || !keepsProtocols(v, have) {
		return false
	}
	bare := d.Frontend
	bare.Protocol = lb.ANY
	r, ok := have.Find(bare)
	return ok && len(r.Entries) == 0 && !r.Wildcard
}

// sharedRow holds for the backends of a frontend that has to share its row with
// another protocol, which should lead elsewhere.
func sharedRow(v *fact.View, d lb.Delta) bool {
	want, err := fact.Desired.From(v)
	if err != nil || d.Kind != lb.BackendMissing && d.Kind != lb.BackendExtra {
		return false
	}
	have, err := fact.Held.From(v)
	if err != nil || keepsProtocols(v, have) {
		return false
	}
	rows := atSocket(want, d.Frontend)
	return len(rows) > 1 && slices.ContainsFunc(rows[1:], func(r lb.Row) bool { return !sameBackends(r, rows[0]) })
}

// sameBackends compares the backends that must be there, whatever the protocol.
func sameBackends(a, b lb.Row) bool {
	sockets := func(r lb.Row) []lb.Address {
		var out []lb.Address
		for _, e := range r.Entries {
			if e.Optional == "" {
				at := e.Address
				at.Protocol = lb.ANY
				out = append(out, at)
			}
		}
		slices.SortFunc(out, lb.Address.Compare)
		return out
	}
	return slices.Equal(sockets(a), sockets(b))
}

// keepsProtocols holds where the agent's rows have protocols, by its version or
// by a row that has one.
func keepsProtocols(v *fact.View, t lb.Table) bool {
	can, _ := fact.Capabilities.From(v)
	return can.ProtocolInRows == lb.Yes || can.ProtocolInRows == lb.Unknown &&
		slices.ContainsFunc(t.Rows, func(r lb.Row) bool { return !r.Wildcard && r.Address.Protocol != lb.ANY })
}
