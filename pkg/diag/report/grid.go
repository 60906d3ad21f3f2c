package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// NotKnown is how a grid shows a value that could not be had.
const NotKnown = "?"

// Property is one row of the grid: what most nodes say, and who says
// otherwise.
type Property struct {
	Name  string
	Value string // of most nodes that are known; "" if none is
	Count int    // how many nodes say so
	Else  []Group
}

// Group is a value that a minority shares.
type Group struct {
	Value string
	Nodes []string // sorted
}

// property is a row of the grid. An empty value means that the node has no such
// property (a switch that this version does not print).
type property struct {
	name string
	of   func(Node) string
}

// properties of a node, in the order of the grid.
var properties = []property{
	{"Agent", agentWord},
	{"Cilium", func(n Node) string { return n.Agent.Version }},
	{"KPR mode", mode},
	{"Socket LB", kpr(socketLB)},
	{"Devices", kpr(devices)},
	{"LB mode", kpr(lbMode)},
	{"NodePort", kpr(nodePort)},
	{"XDP", kpr(func(k KPR) string { return k.XDP })},
	{"Masquerade", masquerade},
	{"Routing", func(n Node) string {
		if n.Routing == nil {
			return ""
		}
		return strings.TrimSpace(n.Routing.Network + " " + n.Routing.Tunnel)
	}},
	{"Host routing", func(n Node) string {
		if n.Routing == nil {
			return ""
		}
		return n.Routing.Host
	}},
	{"API server", func(n Node) string { return cmp.Or(n.APIServer, NotKnown) }},
	{kubeProxyProperty, kubeProxyWord},
	{servicesProperty, servicesWord},
}

const (
	kubeProxyProperty = "kube-proxy"
	servicesProperty  = "Services"
)

// Grid sums up the nodes: for each property the value of most nodes, and the
// others with theirs.
func Grid(nodes []Node) []Property {
	rows := properties
	if len(nodes) > 0 && nodes[0].Residue != nil {
		rows = residueProperties
	}
	var out []Property
	for _, prop := range rows {
		byValue := map[string][]string{}
		for _, n := range nodes {
			if v := prop.of(n); v != "" {
				byValue[v] = append(byValue[v], n.Name)
			}
		}
		if len(byValue) == 0 {
			continue
		}
		out = append(out, majority(prop.name, byValue))
	}
	return out
}

// majority picks the value of most nodes; "not known" is never the common
// value while any node is known.
func majority(name string, byValue map[string][]string) Property {
	var groups []Group
	for v, ns := range byValue {
		groups = append(groups, Group{v, ns})
	}
	slices.SortFunc(groups, func(a, b Group) int {
		return cmp.Or(unknownLast(a, b), cmp.Compare(len(b.Nodes), len(a.Nodes)), cmp.Compare(a.Value, b.Value))
	})
	return Property{Name: name, Value: groups[0].Value, Count: len(groups[0].Nodes), Else: groups[1:]}
}

func unknownLast(a, b Group) int {
	switch {
	case a.Value == b.Value:
		return 0
	case a.Value == NotKnown:
		return 1
	case b.Value == NotKnown:
		return -1
	}
	return 0
}

func agentWord(n Node) string {
	switch {
	case n.Agent.State == "unknown":
		return NotKnown
	case n.Agent.State == "running" && n.Agent.Health != "":
		return "running, " + n.Agent.Health
	}
	return n.Agent.State
}

// mode is "?" where the status was not read; the other properties of the
// status are left out there, as the mode has said it.
func mode(n Node) string {
	switch {
	case n.KPR != nil:
		return n.KPR.Mode
	case n.Agent.State == "not wanted":
		return ""
	}
	return NotKnown
}

func kpr(f func(KPR) string) func(Node) string {
	return func(n Node) string {
		if n.KPR == nil {
			return ""
		}
		return f(*n.KPR)
	}
}

func socketLB(k KPR) string {
	if k.SocketLB == "" {
		return ""
	}
	if k.Coverage != "" {
		return k.SocketLB + ", coverage " + k.Coverage
	}
	return k.SocketLB
}

func devices(k KPR) string {
	var names []string
	for _, d := range k.Devices {
		s := d.Name
		if d.Name == k.DirectRouting {
			s += " (direct routing)"
		}
		names = append(names, s)
	}
	return strings.Join(names, ", ")
}

func lbMode(k KPR) string {
	s := k.LBMode
	if s != "" && k.DSRDispatch != "" {
		s += " by " + k.DSRDispatch
	}
	if k.Algorithm != "" {
		s = strings.TrimPrefix(s+", "+k.Algorithm, ", ")
	}
	return s
}

func nodePort(k KPR) string {
	if k.NodePort == "on" && k.NodePortRange != "" {
		return "on, " + k.NodePortRange
	}
	return k.NodePort
}

func masquerade(n Node) string {
	if n.Masquerade == nil {
		return ""
	}
	s := n.Masquerade.Mode
	var families []string
	if n.Masquerade.IPv4 == "on" {
		families = append(families, "IPv4")
	}
	if n.Masquerade.IPv6 == "on" {
		families = append(families, "IPv6")
	}
	if len(families) > 0 {
		s += ", " + strings.Join(families, " and ")
	}
	return s
}

// servicesWord is whether API, agent and maps of the node agree.
func servicesWord(n Node) string {
	switch {
	case n.Agent.State == "not wanted":
		return ""
	case n.Services == nil:
		return NotKnown
	case n.Services.InSync:
		return "in sync"
	case len(n.Services.Differences) > 2:
		return fmt.Sprintf("%s, +%d more", n.Services.Differences[0], len(n.Services.Differences)-1)
	}
	return strings.Join(n.Services.Differences, ", ")
}

func kubeProxyWord(n Node) string {
	switch n.KubeProxy.Running {
	case "yes":
		return strings.TrimSpace("running " + n.KubeProxy.Mode)
	case "no":
		return "not running"
	}
	return NotKnown
}
