package lb

import (
	"crypto/sha256"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Pool makes equal tables one value, and the equal backends of different
// tables too, so that memory follows what differs and not the number of nodes.
// The zero Pool is ready; it may be used by several goroutines.
type Pool struct {
	mu      sync.Mutex
	tables  map[[32]byte]Table
	entries map[[32]byte][]Entry
}

// Intern gives the first table with t's sum that the pool has seen, which may
// be t, and the sum.
func (p *Pool) Intern(t Table) (Table, [32]byte) {
	sum := t.Sum()
	p.mu.Lock()
	defer p.mu.Unlock()
	if known, ok := p.tables[sum]; ok {
		return known, sum
	}
	if p.tables == nil {
		p.tables, p.entries = map[[32]byte]Table{}, map[[32]byte][]Entry{}
	}
	t.Rows = slices.Clone(t.Rows)
	for i := range t.Rows {
		r := &t.Rows[i]
		if len(r.Entries) == 0 {
			continue
		}
		s := summer{h: sha256.New()}
		s.entries(r.Entries)
		key := s.done()
		known, ok := p.entries[key]
		if !ok {
			// A copy, as the row's own may be part of a whole table's.
			known = slices.Clip(slices.Clone(r.Entries))
			p.entries[key] = known
		}
		r.Entries = known
	}
	p.tables[sum] = t
	return t, sum
}

// Group is a set of nodes, sorted, that hold the same.
type Group struct {
	Sum   [32]byte
	Nodes []string
	Table Table
}

// GroupBySum groups nodes by equal tables, the largest group first, of equally
// large ones that with the first name. Tables of a map hold the rows of each
// node's own addresses; Shared takes them out of the comparison.
func GroupBySum(tables map[string]Table) []Group {
	at := map[[32]byte]int{}
	var groups []Group
	for _, node := range slices.Sorted(maps.Keys(tables)) {
		sum := tables[node].Sum()
		i, ok := at[sum]
		if !ok {
			i = len(groups)
			at[sum] = i
			groups = append(groups, Group{Sum: sum, Table: tables[node]})
		}
		groups[i].Nodes = append(groups[i].Nodes, node)
	}
	slices.SortStableFunc(groups, func(a, b Group) int {
		if len(a.Nodes) != len(b.Nodes) {
			return len(b.Nodes) - len(a.Nodes)
		}
		return strings.Compare(a.Nodes[0], b.Nodes[0])
	})
	return groups
}

// Shared is the table without the rows of single node addresses that say no
// more than their surrogate does, so that nodes can be compared.
func (t Table) Shared() Table {
	rows := make([]Row, 0, len(t.Rows))
	for _, r := range t.Rows {
		if r.Expansion {
			s, ok := t.Find(surrogateOf(r.Address))
			if ok && slices.Equal(s.Entries, r.Entries) && s.Counts == r.Counts {
				continue
			}
		}
		rows = append(rows, r)
	}
	t.Rows, t.expanded = rows, false
	return t
}
