package trace

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// bare is a backend's address without the protocol, which is the frontend's.
func bare(a lb.Address) string { return netip.AddrPortFrom(a.IP, a.Port).String() }

// backends joins the three layers by address.
func (t *tracer) backends(i instance) []Backend {
	cells := cells{tracer: t, at: map[netip.AddrPort]*Backend{}}
	each := func(r *lb.Row, set func(*Backend, lb.Entry)) {
		if r == nil {
			return
		}
		for _, e := range r.Entries {
			if !e.Lost {
				set(cells.of(e.Address, e), e)
			}
		}
	}
	word := func(e lb.Entry) string { return cmp.Or(string(e.State), Present) }
	each(i.desired, func(b *Backend, e lb.Entry) { b.API, b.Note = word(e), e.Optional })
	each(i.agent, func(b *Backend, e lb.Entry) { b.Agent = word(e) })
	each(i.kernel, func(b *Backend, e lb.Entry) { b.Kernel = word(e) })
	cells.blame(i.behind, i.layerBelowAPI())
	cells.blame(i.unwritten, Kernel)

	out := cells.sorted()
	for k := range out {
		b := &out[k]
		for _, cell := range []struct {
			word *string
			err  error
		}{{&b.API, i.desiredErr}, {&b.Agent, i.agentErr}, {&b.Kernel, i.kernelErr}} {
			if cell.err != nil {
				*cell.word = Unread
			}
		}
	}
	return append(out, cells.nameless...)
}

// layerBelowAPI is the layer that the API was compared with: the map where the
// agent's view was not read.
func (i instance) layerBelowAPI() Layer {
	if i.agentErr != nil {
		return Kernel
	}
	return Agent
}

// cells are the backends of one instance while they are gathered.
type cells struct {
	*tracer
	at       map[netip.AddrPort]*Backend
	nameless []Backend // lost ones whose address is not known
}

func (c *cells) of(a lb.Address, e lb.Entry) *Backend {
	at := netip.AddrPortFrom(a.IP, a.Port)
	b := c.at[at]
	if b == nil {
		b = &Backend{Address: at.String(), API: Missing, Agent: Missing, Kernel: Missing}
		c.at[at] = b
		if p, ok := c.pods[a.IP]; ok {
			b.Pod, b.Node = p.name.Name, p.node
		}
		b.Node = cmp.Or(b.Node, c.nodeOf[a.IP])
	}
	b.Node, b.Zone = cmp.Or(b.Node, e.Node), cmp.Or(b.Zone, e.Zone)
	return b
}

// blame marks the backends that differences are about.
func (c *cells) blame(ds []lb.Delta, layer Layer) {
	for _, d := range ds {
		switch {
		case d.Expected != "":
			if b := c.at[netip.AddrPortFrom(d.Backend.IP, d.Backend.Port)]; b != nil {
				b.Note = cmp.Or(b.Note, d.Expected)
			}
		case d.Kind == lb.BackendLost && !d.Backend.IP.IsValid():
			c.nameless = append(c.nameless, Backend{API: Missing, Agent: Missing, Kernel: LostWord, Behind: layer, Note: d.Detail})
		case d.Backend.IP.IsValid():
			b := c.of(d.Backend, lb.Entry{})
			if b.Behind = layer; d.Kind == lb.BackendLost {
				b.Kernel, b.Note = LostWord, d.Detail
			}
		}
	}
}

func (c *cells) sorted() []Backend {
	out := make([]Backend, 0, len(c.at)+len(c.nameless))
	order := make([]netip.AddrPort, 0, len(c.at))
	for at := range c.at {
		order = append(order, at)
	}
	slices.SortFunc(order, netip.AddrPort.Compare)
	for _, at := range order {
		out = append(out, *c.at[at])
	}
	return out
}

// names lists the backends of deltas, with those that have no address by their id.
func names(ds []lb.Delta) string {
	var words []string
	for _, d := range ds {
		switch {
		case !d.Backend.IP.IsValid():
			words = append(words, d.Detail)
		case d.Kind == lb.BackendLost:
			words = append(words, bare(d.Backend)+", "+d.Detail)
		default:
			words = append(words, bare(d.Backend))
		}
	}
	return strings.TrimSpace(listed(uniq(words)))
}
