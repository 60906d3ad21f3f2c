package cilium

import (
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// clusterSuffix marks an address of another cluster in a ClusterMesh with
// overlapping pod networks, "10.0.0.1@3". lb has no place for it: such rows
// keep their address only.
var clusterSuffix = regexp.MustCompile(`@[0-9]+`)

// parseAddress reads the spellings of all versions, see lb.ParseAddress. Zones
// of link-local addresses are dropped: they name a device of one node.
func parseAddress(s string) (lb.Address, error) {
	if strings.IndexByte(s, '@') >= 0 {
		s = clusterSuffix.ReplaceAllString(s, "")
	}
	a, err := lb.ParseAddress(s)
	if err != nil {
		return lb.Address{}, err
	}
	a.IP = a.IP.WithZone("")
	return a, nil
}

// parseIP reads an address without a port.
func parseIP(s string) (netip.Addr, error) {
	host, _, _ := strings.Cut(s, "@")
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("%q is no IP address", s)
	}
	return ip.WithZone("").Unmap(), nil
}

// parseName reads "namespace/name" or "cluster/namespace/name", the latter of
// frontends that ClusterMesh brought in.
func parseName(s string) (cluster string, name lb.Name, err error) {
	parts := strings.Split(s, "/")
	switch {
	case s == "":
		return "", lb.Name{}, nil
	case len(parts) == 2 && parts[0] != "" && parts[1] != "":
		return "", lb.Name{Namespace: parts[0], Name: parts[1]}, nil
	case len(parts) == 3 && parts[1] != "" && parts[2] != "":
		return parts[0], lb.Name{Namespace: parts[1], Name: parts[2]}, nil
	}
	return "", lb.Name{}, fmt.Errorf("service name %q: want NAMESPACE/NAME", s)
}

// cutWord splits off the first blank-separated word.
func cutWord(s string) (word, rest string) {
	s = strings.TrimLeft(s, " \t")
	i := strings.IndexAny(s, " \t")
	if i < 0 {
		return s, ""
	}
	return s[:i], strings.TrimLeft(s[i:], " \t")
}

// cutNumber splits off a leading "(N)", as revNAT ids and slots are printed.
func cutNumber(s string) (n int, rest string, ok bool) {
	word, rest := cutWord(s)
	inner, ok := strings.CutPrefix(word, "(")
	if !ok {
		return 0, s, false
	}
	inner, ok = strings.CutSuffix(inner, ")")
	if !ok {
		return 0, s, false
	}
	n, err := parseCount(inner)
	if err != nil {
		return 0, s, false
	}
	return n, rest, true
}

// parseCount reads an id, a count or a slot; none is larger than 32 bits.
func parseCount(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%q is no number of 32 bits", s)
	}
	return int(n), nil
}
