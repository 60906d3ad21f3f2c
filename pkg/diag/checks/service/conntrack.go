package service

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// ctStale is the rule about connections that outlive their backend.
var ctStale = &diag.Rule{
	Name: "ct-stale", Severity: diag.Warning,
	Title: "connections are pinned to a backend that is no longer behind their frontend",
	Doc: `Where Cilium balances by packet, the connection tracking map keeps the backend that a connection was given. The
entry outlives the backend: its packets go on to be sent there, or are dropped with "Service backend not found". TCP
notices and dials again; UDP, such as DNS from one long-lived socket, goes on for as long as it sends.

A backend that several Services share stays in the backend map when it leaves one of them, so that nothing cleans up
the entries of that one. A client that takes the same source port again meets the old entry as well.

Netfilter, where kube-proxy translates, does the same on the host, and what it keeps outlives kube-proxy: a UDP flow that
never pauses goes on to an endpoint that left, or is cut when the rules go. A flow to a ClusterIP that nobody translates
stands there too, untranslated and unanswered.

Cilium's map can be huge and is not asked for on a running cluster; it is judged where a recording holds it. The host's UDP
flows are read with --host.`,
	Proof: []string{
		"kubectl kpr exec NODE -- cilium-dbg bpf ct list global",
		"kubectl kpr exec NODE -- cilium-dbg bpf lb list",
		"conntrack -L -p udp    # on the node",
	},
	Remedy: `Restart the clients that hold such sockets, or let them dial anew. The agent's garbage collection removes entries
once they expire; do not flush the map of a busy node, as that cuts every connection.`,
	Settles: true,
}

// CTStale checks that connections are pinned to backends that are there.
func CTStale() *diag.Check {
	return &diag.Check{
		Name: ctStale.Name, Doc: "connections are pinned to backends of their frontend",
		Scope: diag.OfNode, Rules: []*diag.Rule{ctStale},
		Needs: []fact.Named{fact.Conntrack},
		Wants: []fact.Named{fact.MapRows, fact.MapSlots, fact.MapsDump, fact.Asked},
		Applies: func(v *fact.View) string {
			if _, err := fact.Conntrack.From(v); errors.Is(err, source.ErrAbsent) {
				return "the connection tracking map was not recorded"
			}
			return ""
		},
		Run: judgeConnections,
	}
}

func judgeConnections(p *diag.Pass) error {
	v := p.View()
	connections, _ := fact.Conntrack.From(v)
	rows, rowErr := fact.MapRows.From(v)
	dump, dumpErr := fact.MapsDump.From(v)
	if rowErr != nil && dumpErr != nil {
		p.Unknown(fact.MapRows.ID(), rowErr)
		return nil
	}
	slots, _ := fact.MapSlots.From(v)
	want, _ := fact.Asked.From(v)
	b := newBalance(rows, slots, dump)
	type pin struct {
		frontend lb.Address
		backend  string
	}
	clients := map[pin]map[netip.AddrPort]bool{}
	var order []pin
	for _, c := range connections {
		frontend, backend, stale := b.judge(c)
		if !stale {
			continue
		}
		k := pin{frontend, backend}
		if clients[k] == nil {
			clients[k] = map[netip.AddrPort]bool{}
			order = append(order, k)
		}
		clients[k][c.From] = true
	}
	for _, k := range order {
		// The entry of the Service and the one behind it are one connection;
		// the latter knows the address.
		for _, o := range order {
			if k.backend == "" && o.backend != "" && o.frontend == k.frontend {
				maps.DeleteFunc(clients[k], func(from netip.AddrPort, _ bool) bool { return clients[o][from] })
			}
		}
		if len(clients[k]) == 0 {
			continue
		}
		fate := "pinned to " + k.backend + ", which is no longer behind it: what they send still goes there"
		if k.backend == "" {
			fate = "pinned to a backend that is in no map any more: what they send is dropped (Service backend not found)"
		}
		f := fault{service: ownerOf(want, lb.Row{Address: k.frontend}), what: k.frontend, deltas: []lb.Delta{{Frontend: k.frontend}}}
		r := f.report(diag.Warning, fmt.Sprintf("connections to %s (%d) are %s", k.frontend, len(clients[k]), fate), fact.Conntrack, fact.MapRows)
		r.Address = k.frontend.String() + ">" + k.backend
		p.Find(ctStale, r)
	}
	return nil
}

// balance is a node's map, ready to be asked by the ids that connections hold.
type balance struct {
	frontends map[int]lb.Address // by reverse NAT id
	backends  map[lb.Address]map[netip.AddrPort]bool
	ids       map[int]netip.AddrPort // nil where no ids were read
}

func newBalance(rows []lb.MapRow, slots []lb.SlotRow, dump lb.Dump) balance {
	b := balance{frontends: map[int]lb.Address{}, backends: map[lb.Address]map[netip.AddrPort]bool{}}
	name := func(id int, at netip.AddrPort) {
		if b.ids == nil {
			b.ids = map[int]netip.AddrPort{}
		}
		b.ids[id] = at
	}
	for _, e := range dump.Backends {
		name(e.ID, netip.AddrPortFrom(e.Address.IP, e.Address.Port))
	}
	for _, r := range dump.Rows {
		b.add(r.Frontend, r.ID, b.ids[r.Backend])
	}
	for _, r := range rows {
		at := netip.AddrPortFrom(r.Backend.IP, r.Backend.Port)
		b.add(r.Frontend, r.RevNAT, at)
		if !at.IsValid() || r.Slot < 1 {
			continue
		}
		i, ok := slices.BinarySearchFunc(slots, r, func(s lb.SlotRow, r lb.MapRow) int {
			if c := s.Frontend.Compare(r.Frontend); c != 0 {
				return c
			}
			return s.Slot - r.Slot
		})
		if ok {
			name(slots[i].Value, at)
		}
	}
	return b
}

func (b balance) add(frontend lb.Address, id int, backend netip.AddrPort) {
	if id > 0 {
		b.frontends[id] = frontend
	}
	if b.backends[frontend] == nil {
		b.backends[frontend] = map[netip.AddrPort]bool{}
	}
	if backend.IsValid() {
		b.backends[frontend][backend] = true
	}
}

// judge finds the frontend of a connection and whether its backend has left
// it. The backend is "" where no map knows it any more.
func (b balance) judge(c lb.Connection) (frontend lb.Address, backend string, stale bool) {
	protocol, err := lb.ParseProtocol(c.Protocol)
	if err != nil || c.Related || c.Closing || c.RevNAT == 0 {
		return frontend, "", false
	}
	frontend, ok := b.frontends[c.RevNAT]
	if !ok || frontend.Protocol != lb.ANY && frontend.Protocol != protocol {
		return frontend, "", false // the Service is gone, and its entries go with it
	}
	switch c.Direction {
	case lb.Outward:
		return frontend, c.To.String(), !b.backends[frontend][c.To]
	case lb.ServiceEntry:
		if c.To != netip.AddrPortFrom(frontend.IP, frontend.Port) || c.Backend == 0 || b.ids == nil {
			return frontend, "", false
		}
		at, ok := b.ids[c.Backend]
		if !ok {
			return frontend, "", true
		}
		return frontend, at.String(), !b.backends[frontend][at]
	}
	return frontend, "", false
}
