package lb

import "net/netip"

// State is what an agent thinks of a backend. The empty State means that the
// source does not tell (service list up to 1.10, the plain map list).
type State string

// The states of a backend, as `service list` spells them. Quarantined was
// terminating's companion in 1.11 and 1.12; TerminatingNotServing came in 1.19.
const (
	Active                State = "active"
	Terminating           State = "terminating"
	TerminatingNotServing State = "terminating-not-serving"
	Quarantined           State = "quarantined"
	Maintenance           State = "maintenance"
)

// Backend is one endpoint behind a frontend.
type Backend struct {
	Address   Address
	State     State
	Weight    int // 0 where the source tells none; Cilium's default is 100
	Node      string
	Zone      string
	Preferred bool
}

// Name names a Service. The zero Name means that the source does not tell.
type Name struct{ Namespace, Name string }

// String is "namespace/name", or "" for the zero Name.
func (n Name) String() string {
	if n == (Name{}) {
		return ""
	}
	return n.Namespace + "/" + n.Name
}

// Frontend is one address that clients dial, with the backends behind it.
type Frontend struct {
	Address  Address
	Type     string // ClusterIP, NodePort, ExternalIPs, HostPort, LoadBalancer, LocalRedirect
	Service  Name
	Cluster  string // ClusterMesh cluster, "" for this one
	ID       int    // local to the node, never to be compared
	External string // externalTrafficPolicy as the agent has it: Cluster, Local or ""
	Internal string // internalTrafficPolicy likewise
	NAT      string // natPolicy: Nat46, Nat64 or ""

	HealthCheckNodePort int
	Backends            []Backend
}

// MapRow is one row of a node's service map (`bpf lb list`). Slot 0 is the
// master row: it carries the flags and no backend. Rows of Cilium 1.10 and
// older have no slot; theirs is -1 and Master tells the two apart.
type MapRow struct {
	Frontend Address
	Slot     int
	Master   bool
	Backend  Address // of rows that are not master, and zero if Lost
	Lost     bool    // "backend N not found": the row points at nothing
	ID       int     // the backend's id where the row prints one (Lost), else 0
	RevNAT   int
	Flags    []string // of the master row, in the order printed
	L7Port   int      // proxy port of an L7 load balanced frontend, else 0
}

// SlotRow is one row of `bpf lb list --frontends`: ids and counts instead of
// addresses. On the master row Value is the affinity timeout in seconds or the
// L7 proxy port, on others the backend's id.
type SlotRow struct {
	Frontend    Address
	Slot        int
	Value       int
	Count       int // backends in use; on the master row only
	Quarantined int // backends quarantined or terminating; on the master row only, -1 where the version prints none
	RevNAT      int
	Flags       [2]uint8
}

// MapBackend is one row of `bpf lb list --backends`. Cilium 1.14 and later
// print no port there: Port is 0 then.
type MapBackend struct {
	ID      int
	Address Address
	State   State // only where the source tells
}

// SourceRange is one row of `bpf lb list --source-ranges`.
type SourceRange struct {
	Prefix netip.Prefix
	RevNAT int
}

// RevNAT is one row of `bpf lb list --revnat`.
type RevNAT struct {
	ID      int
	Address Address
}

// TableRow is one row of the agent's frontends table (Cilium 1.18 and later).
// Status is the outcome of writing it to the maps: Done, Pending or Error.
type TableRow struct {
	Address    Address
	Type       string
	Service    Name
	Cluster    string // ClusterMesh cluster, "" for this one
	PortName   string
	Backends   []Backend
	More       int // backends left out by the text form, which prints five
	RedirectTo string
	Status     string
	Since      string // age as printed, or the RFC 3339 time of the JSON form
	Error      string
}

// Dump is `lb/maps-dump` of the agent's shell (Cilium 1.18 and later): every
// load-balancing map in one listing, backend states included.
type Dump struct {
	Backends     []MapBackend
	Rows         []DumpRow
	RevNAT       []RevNAT
	SourceRanges []SourceRange
	Affinity     []AffinityMatch
}

// DumpRow is one SVC line of a Dump. Backend is the backend's id, 0 on slot 0.
type DumpRow struct {
	Frontend        Address
	ID              int
	Slot            int
	Backend         int
	Count           int
	Quarantined     int
	AffinityTimeout int    // seconds; slot 0 only
	Algorithm       string // slot 0 only: undef, random, maglev
	L7Port          int
	Flags           []string
}

// AffinityMatch pairs a frontend id with a backend id that may be pinned.
type AffinityMatch struct{ ID, Backend int }

// MapCount is how many rows a map has, counted by somebody who did not keep the
// rows. Name is the kernel's, with neither "cilium_" nor version: lb4_services.
type MapCount struct {
	Name string
	Rows int
}
