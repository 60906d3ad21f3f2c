package trace

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// Target is what is traced: a Service, a pod's Services, or an address.
type Target struct {
	Kind            TargetKind
	Namespace, Name string
	Port            string // of a Service: its number or name, "" for all
	IP              netip.Addr
	PortNumber      uint16      // of an address, 0 for all
	Protocol        lb.Protocol // of an address; ANY for all
}

// TargetKind is what a Target is.
type TargetKind string

// The kinds of targets.
const (
	ServiceTarget TargetKind = "service"
	PodTarget     TargetKind = "pod"
	AddressTarget TargetKind = "address"
)

// String is the target in the words of a report.
func (t Target) String() string {
	switch t.Kind {
	case AddressTarget:
		if t.PortNumber == 0 {
			return t.IP.String()
		}
		return lb.Address{IP: t.IP, Port: t.PortNumber, Protocol: t.Protocol}.String()
	case ServiceTarget:
		if t.Port != "" {
			return fmt.Sprintf("service/%s/%s:%s", t.Namespace, t.Name, t.Port)
		}
	}
	return fmt.Sprintf("%s/%s/%s", t.Kind, t.Namespace, t.Name)
}

var (
	serviceWords = []string{"svc", "service", "services"}
	podWords     = []string{"po", "pod", "pods"}
	nodeWords    = []string{"no", "node", "nodes"}
)

// ParseTarget reads svc/NAME[:PORT], NAME[:PORT], pod/NAME, an IP address,
// IP:PORT[/PROTOCOL] or [IPv6]:PORT[/PROTOCOL]. Names may have their namespace
// in front, TYPE/NAMESPACE/NAME, as reports print them; else it is namespace.
func ParseTarget(s, namespace string) (Target, error) {
	if t, ok, err := parseAddress(s); ok {
		return t, err
	}
	parts := strings.Split(s, "/")
	kind, rest := "svc", parts
	if len(parts) > 1 {
		kind, rest = strings.ToLower(parts[0]), parts[1:]
	}
	t := Target{Kind: ServiceTarget, Namespace: namespace}
	switch {
	case slices.Contains(podWords, kind):
		t.Kind = PodTarget
	case !slices.Contains(serviceWords, kind) && len(parts) == 2:
		return t, fmt.Errorf("target %q: %q is no type that is traced; the Service %s of a namespace %s is: svc/%s -n %s", s, parts[0], parts[1], parts[0], parts[1], parts[0])
	case !slices.Contains(serviceWords, kind):
		return t, fmt.Errorf("target %q: want svc/NAME[:PORT], pod/NAME or an address", s)
	}
	switch len(rest) {
	case 1:
		t.Name = rest[0]
	case 2:
		t.Namespace, t.Name = rest[0], rest[1]
	default:
		return t, fmt.Errorf("target %q: want svc/NAME[:PORT], pod/NAME or an address", s)
	}
	if t.Kind == ServiceTarget {
		if name, port, ok := strings.Cut(t.Name, ":"); ok {
			t.Name, t.Port = name, port
			if !plainName(port) {
				return t, fmt.Errorf("target %q: port %q is neither a number nor a name", s, port)
			}
		}
	}
	if !plainName(t.Name) || !plainName(t.Namespace) {
		return t, fmt.Errorf("target %q: not a name that Kubernetes allows", s)
	}
	return t, nil
}

// parseAddress tells whether s is meant as an address, and reads it.
func parseAddress(s string) (t Target, ok bool, err error) {
	if ip, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return Target{Kind: AddressTarget, IP: ip.Unmap().WithZone(""), Protocol: lb.ANY}, true, nil
	}
	addr, protocol, _ := strings.Cut(s, "/")
	i := strings.LastIndexByte(addr, ':')
	if i < 0 {
		return Target{}, false, nil
	}
	ip, ipErr := netip.ParseAddr(strings.Trim(addr[:i], "[]"))
	if ipErr != nil {
		return Target{}, false, nil
	}
	port, err := strconv.ParseUint(addr[i+1:], 10, 16)
	if err != nil || port == 0 {
		return Target{}, true, fmt.Errorf("target %q: port %q is no number from 1 to 65535", s, addr[i+1:])
	}
	p, err := lb.ParseProtocol(protocol)
	if err != nil {
		return Target{}, true, fmt.Errorf("target %q: %w", s, err)
	}
	return Target{Kind: AddressTarget, IP: ip.Unmap().WithZone(""), PortNumber: uint16(port), Protocol: p}, true, nil
}

// Client is who connects. Without a Kind it is everybody.
type Client struct {
	Kind      ClientKind `json:"kind"`
	Namespace string     `json:"namespace,omitempty"`
	Name      string     `json:"name,omitempty"`
	// Node is the node of a pod. Who traces may fill it in where he knows it;
	// else it is looked for in the facts.
	Node string `json:"node,omitempty"`
	// HostNetwork: the pod is in the network namespace of its node.
	HostNetwork bool `json:"hostNetwork,omitempty"`
}

// ClientKind is the kind of a Client.
type ClientKind string

// The kinds of clients.
const (
	AnyClient     ClientKind = "any"
	PodClient     ClientKind = "pod"
	NodeClient    ClientKind = "node"
	OutsideClient ClientKind = "outside"
)

// ParseClient reads pod/NAME, pod/NAMESPACE/NAME, node/NAME, outside, or
// nothing for every kind.
func ParseClient(s, namespace string) (Client, error) {
	wrong := fmt.Errorf("client %q: want pod/NAME, pod/NAMESPACE/NAME, node/NAME or outside", s)
	kind, name, named := strings.Cut(s, "/")
	c := Client{Name: name}
	switch kind = strings.ToLower(kind); {
	case s == "":
		return Client{Kind: AnyClient}, nil
	case kind == "outside" && !named:
		return Client{Kind: OutsideClient}, nil
	case slices.Contains(nodeWords, kind):
		c.Kind, c.Node = NodeClient, name
	case slices.Contains(podWords, kind):
		c.Kind, c.Namespace = PodClient, namespace
		if ns, pod, ok := strings.Cut(name, "/"); ok {
			c.Namespace, c.Name = ns, pod
		}
	default:
		return c, wrong
	}
	if !plainName(c.Name) || c.Kind == PodClient && !plainName(c.Namespace) {
		return c, wrong
	}
	return c, nil
}

// words is the client in a sentence: "from pod shop/web-0 on w-1".
func (c Client) words() string {
	switch c.Kind {
	case PodClient:
		s := "from pod " + c.Namespace + "/" + c.Name
		if c.Node != "" {
			s += " on " + c.Node
		}
		return s
	case NodeClient:
		return "from node " + c.Name
	case OutsideClient:
		return "from outside"
	}
	return ""
}

// plainName holds for DNS-1123 subdomains, which are safe in a command line.
func plainName(s string) bool {
	if s == "" || len(s) > 253 || s[0] == '-' || s[0] == '.' {
		return false
	}
	for _, r := range s {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '.' {
			return false
		}
	}
	return true
}
