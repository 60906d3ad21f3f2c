package trace

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
)

// Trace is the way of the connections to one target. Its JSON is part of the
// public report.
type Trace struct {
	// Target is what was asked for: "service/shop/web", "10.96.0.10:53/UDP",
	// "pod/shop/web-0".
	Target string `json:"target"`
	Client Client `json:"client"`
	// Found says in words what an address turned out to be.
	Found    string    `json:"found,omitempty"`
	Verdict  Verdict   `json:"verdict"`
	Services []Service `json:"services"`

	target Target
	faults map[fault]bool
}

// Verdict is the answer in one line, with what to do next.
type Verdict struct {
	State    State  `json:"state"`
	Severity string `json:"severity"` // error, warning or info
	Layer    Layer  `json:"layer,omitempty"`
	Text     string `json:"text"`
	Next     []Next `json:"next"`
}

// Next is a command that leads on.
type Next struct {
	Why  string   `json:"why"` // "look", "repair"
	Argv []string `json:"argv"`
	Note string   `json:"note,omitempty"` // what it does
}

// State is how a path ends.
type State string

// The states of a path, and of a trace the worst that counts.
const (
	// OK: the layers that decide agree, and somebody serves.
	OK State = "ok"
	// Behind: a layer holds something else than the one above it.
	Behind State = "behind"
	// Nobody: there is no endpoint, or nothing that translates.
	Nobody State = "nobody"
	// Stops: this client is not served here, by design.
	Stops State = "stops"
	// Elsewhere: kube-proxy serves this client; its rules are not looked at.
	Elsewhere State = "elsewhere"
	// Excluded: by design there is nothing for Cilium to serve.
	Excluded State = "excluded"
	// Unknown: something needed was not read.
	Unknown State = "unknown"
)

// Layer is one of the three that are compared.
type Layer string

// The layers, from the top.
const (
	API    Layer = "api"
	Agent  Layer = "agent"
	Kernel Layer = "kernel"
)

// Service is a traced Service with its frontends.
type Service struct {
	Namespace string `json:"namespace"`
	// Name is "" for a frontend that belongs to no Service known.
	Name      string     `json:"name"`
	Frontends []Frontend `json:"frontends"`
	// Absent says what the Service asks for and Cilium does not serve.
	Absent []Absent `json:"absent"`

	object *corev1.Service // nil where it was not read
	pod    bool            // it is a pod with host ports
}

// Absent is a kind of frontend that nodes do not serve, by design.
type Absent struct {
	Type  string   `json:"type,omitempty"` // "" for all
	State State    `json:"state"`          // excluded, elsewhere, nobody or unknown
	Text  string   `json:"text"`
	Nodes []string `json:"nodes"`
}

// Frontend is an address that clients dial, with what nodes make of it.
type Frontend struct {
	// Address as Cilium writes it: "10.96.0.1:443/TCP", with "/i" for the
	// internal scope. NodePorts are 0.0.0.0:PORT and [::]:PORT.
	Address string `json:"address"`
	// OnNodes: the rows of the nodes' own addresses, which Groups name, in
	// place of the row 0.0.0.0:PORT or [::]:PORT.
	OnNodes  bool    `json:"onNodes,omitempty"`
	Type     string  `json:"type"` // ClusterIP, NodePort, LoadBalancer, …
	PortName string  `json:"portName,omitempty"`
	Scope    string  `json:"scope,omitempty"` // internal or external where there are two rows
	Groups   []Group `json:"groups"`          // the worst first

	key front
}

// Group is nodes that hold the same for a frontend.
type Group struct {
	Nodes     []string `json:"nodes"`
	Addresses []string `json:"addresses,omitempty"` // of nodes, where the frontend is OnNodes
	State     State    `json:"state"`
	Severity  string   `json:"severity"`
	Layer     Layer    `json:"layer,omitempty"` // that is behind, or that has nobody
	Text      string   `json:"text"`
	// Share and Outcome say what becomes of new connections: "about a third
	// of new connections", "fail".
	Share    string    `json:"share,omitempty"`
	Outcome  string    `json:"outcome,omitempty"`
	Notes    []string  `json:"notes,omitempty"` // differences that are as they should be
	Paths    []Path    `json:"paths"`
	Layers   Layers    `json:"layers"`
	Backends []Backend `json:"backends"`

	serving    int  // backends that new connections reach
	redirected bool // another answers in their place
}

// Layers says of each layer whether it has the frontend: "present", "absent",
// "optional" (it may be absent) or "unread".
type Layers struct {
	API    string `json:"api"`
	Agent  string `json:"agent"`
	Kernel string `json:"kernel"`
}

// Words of Layers and of the cells of a Backend. A cell may also be a state:
// active, terminating, …
const (
	Present  = "present"
	Missing  = "absent"
	MayLack  = "optional"
	Unread   = "unread"
	LostWord = "lost"
)

// Backend is one endpoint as the three layers hold it.
type Backend struct {
	Address string `json:"address"` // "" for a lost one whose address is not known
	Pod     string `json:"pod,omitempty"`
	Node    string `json:"node,omitempty"`
	Zone    string `json:"zone,omitempty"`
	API     string `json:"api"`
	Agent   string `json:"agent"`
	Kernel  string `json:"kernel"`
	// Behind is the layer that is wrong about it, "" if none is.
	Behind Layer  `json:"behind,omitempty"`
	Note   string `json:"note,omitempty"`
}

// Path is the way of one kind of client, in words.
type Path struct {
	Client string `json:"client"` // "in the cluster", "from outside", "from pod shop/web-0"
	Hops   []Hop  `json:"hops"`
}

// Hop is one station of a Path.
type Hop struct {
	At   string `json:"at"` // client, frontend, choice, affinity, source, reply
	Text string `json:"text"`
}

// Facts are what a trace reads. Whoever traces has to have them collected.
func Facts() []fact.Named {
	return []fact.Named{
		fact.Services, fact.EndpointSlices, fact.Nodes, fact.Pods, fact.Desired, fact.AgentTable, fact.KernelTable,
		fact.Behind, fact.Unwritten, fact.FrontendsTable, fact.MapRows, fact.Status, fact.AgentOf, fact.KubeProxy,
		fact.NodeView, fact.WantedMode, fact.Config,
	}
}

// Of traces the target for the client on the nodes of the view. The error says
// that the question is wrong: no such Service, port, pod or node.
func Of(v *fact.View, target Target, from Client) (*Trace, error) {
	return follow(v, target, from, nil)
}

// Again looks at a Trace that found a layer behind once more, with facts read
// later. Only what both have stays: all else was a change under way.
func (t *Trace) Again(later *fact.View) (*Trace, error) {
	return follow(later, t.target, t.Client, t.faults)
}

func follow(v *fact.View, target Target, from Client, confirmed map[fault]bool) (*Trace, error) {
	w := newWorld(v)
	at, err := w.place(from)
	if err != nil {
		return nil, err
	}
	f, err := w.find(target)
	if err != nil {
		return nil, err
	}
	t := &Trace{
		Target: target.String(), Client: at.client, Found: f.words, Services: []Service{},
		target: target, faults: map[fault]bool{},
	}
	tr := tracer{world: w, at: at, found: f, confirmed: confirmed, faults: t.faults}
	for _, o := range f.owners {
		t.Services = append(t.Services, tr.service(o))
	}
	t.Verdict = tr.verdict(t)
	return t, nil
}
