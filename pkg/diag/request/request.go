// Package request holds what became of real requests to a Service, and judges
// it: pure values, without any I/O.
//
// A Probe is a set of Paths. A Path is one client, one address that it dials
// and one way of asking, with its Tries. Beside the answers stand the backends
// that took them, the mechanism that translated the address, and what a trace
// said would happen. A path that nobody could try is Unknown and never ok.
package request

import (
	"net/netip"
	"time"
)

// Probe is what a run of requests has to say. Its JSON is part of the public
// report.
type Probe struct {
	Target string `json:"target"` // "service/shop/web", as trace has it
	Tries  int    `json:"tries"`  // of each path
	Paths  []Path `json:"paths"`
	// Left says what is on the cluster because of the probe, and until when.
	Left []string `json:"left,omitempty"`
	// Watch is over how long requests went on, zero for a probe that only
	// counts tries.
	Watch time.Duration `json:"watch,omitempty"` // nanoseconds
	// Matrix: the paths are one for each kind of frontend, client and node.
	Matrix bool `json:"matrix,omitempty"`
	// More are paths that were left out because there are too many.
	More int `json:"more,omitempty"`
}

// Client is who connects.
type Client struct {
	Kind      string `json:"kind"` // pod or node
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Node      string `json:"node"`
	// Via says how the request gets its start: "network namespace" (of the
	// pod, entered from the agent), "exec" (in a container of the pod),
	// "ephemeral container" (in the pod), or "host network".
	Via string `json:"via,omitempty"`
	// StandIn: a pod of ours connects in the place of the client, which to
	// Cilium is somebody else, with another identity.
	StandIn bool `json:"standIn,omitempty"`
}

// Vias.
const (
	ByNamespace = "network namespace"
	ByExec      = "exec"
	ByEphemeral = "ephemeral container"
	ByHost      = "host network"
)

// String is "pod shop/web-0" or "node w-1".
func (c Client) String() string {
	if c.Namespace != "" {
		return c.Kind + " " + c.Namespace + "/" + c.Name
	}
	return c.Kind + " " + c.Name
}

// Path is one client, one address and one way of asking.
type Path struct {
	Client  Client `json:"client"`
	Service string `json:"service"` // NAMESPACE/NAME, "" if none is known
	Port    string `json:"port,omitempty"`
	// Frontend is the kind of address: ClusterIP, NodePort, LoadBalancer,
	// ExternalIPs, HostPort; Local where its policy keeps to local backends.
	Frontend string         `json:"frontend"`
	Local    bool           `json:"local,omitempty"`
	Affinity bool           `json:"affinity,omitempty"`
	Entry    string         `json:"entry,omitempty"` // of NodePorts: the node whose address it is
	Address  netip.AddrPort `json:"address"`
	Protocol string         `json:"protocol"` // TCP or UDP
	Ask      Ask            `json:"ask"`
	// Guessed: the way of asking follows from the port's name or number, and
	// nobody said so. Any answer does then.
	Guessed bool `json:"askGuessed,omitempty"`

	State     State  `json:"state"`
	Text      string `json:"text"`
	Tries     []Try  `json:"tries,omitempty"`
	Good      int    `json:"good"`
	Bad       int    `json:"bad"`
	Latency   *Span  `json:"latency,omitempty"`
	Mechanism string `json:"mechanism,omitempty"` // see the constants
	Proof     string `json:"mechanismProof,omitempty"`
	// Spread counts the backends that answered, the most frequent first.
	Spread    []Share    `json:"spread,omitempty"`
	Predicted Prediction `json:"predicted"`
	Events    []Event    `json:"events,omitempty"`
	Gap       *Gap       `json:"gap,omitempty"` // of a watch: the longest time without an answer
	// Blind is for how long of a watch nobody could ask, because the place that
	// requests begin in was gone: an agent or container that restarts.
	Blind time.Duration `json:"blind,omitempty"` // nanoseconds
}

// Ask is how a path is asked.
type Ask string

// Ways of asking.
const (
	Connect Ask = "tcp"   // a TCP connection, nothing said
	HTTP    Ask = "http"  // GET
	HTTPS   Ask = "https" // a TLS handshake is answered
	DNS     Ask = "dns"   // a query that a resolver answers
	Echo    Ask = "udp"   // a datagram, and any answer
)

// State is what became of a path.
type State string

// The states of a path.
const (
	OK      State = "ok"     // every try was answered
	Some    State = "some"   // some were
	Failed  State = "failed" // none was
	Unknown State = "unknown"
)

// The mechanisms that translate a Service's address.
const (
	SocketLB  = "socket LB"
	PacketLB  = "per-packet LB"
	KubeProxy = "kube-proxy"
	ByDevice  = "NodePort LB at the device"
	None      = "none"
)

// Try is one request.
type Try struct {
	OK      bool           `json:"ok"`
	Took    time.Duration  `json:"took"`              // nanoseconds
	Error   string         `json:"error,omitempty"`   // why not: refused, timeout, …
	Late    bool           `json:"late,omitempty"`    // no answer in time
	Other   bool           `json:"other,omitempty"`   // an answer, but not of the protocol that was asked for
	Local   netip.AddrPort `json:"local,omitzero"`    // the client's socket
	Backend netip.AddrPort `json:"backend,omitzero"`  // by the kernel's socket, or by Cilium's or netfilter's flows
	Answer  string         `json:"answer,omitempty"`  // its first line, cleaned
	At      time.Time      `json:"at,omitzero"`       // of a watch
	Service bool           `json:"flow,omitempty"`    // Cilium's conntrack has it as a Service's flow
	NAT     bool           `json:"natFlow,omitempty"` // netfilter's has it, translated
}

// Share is how many answers came from a backend.
type Share struct {
	Address netip.AddrPort `json:"address"`
	Pod     string         `json:"pod,omitempty"`
	Node    string         `json:"node,omitempty"`
	Good    int            `json:"good"`
	Bad     int            `json:"bad,omitempty"`
}

// Span is the least, the middle and the greatest of some durations.
type Span struct {
	Min    time.Duration `json:"min"`
	Median time.Duration `json:"median"`
	Max    time.Duration `json:"max"`
}

// Prediction is what a trace says becomes of the path.
type Prediction struct {
	State string `json:"state,omitempty"` // of trace: ok, behind, nobody, stops, elsewhere, excluded, unknown
	Layer string `json:"layer,omitempty"`
	Text  string `json:"text,omitempty"`
	Share string `json:"share,omitempty"`
	// Backends that new connections may reach, as the maps or else the API have
	// them.
	Backends []Backend `json:"backends,omitempty"`
	// Contradicts: what happened is not what was said.
	Contradicts bool   `json:"contradicts,omitempty"`
	How         string `json:"how,omitempty"` // in which way
}

// Backend is one of the prediction.
type Backend struct {
	Address string `json:"address"`
	Pod     string `json:"pod,omitempty"`
	Node    string `json:"node,omitempty"`
}

// Event is something that an agent saw of the requests of a path.
type Event struct {
	Node   string         `json:"node"`
	Kind   string         `json:"kind"` // drop or policy-verdict
	Text   string         `json:"text"`
	From   netip.Addr     `json:"from,omitzero"`
	To     netip.AddrPort `json:"to,omitzero"`
	Denied bool           `json:"denied,omitempty"` // by a policy
	// Rule names the policies that select the end that refused, and so isolate
	// it, as kubectl names them: "networkpolicy/shop/deny".
	Rule string `json:"rule,omitempty"`
}

// Gap is a stretch of a watch without an answer.
type Gap struct {
	From   time.Time     `json:"from"`
	Length time.Duration `json:"length"` // nanoseconds
	Open   bool          `json:"open,omitempty"`
}
