package fact

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/internal/netfilter"
)

var (
	// Chains are kube-proxy's chains on a node, joined with the endpoints that
	// their Services have now. It says nothing of whether kube-proxy runs.
	Chains = Define("kube-proxy-chains", true, []Named{Netfilter, EndpointAddresses, Nodes}, proxyChains)
	// EndpointAddresses are the addresses of each Service's endpoints, in
	// whatever state, by "namespace/name".
	EndpointAddresses = Define("endpoint-addresses", false, []Named{EndpointSlices, Endpoints}, endpointAddresses)
)

// ChainsOf is what a node has of kube-proxy in iptables.
type ChainsOf struct {
	Tables   []TableChains
	Count    int
	Services []string // that the rows name, sorted
	Used     []string // of them those whose rows have hits
	Counted  bool     // rows had packet counters
	Targets  int      // rows that send packets to an endpoint
	Judged   bool     // the targets were compared with the endpoints
	// Stale are rows whose target is no endpoint of its Service any more, those
	// with hits first; StaleUsed counts the ones with hits.
	Stale     []netfilter.Target
	StaleUsed int
	// Refusing are REJECT and DROP rows with hits, without those of Services
	// that have no ready endpoint: nobody serves these any better.
	Refusing []netfilter.Block
	// Outdated counts rows that refuse a Service for want of endpoints, which it has.
	Outdated int
	Unread   []Unread
}

// TableChains counts the chains of one table.
type TableChains struct {
	Family  netfilter.Family
	Backend netfilter.Backend // "" where nothing tells it
	Table   string
	N       int
}

// Fresh holds where every row's target is an endpoint now: somebody writes the
// rows, or nothing has changed since the last one wrote them.
func (c ChainsOf) Fresh() bool { return c.Judged && c.Targets > 0 && !c.Old() }

// Old holds where a row says what is no longer so: nobody writes them.
func (c ChainsOf) Old() bool { return len(c.Stale)+c.Outdated > 0 }

// Where tells the tables in words: "nat 40, filter 6 (IPv4, nft); nat 12 (IPv6, nft)".
func (c ChainsOf) Where() string {
	type place struct {
		f netfilter.Family
		b netfilter.Backend
	}
	var order []place
	tables := map[place][]string{}
	for _, t := range c.Tables {
		at := place{t.Family, t.Backend}
		if tables[at] == nil {
			order = append(order, at)
		}
		name := t.Table
		if name == "" {
			name = "a table that is not named"
		}
		tables[at] = append(tables[at], name+" "+strconv.Itoa(t.N))
	}
	var parts []string
	for _, at := range order {
		words := at.f.String()
		if at.b != "" {
			words += ", " + string(at.b)
		}
		parts = append(parts, strings.Join(tables[at], ", ")+" ("+words+")")
	}
	return strings.Join(parts, "; ")
}

func proxyChains(v *View) (ChainsOf, error) {
	rules, err := Netfilter.From(v)
	if err != nil {
		return ChainsOf{}, err
	}
	c := ChainsOf{Unread: rules.Unread}
	var targets []netfilter.Target
	var blocks []netfilter.Block
	for _, p := range rules.Parts {
		c.count(p, KubeletShares(v))
		targets = append(targets, p.Targets...)
		c.Services = append(c.Services, p.Services...)
		c.Used = append(c.Used, p.Used...)
		c.Counted = c.Counted || p.Counted
		blocks = append(blocks, p.Blocks...)
	}
	slices.Sort(c.Services)
	slices.Sort(c.Used)
	c.Services, c.Used = slices.Compact(c.Services), slices.Compact(c.Used)
	c.Targets = len(targets)
	current, err := EndpointAddresses.From(v)
	c.Judged = err == nil
	for _, b := range blocks {
		serves := current.Ready(b.Service)
		if b.Packets > 0 && (!c.Judged || serves || !b.Empty) {
			c.Refusing = append(c.Refusing, b)
		}
		if serves && b.Empty {
			c.Outdated++
		}
	}
	if c.Judged {
		c.Stale = netfilter.Stale(targets, current.Has)
		for _, t := range c.Stale {
			if t.Packets > 0 {
				c.StaleUsed++
			}
		}
		slices.SortStableFunc(c.Stale, func(a, b netfilter.Target) int {
			switch {
			case a.Packets > 0 && b.Packets == 0:
				return -1
			case a.Packets == 0 && b.Packets > 0:
				return 1
			}
			return strings.Compare(a.Service, b.Service)
		})
	}
	return c, nil
}

// count adds a part's chains. Those that kubelets made too count only beside
// some that kube-proxy alone makes, and never while the kubelet still owns them.
func (c *ChainsOf) count(p *netfilter.Part, kubelet bool) {
	if p.Has(netfilter.KubeProxy) == 0 {
		return
	}
	for _, n := range p.Counts {
		if n.Owner != netfilter.KubeProxy && (n.Owner != netfilter.Shared || kubelet) {
			continue
		}
		c.Count += n.N
		at := slices.IndexFunc(c.Tables, func(t TableChains) bool {
			return t.Table == n.Table && t.Family == p.Family && t.Backend == p.Backend
		})
		if at < 0 {
			at = len(c.Tables)
			c.Tables = append(c.Tables, TableChains{Family: p.Family, Backend: p.Backend, Table: n.Table})
		}
		c.Tables[at].N += n.N
	}
}

// KubeletShares holds for kubelets before 1.27, which keep KUBE-MARK-MASQ,
// KUBE-MARK-DROP and KUBE-POSTROUTING for themselves as well.
func KubeletShares(v *View) bool {
	nodes, _ := Nodes.From(v)
	for i := range nodes {
		if nodes[i].Name != v.Node() {
			continue
		}
		version, _, _ := strings.Cut(strings.TrimPrefix(nodes[i].Status.NodeInfo.KubeletVersion, "v"), "+")
		return netfilter.Older(version, "1.27.0")
	}
	return false
}

// Addresses are the endpoints of Services by "namespace/name"; those that are
// ready are true.
type Addresses map[string]map[netip.AddrPort]bool

// Has reports whether a Service has an endpoint at that address. A port of 0
// stands for any.
func (a Addresses) Has(service string, at netip.AddrPort) bool {
	have := a[service]
	if _, ok := have[at]; ok {
		return true
	}
	for ap := range have {
		if ap.Addr() == at.Addr() && (at.Port() == 0 || ap.Port() == 0) {
			return true
		}
	}
	return false
}

// Ready reports whether a Service has a ready endpoint.
func (a Addresses) Ready(service string) bool {
	for _, ready := range a[service] {
		if ready {
			return true
		}
	}
	return false
}

func (a Addresses) add(service, address string, port int32, ready bool) {
	ip, err := netip.ParseAddr(address)
	if err != nil || port < 0 || port > 65535 {
		return
	}
	if a[service] == nil {
		a[service] = map[netip.AddrPort]bool{}
	}
	at := netip.AddrPortFrom(ip.Unmap().WithZone(""), uint16(port))
	a[service][at] = a[service][at] || ready
}

// endpointAddresses takes Endpoints only where no slices were read.
func endpointAddresses(v *View) (Addresses, error) {
	out := Addresses{}
	sets, sliceErr := EndpointSlices.From(v)
	for i := range sets {
		s := &sets[i]
		service := s.Namespace + "/" + s.Labels["kubernetes.io/service-name"]
		for _, e := range s.Endpoints {
			ready := e.Conditions.Ready == nil || *e.Conditions.Ready
			for _, address := range e.Addresses {
				for _, p := range s.Ports {
					if p.Port != nil {
						out.add(service, address, *p.Port, ready)
					}
				}
				if len(s.Ports) == 0 {
					out.add(service, address, 0, ready)
				}
			}
		}
	}
	if sliceErr == nil {
		return out, nil
	}
	old, err := Endpoints.From(v)
	if err != nil {
		return nil, sliceErr
	}
	for i := range old {
		for _, s := range old[i].Subsets {
			for _, p := range s.Ports {
				for j, e := range slices.Concat(s.Addresses, s.NotReadyAddresses) {
					out.add(old[i].Namespace+"/"+old[i].Name, e.IP, p.Port, j < len(s.Addresses))
				}
			}
		}
	}
	return out, nil
}
