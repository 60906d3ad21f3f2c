package trace

import (
	"fmt"
	"slices"

	"github.com/kubectl-kpr/kubectl-kpr/internal/words"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// place is where a client stands, and so which rows it meets.
type place struct {
	client Client
	nodes  []*node // whose maps decide
	kinds  []kind
}

// kind is a kind of client as the datapath tells them apart.
type kind uint8

const (
	aPod kind = iota
	aHost
	anOutsider
)

// place finds the client's node.
func (w *world) place(c Client) (place, error) {
	p := place{client: c, nodes: w.nodes}
	switch c.Kind {
	case AnyClient, "":
		p.client.Kind = AnyClient
		p.kinds = []kind{aPod, aHost, anOutsider}
		return p, nil
	case OutsideClient:
		p.kinds = []kind{anOutsider}
		return p, nil
	case NodeClient:
		p.client.Node, p.kinds = c.Name, []kind{aHost}
	case PodClient:
		if c.Node == "" {
			known, ok := w.byName[lb.Name{Namespace: c.Namespace, Name: c.Name}]
			if !ok || known.node == "" {
				return p, w.noPod(c)
			}
			p.client.Node, p.client.HostNetwork = known.node, known.host
		}
		if p.kinds = []kind{aPod}; p.client.HostNetwork {
			p.kinds = []kind{aHost}
		}
	}
	i := slices.IndexFunc(w.nodes, func(n *node) bool { return n.name == p.client.Node })
	if i < 0 {
		names := make([]string, len(w.nodes))
		for i, n := range w.nodes {
			names[i] = n.name
		}
		return p, fmt.Errorf("client %s: node %q is not among the %s looked at%s", c.words(), p.client.Node, words.Count(len(names), "node"), meant(p.client.Node, names))
	}
	p.nodes = w.nodes[i : i+1]
	return p, nil
}

func (w *world) noPod(c Client) error {
	var names []string
	for name := range w.byName {
		if name.Namespace == c.Namespace {
			names = append(names, name.Name)
		}
	}
	return fmt.Errorf("client pod %s/%s: not among the pods known (those behind Services, and Cilium's)%s; name its node with --from node/NODE",
		c.Namespace, c.Name, meant(c.Name, names))
}

// only holds for clients of one kind.
func (p place) only(k kind) bool { return len(p.kinds) == 1 && p.kinds[0] == k }

// inside holds for clients that all are in the cluster.
func (p place) inside() bool { return !slices.Contains(p.kinds, anOutsider) }

// how a connection is translated.
type how uint8

const (
	howUnknown how = iota
	bySocketLB
	byPacket // where it leaves the pod
	byDevice // where it enters the node
	byProxy  // kube-proxy, not Cilium
	byNobody
)

// translates tells how the node translates connections of a kind of client.
func (n *node) translates(k kind) how {
	socket, hostOnly := lb.Unknown, lb.Unknown
	if n.status != nil {
		socket, hostOnly = switched(n.status.SocketLB), switched(n.status.SocketLBHostOnly)
		if socket == lb.Unknown && n.status.Mode == agent.ModeTrue {
			socket = lb.Yes // the replacement as a whole has it, also where old versions do not say so
		}
	}
	switch {
	case k == aPod && socket == lb.Yes && hostOnly != lb.Yes:
		return bySocketLB
	case k == aPod && (socket == lb.No || hostOnly == lb.Yes):
		return byPacket
	case k == aPod:
		return howUnknown
	case k == aHost && socket == lb.Yes:
		return bySocketLB
	case k == anOutsider && (n.view.NodePort == lb.Yes || n.view.NodePort == lb.Unknown && n.replaces() == lb.Yes):
		return byDevice
	case k == aHost && socket == lb.Unknown && n.replaces() != lb.No, k == anOutsider && n.view.NodePort == lb.Unknown && n.replaces() == lb.Unknown:
		return howUnknown
	}
	if n.proxy.Running == fact.No {
		return byNobody
	}
	return byProxy
}
