package lb

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
)

// Delta is one difference between two tables a and b. Missing means that a has
// it and b has not, Extra the reverse.
type Delta struct {
	Kind     Kind
	Frontend Address
	Type     string
	Service  Name   // of whichever side knows it
	PortName string // likewise
	Backend  Address
	// A and B are what the two sides say, as far as the kind has values: a
	// state, a setting, a count.
	A, B string
	// Detail is the rest in words: which setting, which row id, and the cause
	// that a desired row gives.
	Detail string
	// Cause is the desired row's, where one side is desired.
	Cause Cause
	// Expected says in words why this is as it should be; "" if it is not.
	Expected string
}

// Kind is what a Delta is about.
type Kind uint8

// The kinds of differences.
const (
	FrontendMissing Kind = iota + 1
	FrontendExtra
	BackendMissing
	BackendExtra
	// BackendLost: a map row points at a backend that is not in the backend
	// map. Backend is the address that the other side has for it, or zero.
	BackendLost
	StateDiffers
	// FlagDiffers: Detail is the setting.
	FlagDiffers
	// CountDiffers: the backends are the same, the number of active ones is
	// not; only where the map's states are not told.
	CountDiffers
)

// String is the kind in words: "backend missing".
func (k Kind) String() string {
	switch k {
	case FrontendMissing:
		return "frontend missing"
	case FrontendExtra:
		return "frontend extra"
	case BackendMissing:
		return "backend missing"
	case BackendExtra:
		return "backend extra"
	case BackendLost:
		return "backend lost"
	case StateDiffers:
		return "state differs"
	case FlagDiffers:
		return "flag differs"
	case CountDiffers:
		return "count differs"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// String is one line for people.
func (d Delta) String() string {
	s := fmt.Sprintf("%s: %s", d.Kind, d.Frontend)
	if d.Service != (Name{}) {
		s += " (" + d.Service.String() + ")"
	}
	if d.Backend.IP.IsValid() {
		s += " backend " + d.Backend.String()
	}
	if d.A != "" || d.B != "" {
		s += fmt.Sprintf(": %q, %q", d.A, d.B)
	}
	if d.Detail != "" {
		s += ": " + d.Detail
	}
	if d.Expected != "" {
		s += " [expected: " + d.Expected + "]"
	}
	return s
}

// Mirror is the delta as Diff gives it with its tables exchanged.
func (d Delta) Mirror() Delta {
	switch d.Kind {
	case FrontendMissing:
		d.Kind = FrontendExtra
	case FrontendExtra:
		d.Kind = FrontendMissing
	case BackendMissing:
		d.Kind = BackendExtra
	case BackendExtra:
		d.Kind = BackendMissing
	}
	d.A, d.B = d.B, d.A
	return d
}

// Compare orders deltas by frontend, kind, backend and detail.
func (d Delta) Compare(o Delta) int {
	return cmp.Or(d.Frontend.Compare(o.Frontend), cmp.Compare(d.Kind, o.Kind), d.Backend.Compare(o.Backend), cmp.Compare(d.Detail, o.Detail))
}

// Unexpected gives the deltas that are not as they should be.
func Unexpected(ds []Delta) []Delta {
	var bad []Delta
	for _, d := range ds {
		if d.Expected == "" {
			bad = append(bad, d)
		}
	}
	return bad
}

// Settled gives the deltas of a second look that the first look had too, so
// that what changed in between is not taken for a fault: the same tables are
// compared with the API as it was before and after they were read. What either
// look explains is expected.
func Settled(before, after []Delta) []Delta {
	first := make(map[deltaKey]Delta, len(before))
	for _, d := range before {
		first[d.key()] = d
	}
	var out []Delta
	for _, d := range after {
		if old, ok := first[d.key()]; ok {
			d.Expected = cmp.Or(d.Expected, old.Expected)
			out = append(out, d)
		}
	}
	return out
}

type deltaKey struct {
	kind              Kind
	frontend, backend Address
	flag              string
}

func (d Delta) key() deltaKey {
	k := deltaKey{kind: d.Kind, frontend: d.Frontend, backend: d.Backend}
	if d.Kind == FlagDiffers {
		k.flag = d.Detail
	}
	return k
}

func sortDeltas(ds []Delta) {
	slices.SortFunc(ds, Delta.Compare)
}

// Moved is deltas of one node told of another that holds the same: frontends
// at addresses of from are those at the address of to in the same family.
func Moved(ds []Delta, from, to []netip.Addr) []Delta {
	out := slices.Clone(ds)
	for i := range out {
		ip := out[i].Frontend.IP
		if !slices.Contains(from, ip) {
			continue
		}
		if k := slices.IndexFunc(to, func(a netip.Addr) bool { return a.Is4() == ip.Is4() }); k >= 0 {
			out[i].Frontend.IP = to[k]
		}
	}
	return out
}
