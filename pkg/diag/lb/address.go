package lb

import (
	"cmp"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Protocol is the transport of a frontend or backend, in capitals. Cilium up
// to 1.16 keeps no protocol in its rows; those are ANY, as are rows that 1.17
// inherited from them and the wildcard rows of 1.19.
type Protocol string

// The protocols that Cilium prints. ANY also stands for "not told".
const (
	TCP  Protocol = "TCP"
	UDP  Protocol = "UDP"
	SCTP Protocol = "SCTP"
	ANY  Protocol = "ANY"
)

// ParseProtocol reads a protocol in any case. "NONE" and "" are ANY.
func ParseProtocol(s string) (Protocol, error) {
	switch p := Protocol(strings.ToUpper(s)); p {
	case TCP, UDP, SCTP, ANY:
		return p, nil
	case "", "NONE":
		return ANY, nil
	}
	return "", fmt.Errorf("protocol %q: want TCP, UDP, SCTP or ANY", s)
}

// Scope tells the two rows of a two-scope frontend apart: the external row
// answers clients from outside the cluster, the internal row ("/i") those
// inside.
type Scope uint8

// The scopes of a frontend row.
const (
	External Scope = iota
	Internal
)

// Address is where a frontend or a backend listens. It is comparable, so it
// serves as a map key.
type Address struct {
	IP       netip.Addr
	Port     uint16
	Protocol Protocol
	Scope    Scope
}

// ParseAddress reads Cilium's spelling of an address: "10.0.0.1:80",
// "[fd00::1]:80/TCP" or "10.0.0.1:80/TCP/i". A missing protocol is ANY, IPv4
// in IPv6 form is unmapped.
func ParseAddress(s string) (Address, error) {
	rest, a := s, Address{Protocol: ANY}
	if cut, ok := strings.CutSuffix(rest, "/i"); ok {
		rest, a.Scope = cut, Internal
	}
	if i := strings.LastIndexByte(rest, '/'); i >= 0 {
		p, err := ParseProtocol(rest[i+1:])
		if err != nil {
			return Address{}, fmt.Errorf("address %q: %w", s, err)
		}
		rest, a.Protocol = rest[:i], p
	}
	host, port, ok := splitHostPort(rest)
	if !ok {
		return Address{}, fmt.Errorf("address %q: want IP:PORT[/PROTOCOL][/i]", s)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return Address{}, fmt.Errorf("address %q: port %q is no number up to 65535", s, port)
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return Address{}, fmt.Errorf("address %q: %q is no IP address", s, host)
	}
	a.IP, a.Port = ip.Unmap(), uint16(n)
	return a, nil
}

// splitHostPort cuts at the last colon; an IPv6 address has to stand in brackets.
func splitHostPort(s string) (host, port string, ok bool) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return "", "", false
	}
	host, port = s[:i], s[i+1:]
	if inner, ok := strings.CutPrefix(host, "["); ok {
		host, ok = strings.CutSuffix(inner, "]")
		return host, port, ok
	}
	return host, port, !strings.Contains(host, ":")
}

// String is the spelling of Cilium 1.17 and later, without "/ANY": a row that
// names no protocol prints none.
func (a Address) String() string {
	s := netip.AddrPortFrom(a.IP, a.Port).String()
	if a.Protocol != ANY && a.Protocol != "" {
		s += "/" + string(a.Protocol)
	}
	if a.Scope == Internal {
		s += "/i"
	}
	return s
}

// Wildcard reports whether a is one of the rows that Cilium 1.19 adds for
// every Service address, port 0 and any protocol, to catch unknown ports.
func (a Address) Wildcard() bool { return a.Port == 0 && a.Protocol == ANY }

// Surrogate reports whether a stands for every address of the node, as the
// NodePort rows 0.0.0.0:PORT and [::]:PORT do.
func (a Address) Surrogate() bool { return a.IP.IsUnspecified() && a.Port != 0 }

// Compare orders addresses by IP, port, protocol and scope.
func (a Address) Compare(b Address) int {
	return cmp.Or(a.IP.Compare(b.IP), cmp.Compare(a.Port, b.Port), cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Scope, b.Scope))
}
