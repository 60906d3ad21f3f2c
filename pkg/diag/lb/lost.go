package lb

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// lostRows is a frontend whose map rows point at backends that are gone, with
// the backends that the other side has and this one lacks: the lost ones are
// among these.
type lostRows struct {
	inB        bool // the map is side b
	ids        []int
	other      *Row // the row with the lost ids
	candidates []unmatched
}

// resolveLost finds out which address a lost id had. Ids are one node's own,
// so the map alone cannot tell; but an id stands for one address in all rows
// of a node, so that the frontends together often leave one choice. Where they
// leave several, the lost ids of a frontend and the backends it lacks are the
// same set all the same.
func (d *differ) resolveLost() {
	choices := d.choices()
	known := map[lostID]Address{}
	for again := true; again; {
		again = false
		for _, id := range slices.SortedFunc(maps.Keys(choices), lostID.compare) {
			as := choices[id]
			if _, ok := known[id]; ok || len(as) != 1 {
				continue
			}
			for a := range as {
				known[id] = a
			}
			again = true
			for other, rest := range choices {
				if other != id && other.inB == id.inB {
					delete(rest, known[id])
				}
			}
		}
	}
	for _, l := range d.lost {
		d.reportLost(l, known)
	}
}

type lostID struct {
	inB bool
	id  int
}

func (l lostID) compare(o lostID) int {
	if l.inB != o.inB {
		if l.inB {
			return 1
		}
		return -1
	}
	return cmp.Compare(l.id, o.id)
}

// choices are the addresses that each lost id may have had: those that every
// frontend with the id lacks. Backends that may be absent count only where no
// other is.
func (d *differ) choices() map[lostID]map[Address]bool {
	all := map[lostID]map[Address]bool{}
	for _, l := range d.lost {
		here := map[Address]bool{}
		for _, u := range l.required() {
			here[u.entry.Address] = true
		}
		for _, id := range l.ids {
			k := lostID{l.inB, id}
			if all[k] == nil {
				all[k] = maps.Clone(here)
				continue
			}
			maps.DeleteFunc(all[k], func(a Address, _ bool) bool { return !here[a] })
		}
	}
	return all
}

func (l lostRows) required() []unmatched {
	must := slices.DeleteFunc(slices.Clone(l.candidates), func(u unmatched) bool { return u.entry.Optional != "" })
	if len(must) == 0 {
		return l.candidates
	}
	return must
}

// reportLost names each lost id of a frontend with its address as far as it
// can be told, and the backends that are missing besides.
func (d *differ) reportLost(l lostRows, known map[lostID]Address) {
	kind := BackendExtra
	if l.inB {
		kind = BackendMissing
	}
	rest := slices.Clone(l.candidates)
	take := func(fits func(unmatched) bool) (unmatched, bool) {
		i := slices.IndexFunc(rest, fits)
		if i < 0 {
			return unmatched{}, false
		}
		u := rest[i]
		rest = slices.Delete(rest, i, i+1)
		return u, true
	}
	var unnamed []int
	for _, id := range l.ids {
		a, ok := known[lostID{l.inB, id}]
		u, fits := take(func(u unmatched) bool { return ok && u.entry.Address == a })
		if !fits {
			unnamed = append(unnamed, id)
			continue
		}
		d.addLost(d.backend(kind, u, l.other), id, l.inB)
	}
	for _, id := range unnamed {
		u, ok := take(func(u unmatched) bool { return u.entry.Optional == "" })
		if !ok {
			u, ok = take(func(unmatched) bool { return true })
		}
		if ok {
			d.addLost(d.backend(kind, u, l.other), id, l.inB)
			continue
		}
		d.addLost(d.delta(kind, l.other, nil), id, l.inB)
	}
	for _, u := range rest {
		d.add(d.backend(kind, u, l.other))
	}
}

func (d *differ) addLost(r Delta, id int, inB bool) {
	r.Kind, r.Expected, r.Detail = BackendLost, "", fmt.Sprintf("backend %d not found", id)
	if inB {
		r.B = r.Detail
	} else {
		r.A = r.Detail
	}
	d.add(r)
}
