package probe

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/request"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/trace"
)

// Wish says how the paths are to be asked.
type Wish struct {
	// Ask is one for all, "" for what each port's name and appProtocol say.
	Ask request.Ask
	// Remote adds NodePorts at another node's address.
	Remote bool
	// Max bounds the paths, 0 for no bound.
	Max int
}

// Trace follows the target on paper for the client. The error says that the
// question is wrong.
func Trace(v *fact.View, target trace.Target, c Client) (*trace.Trace, error) {
	from := trace.Client{Kind: trace.NodeClient, Name: c.Node, Node: c.Node}
	if c.Kind == "pod" {
		from = trace.Client{Kind: trace.PodClient, Namespace: c.Namespace, Name: c.Name, Node: c.Node, HostNetwork: c.IP == ""}
	}
	return trace.Of(v, target, from)
}

// Paths are the ways from a client to the target of a trace, each with what the
// trace says becomes of it: one for every address that this client can dial.
func Paths(v *fact.View, t *trace.Trace, c Client, w Wish) []request.Path {
	pl := planner{client: c, wish: w, nodes: addresses(v)}
	pl.services, _ = fact.Services.From(v)
	var out []request.Path
	for _, s := range t.Services {
		for _, f := range s.Frontends {
			for _, g := range f.Groups {
				if !slices.Contains(g.Nodes, c.Node) {
					continue
				}
				for _, p := range pl.paths(s, f, g) {
					// A row and its twin of the other scope are one to who dials.
					if !slices.ContainsFunc(out, func(o request.Path) bool { return o.Address == p.Address && o.Protocol == p.Protocol }) {
						out = append(out, p)
					}
				}
			}
		}
	}
	return out
}

// planner makes the paths of one client.
type planner struct {
	client   Client
	wish     Wish
	services []corev1.Service
	nodes    []nodeAddress
}

type nodeAddress struct {
	node string
	ip   netip.Addr
}

// addresses are the internal ones of the nodes, in their order.
func addresses(v *fact.View) []nodeAddress {
	var out []nodeAddress
	objects, _ := fact.Nodes.From(v)
	for _, n := range objects {
		for _, a := range n.Status.Addresses {
			if ip, err := netip.ParseAddr(a.Address); err == nil && a.Type == corev1.NodeInternalIP {
				out = append(out, nodeAddress{n.Name, ip.Unmap()})
			}
		}
	}
	return out
}

func (pl planner) paths(s trace.Service, f trace.Frontend, g trace.Group) []request.Path {
	written, protocol, _ := strings.Cut(f.Address, "/")
	protocol, _, _ = strings.Cut(protocol, "/")
	at, err := netip.ParseAddrPort(written)
	if err != nil || protocol == "SCTP" {
		return nil // nothing here speaks it
	}
	p := request.Path{
		Client: pl.client.Client, Frontend: f.Type, Port: f.PortName, Address: at, Protocol: cmp.Or(strings.TrimSuffix(protocol, "ANY"), "TCP"),
		Predicted: request.Prediction{State: string(g.State), Layer: string(g.Layer), Text: g.Text, Share: strings.TrimSpace(g.Share + " " + g.Outcome)},
	}
	if s.Name != "" {
		p.Service = s.Namespace + "/" + s.Name
	}
	for _, b := range g.Backends {
		if reachable(b) {
			p.Predicted.Backends = append(p.Predicted.Backends, request.Backend{Address: b.Address, Pod: b.Pod, Node: b.Node})
		}
	}
	p.Ask = pl.ask(p)
	p.Guessed = p.Ask != pl.wish.Ask
	p.Local, p.Affinity = pl.policies(p)
	if !at.Addr().IsUnspecified() {
		p.Address = at
		for _, n := range pl.nodes {
			if n.ip == at.Addr() {
				p.Entry = n.node
			}
		}
		return []request.Path{p}
	}
	return pl.atNodes(p)
}

// reachable holds for backends that new connections may get: those that the map
// has, or where it was not read what the layer above has.
func reachable(b trace.Backend) bool {
	for _, cell := range []string{b.Kernel, b.Agent, b.API} {
		switch cell {
		case trace.Unread, "":
			continue
		case trace.Missing, trace.LostWord:
			return false
		}
		return b.Address != ""
	}
	return false
}

// atNodes turns 0.0.0.0:PORT into the port at the client's own node and, where
// it is wished, at another one. A remote address of a Local policy is left out:
// socket LB translates it by the client's own node, which is not what a client
// of that node would meet.
func (pl planner) atNodes(p request.Path) []request.Path {
	var out []request.Path
	remote := false
	for _, n := range pl.nodes {
		if n.ip.Is4() != p.Address.Addr().Is4() {
			continue
		}
		switch own := n.node == pl.client.Node; {
		case own, !own && pl.wish.Remote && !remote && !p.Local:
			remote = remote || !own
			one := p
			one.Entry, one.Address = n.node, netip.AddrPortFrom(n.ip, p.Address.Port())
			out = append(out, one)
		}
	}
	return out
}

func (pl planner) object(name string) *corev1.Service {
	for i := range pl.services {
		if s := &pl.services[i]; s.Namespace+"/"+s.Name == name {
			return s
		}
	}
	return nil
}

func (pl planner) policies(p request.Path) (local, affinity bool) {
	s := pl.object(p.Service)
	if s == nil {
		return false, false
	}
	internal := s.Spec.InternalTrafficPolicy != nil && *s.Spec.InternalTrafficPolicy == corev1.ServiceInternalTrafficPolicyLocal
	external := s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
	if p.Frontend == "ClusterIP" {
		return internal, s.Spec.SessionAffinity == corev1.ServiceAffinityClientIP
	}
	return external, s.Spec.SessionAffinity == corev1.ServiceAffinityClientIP
}

// ask is the wish, or what the port is known to speak. Nothing is said to a
// port of which nothing is known: it may be anything.
func (pl planner) ask(p request.Path) request.Ask {
	udp := p.Protocol == "UDP"
	switch w := pl.wish.Ask; {
	case w != "" && (w == request.DNS || w == request.Echo) == udp:
		return w
	case w != "":
		// One wish and ports of both protocols: the others are asked as known.
	}
	app, port := "", uint16(0)
	if s := pl.object(p.Service); s != nil {
		for _, sp := range s.Spec.Ports {
			if sp.Name == p.Port && (sp.Protocol == corev1.ProtocolUDP) == udp {
				port = uint16(sp.Port)
				if sp.AppProtocol != nil {
					app = strings.ToLower(*sp.AppProtocol)
				}
			}
		}
	}
	is := func(word string) bool {
		return app == word || app == "" && (p.Port == word || strings.HasPrefix(p.Port, word+"-"))
	}
	switch {
	case udp && (is("dns") || port == 53):
		return request.DNS
	case udp:
		return request.Echo
	case is("https"):
		return request.HTTPS
	case is("http"):
		return request.HTTP
	}
	return request.Connect
}

// Bound keeps at most n paths and says how many were left out. Each client
// keeps some.
func Bound(paths []request.Path, n int) (kept []request.Path, left int) {
	if n <= 0 || len(paths) <= n {
		return paths, 0
	}
	return paths[:n], len(paths) - n
}

// ParseAsk reads the name of a way of asking; "auto" is none for all.
func ParseAsk(s string) (request.Ask, error) {
	if s == "" || s == "auto" {
		return "", nil
	}
	if a := request.Ask(s); slices.Contains(Asks(), a) {
		return a, nil
	}
	return "", fmt.Errorf("%q: want auto, tcp, http, https, dns or udp", s)
}

// Asks lists the ways of asking.
func Asks() []request.Ask {
	return []request.Ask{request.Connect, request.HTTP, request.HTTPS, request.DNS, request.Echo}
}
