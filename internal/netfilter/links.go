package netfilter

import (
	"net/netip"
	"strings"
)

// Link is a network device and its addresses.
type Link struct {
	Name  string
	State string // "UP", "UNKNOWN", "DOWN"; "" where the form does not tell it
	Addrs []netip.Prefix
}

// IPVSDevice is the dummy device on which kube-proxy's IPVS mode keeps every
// Service address, so that the node takes their packets for its own.
const IPVSDevice = "kube-ipvs0"

// DecodeLinks reads `ip -br addr`, `ip -o addr` and plain `ip addr`, in the
// order of the text. Lines that say neither a device nor an address are
// details of plain `ip addr`.
func DecodeLinks(data []byte) ([]Link, error) {
	var out []Link
	var bad []int
	at := map[string]int{}
	link := func(name string) *Link {
		name, _, _ = strings.Cut(strings.TrimSuffix(name, ":"), "@")
		i, ok := at[name]
		if !ok {
			i = len(out)
			name = strings.Clone(name)
			at[name] = i
			out = append(out, Link{Name: name})
		}
		return &out[i]
	}
	current, line := "", 0
	for text := range strings.Lines(string(data)) {
		line++
		f := strings.Fields(text)
		switch {
		case len(f) == 0:
		case len(f) > 3 && isIndex(f[0]) && (f[2] == "inet" || f[2] == "inet6"): // -o
			addAddr(link(f[1]), f[3])
		case len(f) > 1 && isIndex(f[0]):
			current = f[1]
			l := link(current)
			for i, w := range f {
				if w == "state" && i+1 < len(f) {
					l.State = strings.Clone(f[i+1])
				}
			}
		case (f[0] == "inet" || f[0] == "inet6") && len(f) > 1 && current != "":
			addAddr(link(current), f[1])
		case text[0] == ' ' || text[0] == '\t': // link/ether, valid_lft
		case len(f) > 1 && f[1] == strings.ToUpper(f[1]) && strings.Trim(f[1], "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "": // -br
			l := link(f[0])
			l.State = strings.Clone(f[1])
			for _, a := range f[2:] {
				addAddr(l, a)
			}
		default:
			bad = append(bad, line)
		}
	}
	if len(bad) > 0 {
		return out, unreadable(bad)
	}
	return out, nil
}

// addAddr adds what is an address; -br prints other words behind some of them.
func addAddr(l *Link, s string) {
	if p, err := netip.ParsePrefix(s); err == nil {
		l.Addrs = append(l.Addrs, p)
		return
	}
	if a, err := netip.ParseAddr(s); err == nil { // a tunnel's, with "peer"
		l.Addrs = append(l.Addrs, netip.PrefixFrom(a.WithZone(""), a.BitLen()))
	}
}

// isIndex holds for "8:", what stands before a device's name.
func isIndex(s string) bool {
	n := strings.TrimSuffix(s, ":")
	return n != s && n != "" && strings.Trim(n, "0123456789") == ""
}
