package lb

import (
	"cmp"
	"slices"
)

// FromKernel makes a Table of a node's maps: rows of `bpf lb list`, and where
// they were read slots of `bpf lb list --frontends` (backend counts, affinity
// timeouts), dump (states, source ranges; it may be nil or hold only some
// lists, where SourceRanges that were read are not nil) and backends of `bpf lb list --backends` (states, where a source
// tells any). Without rows, those of dump are taken.
//
// Ids and order do not matter; ids join the sources, which all must be of one
// node. A state is told only where the sources agree on the backend, since
// they were read one after the other.
func FromKernel(rows []MapRow, slots []SlotRow, dump *Dump, backends []MapBackend, n NodeView, c Capabilities) Table {
	if len(rows) == 0 && dump != nil {
		rows = dump.rows()
	}
	byFrontend := func(a, b MapRow) int {
		return cmp.Or(a.Frontend.Compare(b.Frontend), cmp.Compare(a.Slot, b.Slot))
	}
	if !slices.IsSortedFunc(rows, byFrontend) {
		rows = slices.Clone(rows)
		slices.SortStableFunc(rows, byFrontend)
	}
	k := newKernel(slots, dump, backends, c)
	t := Table{Layer: Kernel, expanded: true, Rows: make([]Row, 0, len(rows)/4+1)}
	entries := make([]Entry, 0, len(rows))
	for i := 0; i < len(rows); {
		j := i + 1
		for j < len(rows) && rows[j].Frontend == rows[i].Frontend {
			j++
		}
		k.seek(rows[i].Frontend)
		from := len(entries)
		entries = k.entries(entries, rows[i:j])
		r := k.row(rows[i:j])
		r.Entries = entries[from:len(entries):len(entries)]
		if !slices.IsSortedFunc(r.Entries, Entry.Compare) {
			sortEntries(r.Entries)
		}
		t.Rows = append(t.Rows, r)
		i = j
	}
	markExpansions(t, n)
	return t
}

// kernel joins the maps of one node.
type kernel struct {
	slots    []SlotRow // of all frontends, sorted
	here     []SlotRow // those of the frontend at hand, from slot 0 on
	backends map[int]*MapBackend
	ranges   map[int][]SourceRange // by reverse NAT id; nil where not read
	can      Capabilities
}

func newKernel(slots []SlotRow, dump *Dump, backends []MapBackend, c Capabilities) *kernel {
	k := &kernel{slots: slots, backends: make(map[int]*MapBackend, len(backends)), can: c}
	for i := range backends {
		if backends[i].State != "" {
			k.backends[backends[i].ID] = &backends[i]
		}
	}
	if dump != nil {
		if len(slots) == 0 {
			k.slots = dump.slots()
		}
		for i := range dump.Backends {
			k.backends[dump.Backends[i].ID] = &dump.Backends[i]
		}
		if len(dump.Rows) > 0 || dump.SourceRanges != nil {
			k.ranges = map[int][]SourceRange{}
		}
		for _, r := range dump.SourceRanges {
			k.ranges[r.RevNAT] = append(k.ranges[r.RevNAT], r)
		}
	}
	order := func(a, b SlotRow) int {
		return cmp.Or(a.Frontend.Compare(b.Frontend), cmp.Compare(a.Slot, b.Slot))
	}
	if !slices.IsSortedFunc(k.slots, order) {
		k.slots = slices.Clone(k.slots)
		slices.SortStableFunc(k.slots, order)
	}
	return k
}

// seek moves on to a frontend; they come in order.
func (k *kernel) seek(a Address) {
	for len(k.slots) > 0 && k.slots[0].Frontend.Compare(a) < 0 {
		k.slots = k.slots[1:]
	}
	n := 0
	for n < len(k.slots) && k.slots[n].Frontend == a {
		n++
	}
	k.here, k.slots = k.slots[:n], k.slots[n:]
}

// slot finds a slot of the frontend at hand.
func (k *kernel) slot(number int) (SlotRow, bool) {
	if number >= 0 && number < len(k.here) && k.here[number].Slot == number {
		return k.here[number], true
	}
	i, ok := slices.BinarySearchFunc(k.here, number, func(s SlotRow, n int) int { return cmp.Compare(s.Slot, n) })
	if !ok {
		return SlotRow{}, false
	}
	return k.here[i], true
}

// row reads the master row of a frontend, if it has one.
func (k *kernel) row(rows []MapRow) Row {
	a := rows[0].Frontend
	r := Row{Address: a, Counts: Counts{-1, -1}, Wildcard: a.Wildcard() && k.can.WildcardRows != No}
	if master, ok := k.slot(0); ok && !r.Wildcard {
		r.Counts = Counts{master.Count, master.Quarantined}
	}
	i := slices.IndexFunc(rows, func(m MapRow) bool { return m.Master })
	if i < 0 {
		return r
	}
	m := rows[i]
	has := func(flag string) bool { return slices.Contains(m.Flags, flag) }
	if len(m.Flags) > 0 {
		r.Type = m.Flags[0]
		if !r.Wildcard {
			r.Flags = k.flags(m, has)
		}
	}
	switch {
	case m.L7Port > 0 || has("l7-load-balancer"):
		r.Redirect, r.ProxyPort = L7Redirect, m.L7Port
	case r.Type == "LocalRedirect":
		r.Redirect = LocalRedirect
	}
	return r
}

func (k *kernel) flags(m MapRow, has func(string) bool) Flags {
	f := Flags{Affinity: AnswerOf(has("sessionAffinity")), SourceCheck: AnswerOf(has("check source-range")), External: Cluster}
	if has("Local") {
		f.External = Local
	}
	if has("InternalLocal") {
		f.Internal = Local
	} else if k.can.InternalPolicy == Yes {
		f.Internal = Cluster
	}
	// The same field holds the proxy port of an L7 frontend.
	if master, ok := k.slot(0); ok && f.Affinity == Yes && m.L7Port == 0 {
		f.AffinityTimeout = master.Value
	}
	if k.ranges != nil {
		f.RangesTold = true
		for _, r := range k.ranges[m.RevNAT] {
			if familyOf(r.Prefix.Addr()) == familyOf(m.Frontend.IP) {
				f.Ranges = append(f.Ranges, r.Prefix)
			}
		}
		slices.SortFunc(f.Ranges, comparePrefixes)
	}
	return f
}

func (k *kernel) entries(es []Entry, rows []MapRow) []Entry {
	for i := range rows {
		m := &rows[i]
		switch {
		case m.Lost:
			es = append(es, Entry{Lost: true, ID: m.ID})
			continue
		case m.Master || !m.Backend.IP.IsValid() || m.Backend.IP.IsUnspecified() && m.Backend.Port == 0:
			continue
		}
		b := m.Backend
		b.Scope = External
		es = append(es, Entry{Backend: Backend{Address: b, State: k.state(m)}})
	}
	return es
}

func (k *kernel) state(m *MapRow) State {
	s, ok := k.slot(m.Slot)
	if !ok || len(k.backends) == 0 {
		return ""
	}
	b, ok := k.backends[s.Value]
	if !ok || b.Address.IP != m.Backend.IP || b.Address.Port != 0 && b.Address.Port != m.Backend.Port {
		return ""
	}
	return b.State
}

// slots are a dump's service rows in the shape of `bpf lb list --frontends`.
func (d *Dump) slots() []SlotRow {
	rows := make([]SlotRow, len(d.Rows))
	for i, r := range d.Rows {
		rows[i] = SlotRow{Frontend: r.Frontend, Slot: r.Slot, Value: r.Backend, Count: r.Count, Quarantined: r.Quarantined, RevNAT: r.ID}
		if r.Slot == 0 {
			rows[i].Value = r.AffinityTimeout
		}
	}
	return rows
}

// rows are a dump's service rows in the shape of `bpf lb list`.
func (d *Dump) rows() []MapRow {
	addresses := make(map[int]Address, len(d.Backends))
	for _, b := range d.Backends {
		addresses[b.ID] = b.Address
	}
	rows := make([]MapRow, 0, len(d.Rows))
	for _, r := range d.Rows {
		m := MapRow{Frontend: r.Frontend, Slot: r.Slot, RevNAT: r.ID, L7Port: r.L7Port}
		if r.Slot == 0 {
			m.Master, m.Flags = true, r.Flags
		} else if a, ok := addresses[r.Backend]; ok {
			m.Backend = a
		} else {
			m.Lost, m.ID = true, r.Backend
		}
		rows = append(rows, m)
	}
	return rows
}
