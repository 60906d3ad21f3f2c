package lb

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// unmatched is a backend that one side has and the other has not.
type unmatched struct {
	row   *Row
	entry *Entry
}

// pair compares the backends and flags of rows that speak of the same. There
// is one on each side but for rows without protocol, which stand for several.
func (d *differ) pair(xs, ys []*Row) {
	missing, lostA := d.unmatched(xs, ys, true)
	extra, lostB := d.unmatched(ys, xs, false)
	before := len(d.out)
	if n := min(len(lostA), len(lostB)); n > 0 {
		lostA, lostB = lostA[n:], lostB[n:]
	}
	switch {
	case len(lostB) > 0:
		d.lost = append(d.lost, lostRows{inB: true, ids: lostB, other: ys[0], candidates: missing})
		d.backends(BackendExtra, extra, xs)
	case len(lostA) > 0:
		d.lost = append(d.lost, lostRows{ids: lostA, other: xs[0], candidates: extra})
		d.backends(BackendMissing, missing, ys)
	default:
		d.backends(BackendMissing, missing, ys)
		d.backends(BackendExtra, extra, xs)
	}
	whole := len(missing)+len(extra)+len(lostA)+len(lostB) == 0
	d.flags(xs[0], ys[0])
	if whole && len(d.out) == before && len(xs) == 1 && len(ys) == 1 {
		d.counts(xs[0], ys[0])
	}
}

// unmatched finds the backends of rows that none of the others has, and the
// ids of those that are lost. While it is at it for side a, it compares states.
func (d *differ) unmatched(rows, others []*Row, states bool) (out []unmatched, lost []int) {
	for _, r := range rows {
		aligned := len(others) == 1 && len(others[0].Entries) == len(r.Entries)
		for i := range r.Entries {
			e := &r.Entries[i]
			if e.Lost {
				lost = append(lost, e.ID)
				continue
			}
			var o *Row
			var f *Entry
			if aligned && others[0].Entries[i].Address == e.Address && !others[0].Entries[i].Lost {
				o, f = others[0], &others[0].Entries[i]
			} else {
				o, f = findIn(others, e.Address)
			}
			switch {
			case f == nil:
				out = append(out, unmatched{r, e})
			case states:
				d.states(r, o, e, f)
			}
		}
	}
	return out, lost
}

// findIn looks for a backend of the address; a protocol that one side does not
// tell fits any.
func findIn(rows []*Row, a Address) (*Row, *Entry) {
	var loose *Entry
	var of *Row
	for _, r := range rows {
		i, _ := slices.BinarySearchFunc(r.Entries, a, func(e Entry, a Address) int {
			return cmp.Or(e.Address.IP.Compare(a.IP), cmp.Compare(e.Address.Port, a.Port))
		})
		for ; i < len(r.Entries) && r.Entries[i].Address.IP == a.IP && r.Entries[i].Address.Port == a.Port; i++ {
			e := &r.Entries[i]
			if e.Address.Protocol == a.Protocol {
				return r, e
			}
			if e.Address.Protocol == ANY || a.Protocol == ANY {
				loose, of = e, r
			}
		}
	}
	return of, loose
}

func (d *differ) backends(kind Kind, us []unmatched, others []*Row) {
	for _, u := range us {
		d.add(d.backend(kind, u, others[0]))
	}
}

// backend is the delta of one backend that the other side lacks.
func (d *differ) backend(kind Kind, u unmatched, o *Row) Delta {
	inA := kind == BackendMissing
	x, y := u.row, o
	if !inA {
		x, y = y, x
	}
	r := d.delta(kind, x, y)
	r.Frontend, r.Backend = specific(u.row.Address, o.Address), u.entry.Address
	if inA {
		r.A = string(u.entry.State)
	} else {
		r.B = string(u.entry.State)
	}
	r.Expected = d.whyApart(u, o, inA)
	return r
}

// whyApart explains that a backend stands on one side only.
func (d *differ) whyApart(u unmatched, o *Row, inA bool) string {
	mine, other := d.a, d.b
	if !inA {
		mine, other = other, mine
	}
	desired := mine.Layer == Desired || other.Layer == Desired
	switch {
	case u.entry.Optional != "":
		return u.entry.Optional
	case mine.Layer == other.Layer:
		return ""
	case u.row.Redirect == L7Redirect || o.Redirect == L7Redirect:
		return "the node's Envoy answers in place of the backends"
	case desired && (u.row.Redirect == LocalRedirect || o.Redirect == LocalRedirect):
		return "a local redirect policy answers in place of the backends"
	case mine.Layer == Agent && other.Layer == Kernel && u.entry.State == Maintenance:
		return "backends in maintenance are kept out of the map"
	case other.Layer == Desired && o.Global && !other.owns(u.entry.Address.IP):
		return "the Service is global: a backend of another cluster"
	}
	return ""
}

// owns holds for addresses in a pod range of this cluster.
func (s side) owns(ip netip.Addr) bool {
	return slices.ContainsFunc(s.prefixes, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// states compares what both sides say of a backend.
func (d *differ) states(x, y *Row, e, f *Entry) {
	if d.options.OmitStates || e.State == f.State || e.State == "" || f.State == "" {
		return
	}
	desired := d.a.Layer == Desired || d.b.Layer == Desired
	if desired && draining(e.State) && draining(f.State) {
		// Up to 1.18 there is no state of its own for those that no longer
		// serve; 1.11 and 1.12 said quarantined for some that leave.
		return
	}
	r := d.delta(StateDiffers, x, y)
	r.Backend, r.A, r.B = specific(e.Address, f.Address), string(e.State), string(f.State)
	if r.Expected = ""; desired && d.a.Layer != d.b.Layer && (x.Redirect != Direct || y.Redirect != Direct) {
		r.Expected = "another answers in place of the backends"
	}
	d.add(r)
}

func draining(s State) bool {
	return s == Terminating || s == TerminatingNotServing || s == Quarantined
}

// counts compares the number of active backends where the map has no states.
func (d *differ) counts(x, y *Row) {
	if d.options.OmitStates || x.Redirect != Direct || y.Redirect != Direct {
		return
	}
	k, g, inA := y, x, true
	switch {
	case d.a.Layer == Agent && d.b.Layer == Kernel:
	case d.a.Layer == Kernel && d.b.Layer == Agent:
		k, g, inA = x, y, false
	default:
		return
	}
	told := func(e Entry) bool { return e.State != "" }
	if k.Counts.Active < 0 || slices.ContainsFunc(k.Entries, told) {
		return
	}
	active, leaving := 0, 0
	for _, e := range g.Entries {
		switch e.State {
		case "":
			return
		case Active:
			active++
		case Terminating:
			leaving++
		}
	}
	// With none active, those that terminate count as active; old versions
	// do not do that.
	if k.Counts.Active == active || active == 0 && k.Counts.Active == leaving {
		return
	}
	r := d.delta(CountDiffers, x, y)
	r.A, r.B, r.Detail = strconv.Itoa(active), strconv.Itoa(k.Counts.Active), "active backends"
	if !inA {
		r.A, r.B = r.B, r.A
	}
	d.add(r)
}

func spell(ps []netip.Prefix) string {
	words := make([]string, len(ps))
	for i, p := range ps {
		words[i] = p.String()
	}
	return strings.Join(words, " ")
}
