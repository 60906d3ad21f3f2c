// Package report holds the Document: everything that a run has to say, in one
// value. Every output format is a function of it, and its JSON is a public,
// versioned schema. Reading that JSON back gives the same Document.
package report

import (
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/request"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/trace"
)

// SchemaVersion names the form of the JSON. Fields are only added within it.
const SchemaVersion = "kpr.report/v1"

// Document is what a run has to say.
type Document struct {
	SchemaVersion string         `json:"schemaVersion"`
	Command       string         `json:"command"` // status, check, trace
	Tool          string         `json:"tool"`    // version of the program
	Time          time.Time      `json:"time"`    // of the run
	Source        source.About   `json:"source"`
	Cilium        []string       `json:"cilium"` // versions seen, sorted
	Verdict       Verdict        `json:"verdict"`
	Findings      []Finding      `json:"findings"`
	Waived        []Waived       `json:"waived,omitempty"` // findings that do not count
	Gaps          []Gap          `json:"gaps"`
	Notes         []string       `json:"notes"`
	Checks        []Check        `json:"checks"`
	Nodes         []Node         `json:"nodes"`
	NodeCount     int            `json:"nodeCount"`              // nodes looked at
	Skipped       int            `json:"skippedNodes,omitempty"` // left out by --node or -l
	Trace         *trace.Trace   `json:"trace,omitempty"`        // of the command trace
	Probe         *request.Probe `json:"probe,omitempty"`        // of the command probe
	Settings      *Settings      `json:"settings,omitempty"`     // of the command config
	Stage         *Stage         `json:"stage,omitempty"`        // of the commands preflight and verify
	Diff          *Diff          `json:"diff,omitempty"`         // of the command diff
}

// Outcome is the verdict in one word.
type Outcome string

// The outcomes of a run, the worst that holds.
const (
	OK      Outcome = "ok"
	Found   Outcome = "found"
	Unknown Outcome = "unknown"
)

// Verdict is the answer before the evidence.
type Verdict struct {
	Outcome  Outcome `json:"outcome"`
	ExitCode int     `json:"exitCode"`
	Text     string  `json:"text"`
	FailOn   string  `json:"failOn"` // the least severity that makes the outcome found
	Errors   int     `json:"errors"`
	Warnings int     `json:"warnings"`
	Infos    int     `json:"infos"`
}

// Finding is a rule found broken.
type Finding struct {
	Key      string     `json:"key"`
	Rule     string     `json:"rule"`
	Severity string     `json:"severity"` // error, warning, info
	Subject  string     `json:"subject"`
	Node     string     `json:"node,omitempty"`
	Address  string     `json:"address,omitempty"` // the backend or frontend it is about
	Message  string     `json:"message"`
	Next     []string   `json:"next,omitempty"` // argv
	Evidence []fact.Ref `json:"evidence"`
}

// Gap is something needed that could not be had.
type Gap struct {
	What   string   `json:"what"`            // the fact
	Topic  string   `json:"topic,omitempty"` // the evidence
	Node   string   `json:"node,omitempty"`
	Class  string   `json:"class"` // absent, forbidden, unreachable, cut, undecided
	Reason string   `json:"reason"`
	Checks []string `json:"checks"`
}

// Check is the outcome of one check.
type Check struct {
	Name    string   `json:"name"`
	Outcome string   `json:"outcome"` // ok, found, not applicable, unknown
	Rules   []string `json:"rules"`
}

// Node is what is known of one node. A nil or empty field is not known, and
// Unknown says why.
type Node struct {
	Name       string      `json:"name"`
	Agent      Agent       `json:"agent"`
	KPR        *KPR        `json:"kpr,omitempty"`
	Masquerade *Masquerade `json:"masquerade,omitempty"`
	Routing    *Routing    `json:"routing,omitempty"`
	APIServer  string      `json:"apiServer,omitempty"`
	KubeProxy  KubeProxy   `json:"kubeProxy"`
	Services   *Services   `json:"services,omitempty"` // nil where the layers were not compared
	Residue    *Residue    `json:"residue,omitempty"`  // of the command residue
	Unknown    []string    `json:"unknown,omitempty"`  // reasons, one for each thing not known
}

// Agent is the Cilium agent of a node.
type Agent struct {
	State    string `json:"state"` // running, not ready, down, not wanted, unknown
	Health   string `json:"health,omitempty"`
	Message  string `json:"message,omitempty"`
	Pod      string `json:"pod,omitempty"`
	Version  string `json:"version,omitempty"`
	Restarts int    `json:"restarts,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// KPR is an agent's kube-proxy replacement. Switches are "on", "off" or "".
type KPR struct {
	Mode          string   `json:"mode"` // True, Partial, Probe, False
	Said          string   `json:"said"` // the agent's own word
	SocketLB      string   `json:"socketLB,omitempty"`
	Coverage      string   `json:"socketLBCoverage,omitempty"` // Full, Hostns-only
	Devices       []Device `json:"devices,omitempty"`
	DirectRouting string   `json:"directRoutingDevice,omitempty"`
	LBMode        string   `json:"lbMode,omitempty"`
	DSRDispatch   string   `json:"dsrDispatch,omitempty"`
	Algorithm     string   `json:"algorithm,omitempty"`
	XDP           string   `json:"xdp,omitempty"`
	NodePort      string   `json:"nodePort,omitempty"`
	NodePortRange string   `json:"nodePortRange,omitempty"`
	LoadBalancer  string   `json:"loadBalancer,omitempty"`
	ExternalIPs   string   `json:"externalIPs,omitempty"`
	HostPort      string   `json:"hostPort,omitempty"`
	Affinity      string   `json:"sessionAffinity,omitempty"`
}

// Device is a network device that NodePort traffic is balanced on.
type Device struct {
	Name      string   `json:"name"`
	Addresses []string `json:"addresses"`
}

// Masquerade is who rewrites the source of traffic that leaves the cluster.
type Masquerade struct {
	Mode    string   `json:"mode"` // BPF, iptables, Disabled
	IPv4    string   `json:"ipv4,omitempty"`
	IPv6    string   `json:"ipv6,omitempty"`
	Devices []string `json:"devices,omitempty"`
}

// Routing is how packets move between and within nodes.
type Routing struct {
	Network string `json:"network,omitempty"` // Native, Tunnel
	Tunnel  string `json:"tunnel,omitempty"`
	Host    string `json:"host,omitempty"` // BPF, Legacy
}

// Services is how a node's frontends and backends compare with what the API
// wants and with what its maps hold.
type Services struct {
	InSync      bool     `json:"inSync"`
	Differences []string `json:"differences,omitempty"` // "10.244.2.77:8080/TCP differs in the map"
}

// KubeProxy is what is known of kube-proxy on a node.
type KubeProxy struct {
	Running string   `json:"running"` // yes, no, not known
	As      string   `json:"as,omitempty"`
	Mode    string   `json:"mode,omitempty"`
	Proof   []string `json:"proof,omitempty"`
	Missing string   `json:"missing,omitempty"`
}
