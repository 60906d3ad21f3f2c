package request

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Kind is the kind of frontend that the path leads over, in the words of a
// matrix's row: "NodePort at another node, Local".
func (p *Path) Kind() string {
	s := cmp.Or(p.Frontend, "address")
	if p.Entry != "" && p.Frontend == "NodePort" {
		if s += " at its own node"; p.Entry != p.Client.Node {
			s = p.Frontend + " at another node"
		}
	}
	if p.Local {
		s += ", Local"
	}
	if p.Affinity {
		s += ", affinity"
	}
	return s
}

// From is the client and how it connects.
func (p *Path) From() string {
	s := "From " + p.Client.String()
	if p.Client.Kind == "pod" {
		s += " on " + p.Client.Node
	}
	switch {
	case p.Client.StandIn:
		s += ", a stand-in: to policies it is another client"
	case p.Client.Via == ByNamespace:
		s += ", in its network namespace"
	case p.Client.Via != "":
		s += ", by its " + p.Client.Via
		if p.Client.Via == ByExec {
			s = strings.TrimSuffix(s, "by its exec") + "by exec in it"
		}
	}
	return s
}

// Title names the path in a sentence.
func (p *Path) Title() string { return p.title() }

// Proofs says once for each mechanism how it was told.
func (p *Probe) Proofs() []string {
	var out, seen []string
	for _, path := range p.Paths {
		if path.Mechanism != "" && !slices.Contains(seen, path.Mechanism) {
			seen = append(seen, path.Mechanism)
			out = append(out, path.Mechanism+": "+path.Proof)
		}
	}
	return out
}

// Grid is a matrix: a row for each kind of frontend, a column for each kind of
// client.
type Grid struct {
	Clients []string
	Rows    []Row
}

// Row is one kind of frontend.
type Row struct {
	Kind  string
	Cells []Cell // in the order of Clients
}

// Cell counts nodes.
type Cell struct {
	Sign       string // ok, error, unknown, info (by design), "" where nothing was tried
	Nodes      []string
	Bad        []string // nodes with a path that fails
	Unknown    []string
	Mechanisms []string
}

// Words is the cell in short.
func (c Cell) Words(most int) string {
	names := func(all []string) string {
		if len(all) > most {
			return fmt.Sprintf("%s +%d", strings.Join(all[:most], ", "), len(all)-most)
		}
		return strings.Join(all, ", ")
	}
	n := len(c.Nodes)
	switch c.Sign {
	case "":
		return "-"
	case "error":
		return fmt.Sprintf("fails on %d of %d: %s", len(c.Bad), n, names(c.Bad))
	case "unknown":
		return fmt.Sprintf("not known on %d of %d: %s", len(c.Unknown), n, names(c.Unknown))
	case "info":
		return fmt.Sprintf("%d of %d, not served by design", n, n)
	}
	s := fmt.Sprintf("%d of %d", n, n)
	if len(c.Mechanisms) > 0 {
		s += " " + strings.Join(c.Mechanisms, " and ")
	}
	return s
}

// Grid sums up the paths of a matrix.
func (p *Probe) Grid() Grid {
	var g Grid
	for _, kind := range []string{"pod", "node"} {
		if slices.ContainsFunc(p.Paths, func(x Path) bool { return x.Client.Kind == kind }) {
			g.Clients = append(g.Clients, kind)
		}
	}
	for i := range p.Paths {
		path := &p.Paths[i]
		kind := fmt.Sprintf("%s %s %s", path.Kind(), path.Protocol, family(path))
		at := slices.IndexFunc(g.Rows, func(r Row) bool { return r.Kind == kind })
		if at < 0 {
			at = len(g.Rows)
			g.Rows = append(g.Rows, Row{Kind: kind, Cells: make([]Cell, len(g.Clients))})
		}
		g.Rows[at].Cells[slices.Index(g.Clients, path.Client.Kind)].add(p, path)
	}
	slices.SortStableFunc(g.Rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(rank(a.Kind), rank(b.Kind)), cmp.Compare(a.Kind, b.Kind))
	})
	return g
}

func rank(kind string) int {
	order := []string{"ClusterIP", "NodePort", "LoadBalancer", "ExternalIPs", "HostPort"}
	for i, o := range order {
		if strings.HasPrefix(kind, o) {
			return i
		}
	}
	return len(order)
}

func family(p *Path) string {
	if p.Address.Addr().Is4() {
		return "IPv4"
	}
	return "IPv6"
}

func (c *Cell) add(p *Probe, path *Path) {
	put := func(to *[]string, s string) {
		if s != "" && !slices.Contains(*to, s) {
			*to = append(*to, s)
			slices.Sort(*to)
		}
	}
	put(&c.Nodes, path.Client.Node)
	sign := "ok"
	switch {
	case p.Fails(path):
		sign = "error"
		put(&c.Bad, path.Client.Node)
	case path.State == Unknown:
		sign = "unknown"
		put(&c.Unknown, path.Client.Node)
	case path.ByDesign():
		sign = "info"
	default:
		put(&c.Mechanisms, path.Mechanism)
	}
	worst := []string{"error", "unknown", "ok", "info", ""}
	if slices.Index(worst, sign) < slices.Index(worst, c.Sign) {
		c.Sign = sign
	}
}
