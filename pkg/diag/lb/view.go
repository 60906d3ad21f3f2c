package lb

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Answer is what is known of a yes-or-no question. Unknown is the zero value.
type Answer uint8

// The answers.
const (
	Unknown Answer = iota
	No
	Yes
)

// String is "unknown", "no" or "yes".
func (a Answer) String() string {
	switch a {
	case No:
		return "no"
	case Yes:
		return "yes"
	}
	return "unknown"
}

// AnswerOf is Yes for true and No for false.
func AnswerOf(b bool) Answer {
	if b {
		return Yes
	}
	return No
}

// Capabilities are what the agent's version can do. This package compares no
// versions: the caller, who knows them, fills this in. Unknown makes what
// depends on it optional.
type Capabilities struct {
	// ProtocolInRows: frontends and backends are kept with their protocol
	// (1.17). Before, TCP and UDP of one address and port share a row.
	ProtocolInRows Answer
	// WildcardRows: Service addresses have a row for unknown ports (1.19).
	WildcardRows Answer
	// SurrogatesOnlyInAgent: `service list` has 0.0.0.0:PORT for a NodePort
	// and no row for each node address (1.18).
	SurrogatesOnlyInAgent Answer
	// Terminating: terminating backends stay while they serve (1.11).
	Terminating Answer
	// InternalPolicy: internalTrafficPolicy is honoured (1.12).
	InternalPolicy Answer
	// NodesSpared: addresses of nodes get no such rows, and a frontend of its
	// own there wins over NodePorts and host ports (1.20).
	NodesSpared Answer
	// Exposure: the annotations service.cilium.io/type, node and
	// node-selector are honoured.
	Exposure Answer
}

// NodeView is what Desired has to know of a node beyond the Services: where it
// is, and what its agent serves.
type NodeView struct {
	Name, Zone string
	Labels     map[string]string
	// Addresses are those that NodePorts must answer on: per device and
	// family the one that Cilium chose. Others may have rows as well.
	Addresses []netip.Addr
	Others    []netip.Addr
	// Exact: Addresses and Others together are all; a NodePort row of any
	// further address belongs to nobody.
	Exact bool
	// What the node's agent serves. ClusterIPs always are.
	NodePort, LoadBalancer, ExternalIPs, HostPort Answer
	// Topology: the agent follows zone hints and traffic distribution.
	Topology   Answer
	IPv4, IPv6 Answer
	// ProxyName is the agent's k8s-service-proxy-name, usually "".
	ProxyName string
	// NodePortMin and NodePortMax are the NodePort range; 0 is 30000 to 32767.
	NodePortMin, NodePortMax uint16
}

// View tells of a node what the API knows: name, zone, labels and addresses.
// The first internal address of each family must answer NodePorts, the others
// may. What the agent serves is left Unknown.
func View(n *corev1.Node) NodeView {
	v := NodeView{Name: n.Name, Zone: n.Labels[corev1.LabelTopologyZone], Labels: n.Labels}
	seen := [2]bool{}
	for _, kind := range []corev1.NodeAddressType{corev1.NodeInternalIP, corev1.NodeExternalIP} {
		for _, a := range n.Status.Addresses {
			ip, err := netip.ParseAddr(a.Address)
			if a.Type != kind || err != nil {
				continue
			}
			ip = ip.Unmap()
			if f := familyOf(ip); kind == corev1.NodeInternalIP && !seen[f] {
				seen[f] = true
				v.Addresses = append(v.Addresses, ip)
				continue
			}
			v.Others = append(v.Others, ip)
		}
	}
	return v
}

// WithDevices takes the addresses of the devices that an agent balances
// NodePorts on, as its status lists them. Cilium chooses one address of each
// device and family: the node's own, or the only one there is. NodePorts must
// answer on these; on others of the device they may. A node address on no
// device has no NodePort rows.
func (v NodeView) WithDevices(devices ...[]netip.Addr) NodeView {
	known := v.Addresses
	v.Addresses, v.Others, v.Exact = nil, nil, true
	for _, d := range devices {
		var usable []netip.Addr
		number := [2]int{}
		for _, a := range d {
			if a = a.Unmap(); a.IsValid() && !a.IsLinkLocalUnicast() && !a.IsLoopback() {
				usable = append(usable, a)
				number[familyOf(a)]++
			}
		}
		for _, a := range usable {
			if number[familyOf(a)] == 1 || slices.Contains(known, a) {
				v.Addresses = append(v.Addresses, a)
			} else {
				v.Others = append(v.Others, a)
			}
		}
	}
	return v
}

// Seen answers what is still Unknown of a node from rows that are there: an
// agent that lists a NodePort serves NodePorts. That there is none proves
// nothing.
func (v NodeView) Seen(t Table) NodeView {
	for _, r := range t.Rows {
		var a *Answer
		switch r.Type {
		case "NodePort":
			a = &v.NodePort
		case "LoadBalancer":
			a = &v.LoadBalancer
		case "ExternalIPs":
			a = &v.ExternalIPs
		case "HostPort":
			a = &v.HostPort
		default:
			continue
		}
		if *a == Unknown {
			*a = Yes
		}
	}
	return v
}

// nodePort reports whether the port is in the NodePort range.
func (v NodeView) nodePort(port uint16) bool {
	low, high := v.NodePortMin, v.NodePortMax
	if low == 0 || high == 0 {
		low, high = 30000, 32767
	}
	return low <= port && port <= high
}

func (v NodeView) serves(typ string) Answer {
	switch typ {
	case "NodePort":
		return v.NodePort
	case "LoadBalancer":
		return v.LoadBalancer
	case "ExternalIPs":
		return v.ExternalIPs
	case "HostPort":
		return v.HostPort
	}
	return Yes
}

func (v NodeView) family(f family) Answer {
	if f == v6 {
		return v.IPv6
	}
	return v.IPv4
}

// family indexes arrays of two.
type family uint8

const (
	v4 family = iota
	v6
)

func (f family) String() string {
	if f == v6 {
		return "IPv6"
	}
	return "IPv4"
}

func familyOf(a netip.Addr) family {
	if a.Is4() || a.Is4In6() {
		return v4
	}
	return v6
}
