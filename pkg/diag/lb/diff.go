package lb

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
)

// DiffOptions leave out what a caller does not ask for.
type DiffOptions struct {
	OmitExpected bool // differences that are as they should be
	OmitStates   bool // StateDiffers and CountDiffers
	OmitFlags    bool // FlagDiffers
}

// Diff names each difference between two tables once, sorted by frontend. Any
// two layers, and one layer of two nodes, can be compared.
//
// What one side does not tell does not differ: states, flags and counts are
// compared where both know them, and so are the rows of single node addresses.
// A frontend that is missing is one Delta, whatever its backends. Rows and
// backends without protocol stand for every protocol.
func Diff(a, b Table, o DiffOptions) []Delta {
	d := differ{a: side{&a}, b: side{&b}, options: o}
	i, j := 0, 0
	for i < len(a.Rows) || j < len(b.Rows) {
		ni, nj := i, j
		switch c := socketOrder(a.Rows, i, b.Rows, j); {
		case c < 0:
			ni = socketEnd(a.Rows, i)
		case c > 0:
			nj = socketEnd(b.Rows, j)
		default:
			ni, nj = socketEnd(a.Rows, i), socketEnd(b.Rows, j)
		}
		d.socket(a.Rows[i:ni], b.Rows[j:nj])
		i, j = ni, nj
	}
	d.resolveLost()
	sortDeltas(d.out)
	return d.out
}

// socketOrder compares IP and port of the next rows; the end comes last.
func socketOrder(a []Row, i int, b []Row, j int) int {
	switch {
	case i == len(a):
		return 1
	case j == len(b):
		return -1
	}
	return cmp.Or(a[i].Address.IP.Compare(b[j].Address.IP), cmp.Compare(a[i].Address.Port, b[j].Address.Port))
}

func socketEnd(rows []Row, i int) int {
	j := i + 1
	for j < len(rows) && rows[j].Address.IP == rows[i].Address.IP && rows[j].Address.Port == rows[i].Address.Port {
		j++
	}
	return j
}

type side struct{ *Table }

// differ collects the deltas of one Diff.
type differ struct {
	a, b    side
	options DiffOptions
	out     []Delta
	lost    []lostRows
}

func (d *differ) add(x Delta) {
	if x.Expected == "" || !d.options.OmitExpected {
		d.out = append(d.out, x)
	}
}

// socket compares the rows of one IP and port.
func (d *differ) socket(as, bs []Row) {
	if len(as) == 1 && len(bs) == 1 && meet(as[0].Address, bs[0].Address) {
		d.rows(&as[0], &bs[0])
		return
	}
	for _, scope := range []Scope{External, Internal} {
		p := pairUp(inScope(as, scope), inScope(bs, scope))
		for _, x := range p.onlyA {
			d.alone(x, true)
		}
		for _, y := range p.onlyB {
			d.alone(y, false)
		}
		for _, c := range p.pairs {
			d.pair(c.xs, c.ys)
		}
	}
}

func (d *differ) rows(x, y *Row) { d.pair([]*Row{x}, []*Row{y}) }

func inScope(rows []Row, s Scope) []*Row {
	var in []*Row
	for i := range rows {
		if rows[i].Address.Scope == s {
			in = append(in, &rows[i])
		}
	}
	return in
}

// alone reports a row that the other side has not, if it ought to have.
func (d *differ) alone(r *Row, inA bool) {
	other, kind := d.b, FrontendMissing
	if !inA {
		other, kind = d.a, FrontendExtra
	}
	if r.Wildcard && other.knows(r.Address) {
		return
	}
	if r.Expansion && !other.expanded {
		if s, ok := other.surrogate(r.Address); ok {
			s.Address = r.Address
			if inA {
				d.rows(r, &s)
			} else {
				d.rows(&s, r)
			}
			return
		}
	}
	x := d.delta(kind, r, nil)
	x.Expected = other.whyNot(r)
	d.add(x)
}

// knows reports whether the table has a frontend of the address's IP.
func (s side) knows(a Address) bool {
	i, _ := slices.BinarySearchFunc(s.Rows, a.IP, func(r Row, ip netip.Addr) int { return r.Address.IP.Compare(ip) })
	return i < len(s.Rows) && s.Rows[i].Address.IP == a.IP
}

func (s side) surrogate(a Address) (Row, bool) {
	a = surrogateOf(a)
	for _, p := range []Protocol{a.Protocol, ANY, TCP, UDP, SCTP} {
		if p != a.Protocol && p != ANY && a.Protocol != ANY {
			continue
		}
		b := a
		b.Protocol = p
		if r, ok := s.Find(b); ok && nodePorts(r.Type) {
			return r, true
		}
	}
	return Row{}, false
}

// whyNot explains that this side lacks a row; "" if it should have it.
func (s side) whyNot(r *Row) string {
	switch {
	case r.Optional != "":
		return r.Optional
	case s.Layer != Desired:
		return ""
	case s.checksHealth(r.Address):
		return "the agent answers the health check of the Service on its own address"
	case r.Cluster != "":
		return "a frontend of another cluster"
	case r.Redirect == LocalRedirect:
		return "a local redirect policy made it"
	case r.Type == "HostPort" && !s.pods:
		return "the pods behind host ports were not read"
	}
	return ""
}

func (s side) checksHealth(a Address) bool {
	return slices.ContainsFunc(s.health, func(h Address) bool { return meet(a, h) })
}

// delta names the two rows that differ; y may be nil, x then stands alone.
func (d *differ) delta(kind Kind, x, y *Row) Delta {
	if y == nil {
		y = x
	}
	// What the API says names things; else the order of the sides must not
	// matter.
	desired := d.a.Layer == Desired && d.b.Layer != Desired
	if d.b.Layer == Desired && d.a.Layer != Desired {
		x, y = y, x
		desired = true
	}
	r := Delta{Kind: kind, Frontend: specific(x.Address, y.Address), Cause: x.Cause, Detail: x.Reason}
	if !desired && r.Cause == "" {
		r.Cause, r.Detail = y.Cause, y.Reason
	}
	r.Service = pick(x.Service, y.Service, desired, func(a, b Name) int { return cmp.Compare(a.String(), b.String()) })
	r.Type = pick(x.Type, y.Type, desired, cmp.Compare[string])
	r.PortName = pick(x.PortName, y.PortName, desired, cmp.Compare[string])
	return r
}

func pick[T comparable](x, y T, first bool, order func(a, b T) int) T {
	var zero T
	if y == zero || x != zero && (first || order(x, y) <= 0) {
		return x
	}
	return y
}

// specific prefers the address that tells its protocol.
func specific(a, b Address) Address {
	if a.Protocol == ANY {
		return b
	}
	return a
}

// flags compares settings as far as both sides tell them.
func (d *differ) flags(x, y *Row) {
	if d.options.OmitFlags || x.Redirect == LocalRedirect || y.Redirect == LocalRedirect {
		return
	}
	f, g := x.Flags, y.Flags
	report := func(name, a, b string) {
		r := d.delta(FlagDiffers, x, y)
		r.A, r.B, r.Detail = a, b, name
		d.add(r)
	}
	answers := func(name string, a, b Answer) {
		if a != b && a != Unknown && b != Unknown {
			report(name, a.String(), b.String())
		}
	}
	answers("session affinity", f.Affinity, g.Affinity)
	if f.AffinityTimeout != g.AffinityTimeout && f.AffinityTimeout > 0 && g.AffinityTimeout > 0 {
		report("affinity timeout", strconv.Itoa(f.AffinityTimeout), strconv.Itoa(g.AffinityTimeout))
	}
	answers("source-range check", f.SourceCheck, g.SourceCheck)
	if f.RangesTold && g.RangesTold && !slices.Equal(f.Ranges, g.Ranges) {
		report("source ranges", spell(f.Ranges), spell(g.Ranges))
	}
	typ := cmp.Or(x.Type, y.Type)
	if f.External != g.External && f.External != "" && g.External != "" && typ != "ClusterIP" && typ != "HostPort" {
		report("externalTrafficPolicy", string(f.External), string(g.External))
	}
	if f.Internal != g.Internal && f.Internal != "" && g.Internal != "" && typ != "HostPort" {
		report("internalTrafficPolicy", string(f.Internal), string(g.Internal))
	}
}
