package cilium

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// DecodeMapsDump reads `shell -- lb/maps-dump` (Cilium 1.18 and later): one line
// per row of each load-balancing map, as "KIND: KEY=value …". Fields that a
// later version adds are passed over; those of Maglev tables are not kept. All
// lists come sorted by id, the service rows by frontend and slot.
//
// Gaps are reported as *DecodeErrors together with what could be read.
func DecodeMapsDump(data []byte) (lb.Dump, error) {
	dump, a := mapsDump(data)
	return dump, a.err()
}

func mapsDump(data []byte) (lb.Dump, *answer) {
	a := newAnswer("lb/maps-dump", data)
	var dump lb.Dump
	for line, ok := a.next(); ok; line, ok = a.next() {
		kind, rest, _ := strings.Cut(line, ":")
		if kind == "MAGLEV" {
			a.noise()
			continue
		}
		if err := dumpLine(&dump, kind, rest); err != nil {
			a.fail(err.Error())
			continue
		}
		a.entry()
	}
	sortDump(&dump)
	return dump, a
}

func sortDump(d *lb.Dump) {
	sortMapBackends(d.Backends)
	sortRevNAT(d.RevNAT)
	sortSourceRanges(d.SourceRanges)
	slices.SortStableFunc(d.Affinity, func(a, b lb.AffinityMatch) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Backend, b.Backend))
	})
	slices.SortStableFunc(d.Rows, func(a, b lb.DumpRow) int {
		return cmp.Or(a.Frontend.Compare(b.Frontend), cmp.Compare(a.Slot, b.Slot))
	})
}

func dumpLine(d *lb.Dump, kind, rest string) error {
	f := dumpFields(rest)
	switch kind {
	case "SVC":
		row := lb.DumpRow{
			Frontend: f.address("ADDR"), ID: f.count("ID"), Slot: f.count("SLOT"),
			Backend: f.optional("BEID"), Count: f.optional("COUNT"), Quarantined: f.optional("QCOUNT"),
			AffinityTimeout: f.optional("AFFTimeout"), Algorithm: f.values["LBALG"], L7Port: f.optional("L7Proxy"),
			Flags: f.flags(),
		}
		return collect(&d.Rows, row, f.problem())
	case "BE":
		b := lb.MapBackend{ID: f.count("ID"), Address: f.address("ADDR"), State: lb.State(f.values["STATE"])}
		return collect(&d.Backends, b, f.problem())
	case "REV":
		return collect(&d.RevNAT, lb.RevNAT{ID: f.count("ID"), Address: f.address("ADDR")}, f.problem())
	case "SRCRANGE":
		r := lb.SourceRange{RevNAT: f.count("ID")}
		p, err := parsePrefix(f.values["CIDR"])
		r.Prefix = p
		return collect(&d.SourceRanges, r, cmp.Or(f.problem(), err))
	case "AFF":
		return collect(&d.Affinity, lb.AffinityMatch{ID: f.count("ID"), Backend: f.count("BEID")}, f.problem())
	}
	return errors.New("row of an unknown map")
}

func collect[T any](rows *[]T, row T, err error) error {
	if err == nil {
		*rows = append(*rows, row)
	}
	return err
}

// fields are the KEY=value pairs of a line and the first thing that was wrong
// with them.
type fields struct {
	values map[string]string
	err    error
}

// dumpFields cuts a line. FLAGS is the last field, and its value may hold
// blanks: "check source-range".
func dumpFields(s string) *fields {
	f := &fields{values: map[string]string{}}
	if before, flags, ok := strings.Cut(s, " FLAGS="); ok {
		f.values["FLAGS"], s = strings.TrimSpace(flags), before
	}
	for _, word := range strings.Fields(s) {
		key, value, ok := strings.Cut(word, "=")
		if !ok && f.err == nil {
			f.err = fmt.Errorf("%q is no KEY=value", word)
		}
		f.values[key] = value
	}
	return f
}

// problem is read behind the last field.
func (f *fields) problem() error { return f.err }

func (f *fields) count(key string) int {
	n, err := parseCount(f.values[key])
	if err != nil && f.err == nil {
		f.err = fmt.Errorf("%s: %w", key, err)
	}
	return n
}

// optional is a count that stands on some rows only.
func (f *fields) optional(key string) int {
	if _, ok := f.values[key]; !ok {
		return 0
	}
	return f.count(key)
}

func (f *fields) address(key string) lb.Address {
	a, err := parseAddress(f.values[key])
	if err != nil && f.err == nil {
		f.err = err
	}
	return a
}

func (f *fields) flags() []string {
	if f.values["FLAGS"] == "" {
		return nil
	}
	return strings.Split(f.values["FLAGS"], "+")
}
