package lb

import (
	"cmp"
	"net/netip"
	"slices"
)

// Table is what one layer says of one node: every frontend with its backends,
// sorted by address, each address once. It is a value; what it holds must not
// be changed, as equal tables of many nodes share it.
type Table struct {
	Layer Layer
	Rows  []Row
	// Absent names what a Service asks for and this node does not serve by
	// design. Only the desired layer tells.
	Absent []Absence

	// expanded: every node address that has NodePort rows is in the table.
	// Agents from 1.18 on list 0.0.0.0:PORT alone, and which addresses Cilium
	// chose is not always known.
	expanded bool
	// pods: the desired layer has seen the pods behind host ports.
	pods bool
	// health are frontends, sorted, that an agent may add for a Service's
	// health check.
	health []Address
	// prefixes are this cluster's pod ranges, sorted. They tell a global
	// Service's foreign backend from a stale one of our own.
	prefixes []netip.Prefix
}

// Layer is who speaks in a Table.
type Layer uint8

// The layers: what the API wants, what the agent believes, what the maps hold.
const (
	Desired Layer = iota + 1
	Agent
	Kernel
)

// String is "desired", "agent" or "kernel".
func (l Layer) String() string {
	switch l {
	case Desired:
		return "desired"
	case Agent:
		return "agent"
	case Kernel:
		return "kernel"
	}
	return "unknown layer"
}

// Row is one frontend of a Table. It is Frontend without the id, and with what
// a comparison has to know.
type Row struct {
	Address  Address
	Type     string // as in Frontend; "" where the source tells none
	Service  Name   // zero in the kernel layer
	PortName string // of the Service port; the desired layer only
	Cluster  string
	Flags    Flags
	// Entries are the backends, sorted by address. Rows share them.
	Entries []Entry
	Counts  Counts

	// Expansion marks the row of one node address that stands beside the
	// surrogate 0.0.0.0:PORT or [::]:PORT.
	Expansion bool
	// Wildcard marks the rows that catch unknown ports of a Service address
	// (1.19 and later).
	Wildcard bool
	// Global: backends of other clusters may stand here (ClusterMesh).
	Global bool
	// Redirect: who answers in place of the backends.
	Redirect Redirect
	// ProxyPort of the local Envoy that an L7 redirect goes to, else 0.
	ProxyPort int
	// Optional says in words why the row may be absent; "" if it must be there.
	Optional string
	// Cause and Reason say why Entries are not simply all ready endpoints. A
	// row without any backend that must be there always has a Cause.
	Cause  Cause
	Reason string
	// Claims are all owners that want this address, port and protocol, where
	// there is more than one: the maps hold one of them.
	Claims []Claim
}

// Entry is a backend as a Row holds it.
type Entry struct {
	Backend
	// Lost: the map's row points at backend ID, which is not in the backend
	// map; the address is unknown.
	Lost bool
	ID   int
	// Optional says in words why the backend may be absent; "" if it must be
	// there.
	Optional string
}

// Flags are a frontend's settings, each of them only as far as told.
type Flags struct {
	Affinity        Answer
	AffinityTimeout int // seconds; 0 where not told
	External        Policy
	Internal        Policy
	SourceCheck     Answer // "check source-range"
	Ranges          []netip.Prefix
	RangesTold      bool // without it an empty Ranges means nothing
}

// Policy is an internal or external traffic policy; "" where not told.
type Policy string

// The traffic policies.
const (
	Cluster Policy = "Cluster"
	Local   Policy = "Local"
)

// Counts are the numbers of a map's slot 0. Active backends take new
// connections; where all terminate, they count as active. Inactive ones keep
// theirs: they terminate or are quarantined. Active is -1 where there are no
// counts, Inactive is -1 where the version has none.
type Counts struct{ Active, Inactive int }

// Redirect is who answers in place of a Service's backends.
type Redirect uint8

// The redirects: none, the local Envoy (Gateway API, Ingress,
// CiliumEnvoyConfig), or a local redirect policy's pod.
const (
	Direct Redirect = iota
	L7Redirect
	LocalRedirect
)

// Claim is one owner of a contended frontend.
type Claim struct {
	Service Name
	Type    string
}

// Cause classifies why a row holds less than all ready endpoints, or why there
// is no row. It is a stable word for programs; Reason has the sentence.
type Cause string

// Why a row has no backends, or not all.
const (
	NoSlice       Cause = "no-slice"       // the Service has no EndpointSlice
	NoEndpoints   Cause = "no-endpoints"   // its slices are empty
	NoneReady     Cause = "none-ready"     // none is ready, none still serves
	AllDraining   Cause = "all-draining"   // all terminate; those that serve are used
	PortNames     Cause = "port-names"     // names of Service port and slice ports do not join
	FamilyMissing Cause = "family-missing" // endpoints in the other family only
	NoneLocal     Cause = "none-local"     // a Local policy, and no endpoint on the node
	Topology      Cause = "topology"       // hints or traffic distribution choose some of the endpoints
	TopologyUnmet Cause = "topology-unmet" // they cannot be followed on the node, so all are used
	Placeholder   Cause = "placeholder"    // the endpoint is a dummy; the local Envoy answers
	Contended     Cause = "contended"      // several owners, see Claims
)

// Why there is no row.
const (
	Headless       Cause = "headless"
	ExternalName   Cause = "external-name"
	OtherProxy     Cause = "other-proxy"     // service.kubernetes.io/service-proxy-name
	TypeAnnotation Cause = "type-annotation" // service.cilium.io/type
	NodeAnnotation Cause = "node-annotation" // service.cilium.io/node, node-selector
	FeatureOff     Cause = "feature-off"     // not served by Cilium on this node
	FamilyOff      Cause = "family-off"      // the node's agent has the family switched off
	NoIngress      Cause = "no-ingress"      // LoadBalancer without an address yet
	PortReserved   Cause = "port-reserved"   // hostPort inside the NodePort range
	Unreadable     Cause = "unreadable"      // an address that is none
)

// Absence is something that a Service or pod asks for and the node does not
// serve, by design.
type Absence struct {
	Service Name
	Type    string // the frontend kind that is absent, "" for all
	Cause   Cause
	Reason  string
}

// Find looks a frontend up by its exact address.
func (t Table) Find(a Address) (Row, bool) {
	i, ok := slices.BinarySearchFunc(t.Rows, a, func(r Row, a Address) int { return r.Address.Compare(a) })
	if !ok {
		return Row{}, false
	}
	return t.Rows[i], true
}

// Of gives the rows of one Service, in order.
func (t Table) Of(n Name) []Row {
	var rows []Row
	for _, r := range t.Rows {
		if r.Service == n {
			rows = append(rows, r)
		}
	}
	return rows
}

// Required reports whether any backend must be there.
func (r Row) Required() bool {
	return slices.ContainsFunc(r.Entries, func(e Entry) bool { return e.Optional == "" })
}

// Compare orders entries by address; lost ones have none and come first, by id.
func (e Entry) Compare(o Entry) int {
	return cmp.Or(e.Address.Compare(o.Address), cmp.Compare(e.ID, o.ID))
}

func sortEntries(es []Entry) {
	slices.SortFunc(es, Entry.Compare)
}

func sortRows(rows []Row) {
	byAddress := func(a, b Row) int { return a.Address.Compare(b.Address) }
	if !slices.IsSortedFunc(rows, byAddress) {
		slices.SortStableFunc(rows, byAddress)
	}
}

// surrogateOf is the row that stands for all node addresses of a's family.
func surrogateOf(a Address) Address {
	if a.IP.Is4() {
		a.IP = netip.IPv4Unspecified()
	} else {
		a.IP = netip.IPv6Unspecified()
	}
	return a
}

// nodePorts holds for the frontend types that have surrogates.
func nodePorts(typ string) bool { return typ == "NodePort" || typ == "HostPort" }
