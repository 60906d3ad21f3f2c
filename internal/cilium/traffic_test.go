package cilium

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

func socket(t *testing.T, s string) netip.AddrPort {
	t.Helper()
	at, err := netip.ParseAddrPort(s)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

var cmpSockets = cmp.Options{cmpAddr, cmpopts.EquateComparable(netip.AddrPort{})}

func TestConnections(t *testing.T) {
	client, frontend := socket(t, "10.0.1.2:40112"), socket(t, "10.96.0.10:53")
	for _, c := range []struct {
		name, line string
		want       lb.Connection
		problem    string
	}{
		{"service of 1.20", "UDP SVC 10.0.1.2:40112 -> 10.96.0.10:53 expires=9 Packets=0 Bytes=0 Flags=0x0000 [ ] RevNAT=4 SourceSecurityID=0 BackendID=7 NatPort=0 ",
			lb.Connection{Protocol: "UDP", Direction: lb.ServiceEntry, From: client, To: frontend, RevNAT: 4, Backend: 7}, ""},
		{"service of 1.12", "UDP OUT 10.96.0.10:53 -> 10.0.1.2:40112 service expires=9 RxPackets=0 RxBytes=7 Flags=0x0000 [ ] RevNAT=4 SourceSecurityID=0 IfIndex=0 ",
			lb.Connection{Protocol: "UDP", Direction: lb.ServiceEntry, From: client, To: frontend, RevNAT: 4, Backend: 7}, ""},
		{"service of 1.14", "UDP SVC 10.0.1.2:40112 -> 10.96.0.10:53 expires=9 RxPackets=0 RxBytes=7 Flags=0x0000 [ ] RevNAT=4 ",
			lb.Connection{Protocol: "UDP", Direction: lb.ServiceEntry, From: client, To: frontend, RevNAT: 4, Backend: 7}, ""},
		{"bytes are no backend", "UDP OUT 10.0.1.2:40112 -> 10.96.0.10:53 expires=9 RxPackets=1 RxBytes=98 Flags=0x0000 [ ] RevNAT=4 ",
			lb.Connection{Protocol: "UDP", Direction: lb.Outward, From: client, To: frontend, RevNAT: 4}, ""},
		{"half closed", "TCP IN 10.0.1.2:40112 -> 10.96.0.10:53 expires=9 Flags=0x0012 [ TxClosing SeenNonSyn ] RevNAT=0 ",
			lb.Connection{Protocol: "TCP", Direction: lb.Inward, From: client, To: frontend}, ""},
		{"closed by the client", "TCP SVC 10.0.1.2:40112 -> 10.96.0.10:53 Flags=0x0012 [ TxClosing SeenNonSyn ] RevNAT=4 BackendID=7",
			lb.Connection{Protocol: "TCP", Direction: lb.ServiceEntry, From: client, To: frontend, RevNAT: 4, Backend: 7, Closing: true}, ""},
		{"related", "ICMP OUT 10.0.1.2:40112 -> 10.96.0.10:53 related expires=9 RevNAT=4",
			lb.Connection{Protocol: "ICMP", Direction: lb.Outward, From: client, To: frontend, Related: true, RevNAT: 4}, ""},
		{"no arrow", "TCP IN 10.0.1.2:1 10.0.1.3:2 expires=9", lb.Connection{}, "want PROTOCOL DIRECTION"},
		{"short", "TCP IN", lb.Connection{}, "want PROTOCOL DIRECTION"},
		{"sideways", "TCP ASIDE 10.0.1.2:1 -> 10.0.1.3:2", lb.Connection{}, `direction "ASIDE"`},
		{"no address", "TCP IN nowhere -> 10.0.1.3:2", lb.Connection{}, "want IP:PORT"},
		{"huge port", "TCP IN 10.0.1.2:1 -> 10.0.1.3:70000", lb.Connection{}, "is no port"},
		{"huge id", "TCP SVC 10.0.1.2:1 -> 10.0.1.3:2 BackendID=99999999999", lb.Connection{}, "BackendID"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := DecodeConntrack([]byte(c.line))
			if c.problem != "" {
				if err == nil || !strings.Contains(err.Error(), c.problem) || len(got) > 0 {
					t.Fatalf("%v, error %v, want %q", got, err, c.problem)
				}
				return
			}
			if diff := cmp.Diff([]lb.Connection{c.want}, got, cmpSockets); err != nil || diff != "" {
				t.Errorf("error %v, connection (-want +got):\n%s", err, diff)
			}
		})
	}
}

// A frontend must not be taken for another policy's than the one above it.
func TestRedirectOrphans(t *testing.T) {
	got, err := DecodeRedirectList([]byte(`                |          10.0.0.9:53/UDP -> 
LRP namespace   LRP name   FrontendType             Matching Service
kube-system     one        IP + port                
                |          10.0.0.1:53/UDP -> 10.1.0.1:53(kube-system/a), 10.1.0.2:53
                |          10.0.0.2:53/UDP -> 
                           nameless                 
                |          10.0.0.3:53/UDP -> 10.1.0.3:53(kube-system/b), 
kube-system     two        clusterIP + named ports  kube-system/dns
                |          invalid IP:53/TCP -> 10.1.0.4:53(kube-system/c), 
`))
	pod := lb.Name{Namespace: "kube-system", Name: "c"}
	want := []lb.RedirectRow{
		{Policy: lb.Name{Namespace: "kube-system", Name: "one"}, Kind: "IP + port", Mappings: []lb.RedirectMapping{{Frontend: addr(t, "10.0.0.2:53/UDP")}}},
		{Policy: lb.Name{Namespace: "kube-system", Name: "two"}, Kind: "clusterIP + named ports", Service: lb.Name{Namespace: "kube-system", Name: "dns"}, Mappings: []lb.RedirectMapping{
			{Frontend: lb.Address{Port: 53, Protocol: lb.TCP}, Targets: []lb.RedirectTarget{{Address: socket(t, "10.1.0.4:53"), Pod: pod}}}}},
	}
	if diff := cmp.Diff(want, got, cmpSockets); diff != "" {
		t.Errorf("policies (-want +got):\n%s", diff)
	}
	if n := len(problems(t, err)); n != 4 {
		t.Errorf("%d problems, want 4: %q", n, problems(t, err))
	}
}

func TestDropLines(t *testing.T) {
	for _, c := range []struct {
		name, line string
		want       []agent.Drop
		problem    string
	}{
		{"1.18", "xx drop (Denied by LB src range check) flow 0x0 to endpoint 0, ifindex 2, file bpf_host.c:915, , identity world->unknown: 10.6.0.11:50579 -> 10.6.0.109:32488 tcp SYN",
			[]agent.Drop{{Reason: "Denied by LB src range check", From: socket(t, "10.6.0.11:50579"), To: socket(t, "10.6.0.109:32488"), Protocol: "tcp", Identities: "world->unknown"}}, ""},
		{"brackets in the reason", "xx drop (Policy denied (L3)) flow 0x0 to endpoint 8, identity 5->6: [fd00::1]:1 -> [fd00::2]:2 udp",
			[]agent.Drop{{Reason: "Policy denied (L3)", From: socket(t, "[fd00::1]:1"), To: socket(t, "[fd00::2]:2"), Protocol: "udp", Identities: "5->6"}}, ""},
		{"no ports", "xx drop (Invalid source ip) flow 0x0 to endpoint 0, ifindex 69, file bpf_lxc.c:1127, , identity health->unknown: fe80::1 -> ff02::2 icmp RouterSolicitation",
			[]agent.Drop{{Reason: "Invalid source ip", From: socket(t, "[fe80::1]:0"), To: socket(t, "[ff02::2]:0"), Protocol: "icmp", Identities: "health->unknown"}}, ""},
		{"a verbose drop is not passed over", "CPU 01: MARK 0x0 FROM 0 DROP: 74 bytes, reason Stale or unroutable IP", nil, "no event of monitor"},
		{"a trace", "-> endpoint 812 flow 0x0 , identity 5->6: 10.0.0.1:1 -> 10.0.0.2:2 tcp ACK\nxx drop (x) flow", nil, "without a flow"},
		{"no addresses", "xx drop (x) flow 0x0 to endpoint 0", nil, "without addresses"},
		{"a stranger", "hello", nil, "no event of monitor"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := DecodeDrops([]byte(c.line))
			if (c.problem == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.problem) {
				t.Fatalf("error %v, want %q", err, c.problem)
			}
			if diff := cmp.Diff(c.want, got, cmpSockets); diff != "" {
				t.Errorf("drops (-want +got):\n%s", diff)
			}
		})
	}
}
