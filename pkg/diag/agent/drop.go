package agent

import "net/netip"

// Drop is one packet that the datapath of a node dropped, as `monitor` told it.
type Drop struct {
	Reason string // as printed: "Denied by LB src range check"
	// From and To are the packet's addresses as it was when dropped; the port
	// is 0 for protocols without ports.
	From, To netip.AddrPort
	Protocol string // lower case, as printed: tcp, udp, icmp; "" where not told
	// Identities are the security identities of both ends, as printed:
	// "world->unknown".
	Identities string
}
