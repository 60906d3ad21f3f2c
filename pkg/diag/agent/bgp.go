package agent

import "net/netip"

// BGPRoute is one route that a node's BGP speaker knows or announces.
type BGPRoute struct {
	Node    string // "" where the list is of one node and does not say
	VRouter string // the local AS number, as printed
	Peer    string // of lists of advertised routes, else ""
	Prefix  netip.Prefix
	NextHop string // 0.0.0.0 or :: for the node's own routes
}
