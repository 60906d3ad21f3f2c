// Package agent holds what a Cilium agent says of itself, as plain values
// without I/O and without versions: `cilium-dbg status`, `version` and
// `config` of Cilium 1.9 to 1.20 decode into the same types.
package agent

import "net/netip"

// Mode is how much of kube-proxy an agent replaces.
type Mode string

// The modes. Cilium up to 1.13 said Strict for what 1.16 and later call True,
// and Disabled for False; 1.14 and 1.15 know both words. They are one fact, so
// Status.Mode holds only these four; Status.ModeSaid keeps the agent's word.
const (
	ModeTrue    Mode = "True"
	ModePartial Mode = "Partial"
	ModeProbe   Mode = "Probe"
	ModeFalse   Mode = "False"
)

// Switch is a setting that an agent reports as on or off, or does not report.
type Switch uint8

// The positions of a Switch. NotTold is the zero value: a version that does
// not print a line is not a version in which the feature is off.
const (
	NotTold Switch = iota
	Off
	On
)

// String is "on", "off" or "not told".
func (s Switch) String() string {
	switch s {
	case On:
		return "on"
	case Off:
		return "off"
	}
	return "not told"
}

// Of is On for true and Off for false.
func Of(b bool) Switch {
	if b {
		return On
	}
	return Off
}

// Component is one health line of the status: state and message.
type Component struct {
	State   string // Ok, Warning, Failure, Disabled; "" where the status has no such line
	Message string
}

// Device is a network device that the agent balances NodePort traffic on.
type Device struct {
	Name      string
	Addresses []netip.Addr
	Direct    bool // the direct routing device
}

// Status is one agent's `status --verbose` or `status -o json`.
type Status struct {
	Cilium     Component // overall health; the message begins with the version
	Kubernetes Component
	KVStore    Component
	Version    string // "1.20.2" from the Cilium line, "" if it tells none
	KubeVer    string // Kubernetes version as the agent sees it, "v1.34.3"
	APIs       []string

	Mode     Mode   // "" if the status has no KubeProxyReplacement line
	ModeSaid string // the agent's own word: Strict, Disabled, …

	Devices       []Device
	DirectRouting string // device name, "" if none is marked

	SocketLB         Switch
	SocketLBTracing  Switch
	SocketLBHostOnly Switch   // On: coverage "Hostns-only"; Off: "Full"
	SocketLBProtos   []string // up to 1.12
	LBMode           string   // SNAT, DSR, Hybrid
	DSRDispatch      string
	Algorithm        string // Random, Maglev
	MaglevSize       int
	XDP              string // acceleration: Disabled, None, Native, Generic, Best-Effort
	Affinity         Switch
	Graceful         Switch
	NAT46            Switch
	Annotations      []string

	ClusterIP, NodePort, LoadBalancer, ExternalIPs, HostPort Switch
	NodePortMin, NodePortMax                                 int

	NetworkRouting string // Native, Tunnel
	TunnelProtocol string
	HostRouting    string // BPF, Legacy; "" where not told

	Masquerade Masquerade
	PodRanges  []netip.Prefix // what the node's pods get their addresses from

	AttachMode   string // TCX, Legacy (1.16 and later)
	DatapathMode string
	Encryption   string

	Controllers       int // how many there are
	FailedControllers []Controller
	Maps              []MapSize
	ModulesDegraded   int // 1.15 and later; -1 where not told
	ClusterReachable  int // health probe: nodes reached, of ClusterNodes; -1 where not told
	ClusterNodes      int

	// Unread are lines of the text form that no rule knew. They are kept so
	// that nothing is dropped in silence.
	Unread []string
}

// Masquerade is who rewrites the source of pods' traffic to the outside.
type Masquerade struct {
	Mode       string // BPF, iptables, Disabled; "" where not told
	Devices    []string
	IPv4, IPv6 Switch
	Exclude    []netip.Prefix // snat-exclusion CIDRs
	Agent      Switch         // ip-masq-agent
}

// Controller is a control loop of the agent whose last run failed.
type Controller struct {
	Name     string
	Failures int
	Error    string
}

// MapSize is the capacity of one BPF map, in rows.
type MapSize struct {
	Name string
	Size int
}

// Version is `version`: the CLI's own and the running agent's.
type Version struct{ Client, Daemon string }

// Config is `config`: the running agent's settings, key as printed.
type Config map[string]string
