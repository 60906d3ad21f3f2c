package lb

import "net/netip"

// Connection is one entry of a node's BPF connection tracking map.
type Connection struct {
	Protocol  string // upper case: TCP, UDP, SCTP, ICMP, …
	Direction Direction
	// From is who opened it; To is the frontend of a Service entry, else the
	// address behind it.
	From, To netip.AddrPort
	Related  bool // an ICMP error about another connection
	// Closing: both ends, or the end that is tracked, sent FIN or RST.
	Closing bool
	RevNAT  int // id of the frontend it was translated from, 0 for none
	// Backend is the id of the backend that a Service entry is pinned to, 0
	// for others.
	Backend int
}

// Direction is what a Connection is to its node.
type Direction uint8

// The directions: into an endpoint, out of one, or the choice of a Service's
// backend.
const (
	Inward Direction = iota + 1
	Outward
	ServiceEntry
)

// String is the direction as newer agents print it: IN, OUT or SVC.
func (d Direction) String() string {
	switch d {
	case Inward:
		return "IN"
	case Outward:
		return "OUT"
	case ServiceEntry:
		return "SVC"
	}
	return "unknown direction"
}
