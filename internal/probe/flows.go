package probe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/kubectl-kpr/kubectl-kpr/internal/cilium"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/request"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/exec"
)

// maxFlows bounds how many sockets a node is asked for.
const maxFlows = 64

// flows asks the nodes of the clients how they translated what socket LB did
// not: a socket that is connected to the very address that was dialled.
func (p *Prober) flows(ctx context.Context, paths []request.Path) {
	byNode := map[string][]*request.Try{}
	for i := range paths {
		path := &paths[i]
		for k := range path.Tries {
			t := &path.Tries[k]
			if node := path.Client.Node; t.Local.IsValid() && t.Backend == path.Address && len(byNode[node]) < maxFlows {
				byNode[node] = append(byNode[node], t)
			}
		}
	}
	slots := make(chan struct{}, p.concurrency())
	var wg sync.WaitGroup
	for node, tries := range byNode {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			argv := cilium.FlowsArgv()
			for _, t := range tries {
				argv = append(argv, t.Local.Addr().String(), strconv.Itoa(int(t.Local.Port())))
			}
			// Without an answer the mechanism stays unknown, and is shown so.
			if out, err := p.output(ctx, node, argv); err == nil {
				tracked(out, tries)
			}
		})
	}
	wg.Wait()
}

// output runs argv in an agent and returns what it prints, 1 MiB at most.
func (p *Prober) output(ctx context.Context, node string, argv []string) ([]byte, error) {
	out := &head{max: 1 << 20}
	code, err := p.Agents.Exec(ctx, node, argv, exec.Streams{Stdout: out})
	switch {
	case err != nil:
		return nil, err
	case code != 0:
		return nil, fmt.Errorf("node %s: %s: exit code %d: %w", node, argv[0], code, source.ErrUnreachable)
	}
	return []byte(out.String()), nil
}

// tracked notes of each try whose flow it is, and the backend.
func tracked(out []byte, tries []*request.Try) {
	ours, netfilter, _ := bytes.Cut(out, []byte("netfilter\n"))
	rows, _ := cilium.DecodeConntrack(ours) // what cannot be read proves nothing
	for _, t := range tries {
		dialled := t.Backend
		for _, r := range rows {
			if r.From != t.Local {
				continue
			}
			switch r.Direction {
			case lb.ServiceEntry:
				t.Service = true
			case lb.Outward:
				if r.To != dialled {
					t.Backend = r.To
				}
			}
		}
		for line := range strings.Lines(string(netfilter)) {
			if to, err := natOf(line, t.Local, dialled); err == nil {
				t.NAT = true
				t.Backend = to
			}
		}
	}
}

// natOf reads a line of nf_conntrack: "… src=A dst=B sport=1 dport=2 src=C
// dst=D sport=3 dport=4 …", the second half as seen by the one who answers. It
// is the backend's address where the flow from the client to the dialled address
// was translated.
func natOf(line string, from, dialled netip.AddrPort) (netip.AddrPort, error) {
	var ips []netip.Addr
	var ports []uint16
	for _, w := range strings.Fields(line) {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "src", "dst":
			ip, err := netip.ParseAddr(value)
			if err != nil {
				return netip.AddrPort{}, err
			}
			ips = append(ips, ip)
		case "sport", "dport":
			n, err := strconv.ParseUint(value, 10, 16)
			if err != nil {
				return netip.AddrPort{}, err
			}
			ports = append(ports, uint16(n))
		}
	}
	if len(ips) != 4 || len(ports) != 4 {
		return netip.AddrPort{}, errors.New("no flow with ports")
	}
	if to := netip.AddrPortFrom(ips[2], ports[2]); netip.AddrPortFrom(ips[0], ports[0]) == from && netip.AddrPortFrom(ips[1], ports[1]) == dialled && to != dialled {
		return to, nil
	}
	return netip.AddrPort{}, errors.New("another flow")
}

// sortedNodes are the nodes of the paths' clients.
func sortedNodes(paths []request.Path) []string {
	var nodes []string
	for _, p := range paths {
		if !slices.Contains(nodes, p.Client.Node) {
			nodes = append(nodes, p.Client.Node)
		}
	}
	slices.Sort(nodes)
	return nodes
}
