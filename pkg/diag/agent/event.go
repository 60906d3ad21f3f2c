package agent

import "net/netip"

// EventKind is what an event of `monitor` is about.
type EventKind string

// The kinds of events. Other is what monitor prints and nobody here reads.
const (
	Verdict     EventKind = "policy-verdict"
	Dropped     EventKind = "drop"
	Traced      EventKind = "trace"
	Translation EventKind = "translation" // socket LB chose a backend, or gave the answer its Service's address
	Lost        EventKind = "lost"        // events that monitor itself could not keep up with
	Other       EventKind = "other"
)

// Event is one event of a node's datapath, as `monitor` told it. Addresses are
// the packet's at that point; ports are 0 for protocols without.
type Event struct {
	Kind       EventKind      `json:"kind"`
	From       netip.AddrPort `json:"from,omitzero"`
	To         netip.AddrPort `json:"to,omitzero"`
	Protocol   string         `json:"protocol,omitempty"` // lower case: tcp, udp, icmp
	Flags      string         `json:"flags,omitempty"`    // of TCP: "SYN, ACK"
	Endpoint   int            `json:"endpoint,omitempty"` // the local one, 0 if none is named
	Direction  string         `json:"direction,omitempty"`
	Action     string         `json:"action,omitempty"` // allow, deny, redirect, audit
	Match      string         `json:"match,omitempty"`  // which kind of rule decided: "L3-L4", "none"
	Remote     string         `json:"remote,omitempty"` // identity of the other end, of verdicts
	Identities string         `json:"identities,omitempty"`
	Reason     string         `json:"reason,omitempty"` // of drops
	Point      string         `json:"point,omitempty"`  // of traces: "to-endpoint", "to-overlay"
	State      string         `json:"state,omitempty"`  // of the connection: new, established, reply
	// Phase is of translations: "pre-xlate-fwd" with the address that was
	// dialled, "post-xlate-fwd" with the backend; "…-rev" on the way back.
	Phase  string `json:"phase,omitempty"`
	Cookie string `json:"cookie,omitempty"` // of the socket, which joins the phases
	Count  int    `json:"count,omitempty"`  // how many were lost
}
