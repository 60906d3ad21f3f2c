package cilium

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
)

// DecodeBGPRoutes reads the table of `bgp routes`, of an agent or of Cilium's
// command line tool, which puts a column with the node in front. A cell that is
// left empty repeats the one above.
//
// Gaps are reported as *DecodeErrors together with what could be read.
func DecodeBGPRoutes(data []byte) ([]agent.BGPRoute, error) {
	routes, a := bgpRoutes(data)
	return routes, a.err()
}

func bgpRoutes(data []byte) ([]agent.BGPRoute, *answer) {
	a := newAnswer("bgp routes", data)
	var routes []agent.BGPRoute
	var cs columns
	var last agent.BGPRoute
	for line, ok := a.next(); ok; line, ok = a.next() {
		if strings.HasPrefix(line, "(Defaulting to ") {
			a.noise()
			continue
		}
		if found := bgpColumns(line); found != nil {
			cs, last = found, agent.BGPRoute{}
			a.header()
			continue
		}
		if cs == nil {
			a.fail("a row before the header")
			continue
		}
		r, err := bgpRoute(cs.cells(line), last)
		if err != nil {
			a.fail(err.Error())
			continue
		}
		routes, last = append(routes, r), r
		a.entry()
	}
	return routes, a
}

// bgpColumns knows the header by its first column.
func bgpColumns(line string) columns {
	for _, first := range []string{"Node", "VRouter"} {
		if cs := findColumns(line, first, "Prefix", "NextHop"); cs != nil {
			return cs
		}
	}
	return nil
}

func bgpRoute(cells map[string]string, last agent.BGPRoute) (agent.BGPRoute, error) {
	or := func(cell, above string) string {
		if cell == "" {
			return above
		}
		return cell
	}
	r := agent.BGPRoute{
		Node: or(cells["Node"], last.Node), VRouter: or(cells["VRouter"], last.VRouter),
		Peer: or(cells["Peer"], last.Peer), NextHop: cells["NextHop"],
	}
	p, err := netip.ParsePrefix(cells["Prefix"])
	if err != nil {
		return r, fmt.Errorf("prefix %q is none", cells["Prefix"])
	}
	r.Prefix = p.Masked()
	return r, nil
}
