//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/trace"
)

// client is somebody who connects: as trace is told, and as it is done.
type client struct {
	from string   // trace's --from
	node string   // where it is, or where its packets enter
	argv []string // what starts the lab's client program there
}

// nodeAddresses are those of test/lab.
func nodeAddresses() map[string][2]string {
	return map[string][2]string{
		"kpr-cp": {"172.30.0.11", "fd00:30::11"},
		"kpr-w1": {"172.30.0.12", "fd00:30::12"},
		"kpr-w2": {"172.30.0.13", "fd00:30::13"},
	}
}

// clients are a pod, a process of the node's own namespace and somebody outside
// for each of two nodes.
func clients(t *testing.T) []client {
	t.Helper()
	program := filepath.Join(filepath.Dir(theLab.kubeconfig), "bin", "echo")
	var all []client
	for _, node := range []string{"kpr-w1", "kpr-w2"} {
		pod := strings.TrimSpace(theLab.kubectl(t, "-n", "shop", "get", "pods", "-l", "app=client", "--field-selector", "spec.nodeName="+node, "-o", "jsonpath={.items[0].metadata.name}"))
		all = append(all,
			client{"pod/shop/" + pod, node, []string{theLab.labBin, "kubectl", "-n", "shop", "exec", pod, "--", "/echo"}},
			client{"node/" + node, node, []string{theLab.labBin, "in", node, "--", program}},
			client{"outside", node, []string{"ip", "netns", "exec", "kpr-fabric", program}})
	}
	return all
}

// TestTracePredicts asks trace what becomes of a connection to every frontend
// of every Service of shop, and then connects.
func TestTracePredicts(t *testing.T) {
	for _, name := range []string{"kpr", "backend-lost", "local-policy"} {
		if name != "kpr" && !full() {
			t.Logf("state %s is raised by make e2e-full only", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			enter(t, name)
			giveAddress(t)
			var services struct {
				Items []struct {
					Metadata struct{ Name string }
					Spec     struct{ ClusterIP, Type string }
				}
			}
			if err := json.Unmarshal([]byte(theLab.kubectl(t, "-n", "shop", "get", "svc", "-o", "json")), &services); err != nil {
				t.Fatal(err)
			}
			tried, outcomes := 0, map[trace.State]int{}
			for _, c := range clients(t) {
				for _, s := range services.Items {
					if s.Spec.ClusterIP == "None" || s.Spec.Type == "ExternalName" {
						continue
					}
					for _, p := range predictions(t, c, s.Metadata.Name) {
						outcomes[p.group.State]++
						tried += p.check(t, c, s.Metadata.Name)
					}
				}
			}
			t.Logf("%d connections to frontends predicted: %v", tried, outcomes)
			if tried < 50 {
				t.Errorf("only %d frontends were tried", tried)
			}
		})
	}
	enter(t, "kpr")
}

// giveAddress gives shop/web-local the address that a cloud would.
func giveAddress(t *testing.T) {
	t.Helper()
	theLab.kubectl(t, "-n", "shop", "patch", "svc/web-local", "--subresource=status", "--type=merge", "-p", `{"status":{"loadBalancer":{"ingress":[{"ip":"172.30.0.102"}]}}}`)
	t.Cleanup(func() {
		theLab.kubectl(t, "-n", "shop", "patch", "svc/web-local", "--subresource=status", "--type=merge", "-p", `{"status":{"loadBalancer":null}}`)
	})
}

// prediction is what trace says of one address for one client.
type prediction struct {
	target netip.AddrPort
	udp    bool
	group  trace.Group
}

// predictions runs trace and takes of every frontend the group of the client's
// node.
func predictions(t *testing.T, c client, service string) []prediction {
	t.Helper()
	a := kpr(t, "trace", "svc/"+service, "-n", "shop", "--from", c.from, "--settle", "0", "-o", "json")
	var doc struct{ Trace trace.Trace }
	if err := json.Unmarshal([]byte(a.stdout), &doc); err != nil {
		t.Fatalf("trace svc/%s --from %s: exit code %d: %v\n%s", service, c.from, a.code, err, a.stderr)
	}
	var out []prediction
	for _, s := range doc.Trace.Services {
		for _, f := range s.Frontends {
			for _, g := range f.Groups {
				if slices.Contains(g.Nodes, c.node) {
					out = append(out, predictionsOf(t, c, f, g, !strings.Contains(service, "local"))...)
				}
			}
		}
	}
	if len(out) == 0 {
		t.Errorf("trace svc/%s --from %s says nothing about %s", service, c.from, c.node)
	}
	return out
}

// predictionsOf reads "10.96.0.1:80/TCP" or "[::]:30080/TCP/i". A NodePort is
// dialled at the node's own address, and from inside also at another node's:
// socket LB translates that on the client's node, unless the policy is Local.
func predictionsOf(t *testing.T, c client, f trace.Frontend, g trace.Group, anyNode bool) []prediction {
	t.Helper()
	address, protocol, _ := strings.Cut(f.Address, "/")
	target, err := netip.ParseAddrPort(address)
	if err != nil {
		t.Fatalf("frontend %q: %v", f.Address, err)
	}
	udp := strings.HasPrefix(protocol, "UDP")
	if !target.Addr().IsUnspecified() {
		return []prediction{{target, udp, g}}
	}
	family := 0
	if target.Addr().Is6() {
		family = 1
	}
	var out []prediction
	for _, node := range []string{c.node, "kpr-cp"} {
		if node == c.node || anyNode && c.from != "outside" {
			out = append(out, prediction{netip.AddrPortFrom(netip.MustParseAddr(nodeAddresses()[node][family]), target.Port()), udp, g})
		}
	}
	return out
}

// check connects and compares; it returns how many addresses were tried.
func (p prediction) check(t *testing.T, c client, service string) int {
	t.Helper()
	var good, bad int
	what := fmt.Sprintf("%s at %s from %s by %s: trace says %s (%s, %s %s)", service, p.target, c.from, c.node, p.group.State, p.group.Text, p.group.Share, p.group.Outcome)
	switch p.group.State {
	case trace.OK:
		if good, bad = p.dial(t, c, 6); bad > 0 {
			t.Errorf("%s, but %d of %d requests failed", what, bad, good+bad)
		}
	case trace.Stops, trace.Nobody, trace.Excluded:
		if good, bad = p.dial(t, c, 1); good > 0 {
			t.Errorf("%s, but %d of %d requests succeeded", what, good, good+bad)
		}
	case trace.Behind:
		if strings.HasPrefix(p.group.Outcome, "wait") {
			p.slow(t, c, what)
			break
		}
		if good, bad = p.dial(t, c, 24); bad == 0 || good == 0 && !strings.Contains(p.group.Share, "all") {
			t.Errorf("%s, but %d of %d requests failed", what, bad, good+bad)
		}
	default:
		t.Errorf("%s: no prediction", what)
		return 0
	}
	return 1
}

// slow connects one by one: some wait for their first packet to be sent again,
// and those that do not wait are quick.
func (p prediction) slow(t *testing.T, c client, what string) {
	t.Helper()
	waited, quick := 0, 0
	for range 20 {
		start := time.Now()
		if good, _ := p.dial(t, c, 1); good == 1 && time.Since(start) < 900*time.Millisecond {
			quick++
		} else {
			waited++
		}
	}
	if waited == 0 || quick == 0 {
		t.Errorf("%s, but %d of 20 requests waited", what, waited)
	}
}

// dial makes requests; the answer of each is a line "POD from ADDRESS" or
// "error: …".
func (p prediction) dial(t *testing.T, c client, n int) (good, bad int) {
	t.Helper()
	address := net.JoinHostPort(p.target.Addr().String(), strconv.Itoa(int(p.target.Port())))
	args := []string{"-get", "http://" + address, "-n", strconv.Itoa(n)}
	if p.udp {
		args = []string{"-send", address, "-n", strconv.Itoa(n)}
	}
	if c.from == "outside" {
		undo := route(t, c.node, p.target.Addr())
		defer undo()
	}
	argv := append(slices.Clone(c.argv), args...)
	out, _ := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	for line := range strings.Lines(string(out)) {
		switch {
		case strings.HasPrefix(line, "error:"):
			bad++
		case strings.Contains(line, " from "):
			good++
		}
	}
	if good+bad != n {
		t.Errorf("%q: %d answers, want %d:\n%s", argv, good+bad, n, out)
	}
	return good, bad
}

// route sends the outsider's packets for an address by a node, unless it is a
// node's own.
func route(t *testing.T, node string, to netip.Addr) (undo func()) {
	t.Helper()
	via := nodeAddresses()[node][0]
	family, bits := "-4", "/32"
	if to.Is6() {
		via, family, bits = nodeAddresses()[node][1], "-6", "/128"
	}
	if via == to.String() {
		return func() {}
	}
	ip := func(word string) error {
		return exec.Command("ip", "-n", "kpr-fabric", family, "route", word, to.String()+bits, "via", via).Run()
	}
	if err := ip("replace"); err != nil {
		t.Fatalf("route to %s by %s: %v", to, node, err)
	}
	return func() { _ = ip("del") }
}
