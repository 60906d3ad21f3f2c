package probe

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/request"
)

// Rows as a node of Cilium 1.20 shows them: 10.96.201.133:80 was dialled.
func TestParseLine(t *testing.T) {
	for line, want := range map[string]told{
		"N 0 1 open 443 8: 7F01F40A:ABDA 7001F40A:1F90 01 00000000:00000000 00:00000000 00000000 0 0 1260412 2 0 20 0 0 10 -1": {
			order: 0, try: 1, word: "open", took: 443 * time.Microsecond,
			local: netip.MustParseAddrPort("10.244.1.127:43994"), remote: netip.MustParseAddrPort("10.244.1.112:8080")},
		"N 2 0 late 2004533 1: 000000FD10004402010000000000249B:B4FA 0000000000000000FFFF000085C9600A:0051 02": {
			order: 2, word: "late", took: 2004533 * time.Microsecond,
			local: netip.MustParseAddrPort("[fd00:0:244:10:0:1:9b24:0]:46330"), remote: netip.MustParseAddrPort("10.96.201.133:81")},
		"N 7 1 failed 1041 environment: line 3: connect: No route to host\x1b[2J": {order: 7, try: 1, word: "failed", took: 1041 * time.Microsecond, words: "no route to host [2j"},
		"N 1 0 reply 5 485454502f":   {order: 1, word: "reply", took: 5 * time.Microsecond, data: []byte("HTTP/")},
		"N 1 0 open 5 no row at all": {order: 1, word: "open", took: 5 * time.Microsecond},
	} {
		got, h, err := parseLine("N", line)
		if err != nil || h != nil {
			t.Errorf("%q: %v %v", line, h, err)
			continue
		}
		if strings.Contains(line, "late") {
			want.local = got.local // its words are checked by the other row
			if !got.local.Addr().Is6() {
				t.Errorf("local %s", got.local)
			}
		}
		if d := cmp.Diff(want, *got, cmp.AllowUnexported(told{}), cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); d != "" {
			t.Errorf("%q (-want +got)\n%s", line, d)
		}
	}
	for _, line := range []string{"", "x", "M 0 0 open 1", "N x 0 open 1", "N 0 -1 open 1", "N 0 0 open -1", "N 0 0 shut 1", "N 0 0 reply 1 zz", "N 0"} {
		if got, h, err := parseLine("N", line); err == nil {
			t.Errorf("%q: %+v %+v", line, got, h)
		}
	}
}

func FuzzParseLine(f *testing.F) {
	for _, s := range []string{
		"N where /var/run/cilium/netns/cni-1", "N done", "N 0 1 open 443 8: 7F01F40A:ABDA 7001F40A:1F90 01", "N 0 0 late 1 ",
		"N 0 0 reply 1 485454", "N 0 0 failed 1 bash: connect: Connection refused",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		x, h, err := parseLine("N", line)
		set := 0
		for _, is := range []bool{x != nil, h != nil, err != nil} {
			if is {
				set++
			}
		}
		if set != 1 {
			t.Errorf("%q: %v %v %v", line, x, h, err)
		}
		if x != nil && (x.order < 0 || x.try < 0 || x.took < 0 || strings.ContainsAny(x.words, "\x1b\n")) {
			t.Errorf("%q: %+v", line, x)
		}
	})
}

// Cilium's own flow of a Service proves per-packet LB, netfilter's translation
// proves kube-proxy; a flow that is neither proves nothing.
func TestTracked(t *testing.T) {
	dialled := netip.MustParseAddrPort("10.96.0.1:80")
	try := func(local string) *request.Try {
		return &request.Try{Local: netip.MustParseAddrPort(local), Backend: dialled}
	}
	packet, proxy, neither := try("10.0.1.5:4000"), try("10.0.1.6:4000"), try("10.0.1.7:4001")
	six := &request.Try{Local: netip.MustParseAddrPort("[fd00:10:244:1::bf54]:41562"), Backend: netip.MustParseAddrPort("[fd00:10:96::1]:80")}
	tracked([]byte(`TCP SVC 10.0.1.5:4000 -> 10.96.0.1:80 expires=1 Flags=0x0010 [ SeenNonSyn ] RevNAT=4 SourceSecurityID=0 BackendID=7
TCP OUT 10.0.1.5:4000 -> 10.0.2.9:8080 expires=1 Flags=0x0010 [ SeenNonSyn ] RevNAT=4 SourceSecurityID=9
TCP SVC fd00:10:244:1::bf54:41562 -> fd00:10:96::1:80 expires=1 Flags=0x0010 [ SeenNonSyn ] RevNAT=4 SourceSecurityID=0 BackendID=7
nonsense
netfilter
ipv4     2 tcp      6 14 TIME_WAIT src=10.0.1.6 dst=10.96.0.1 sport=4000 dport=80 src=10.0.2.8 dst=10.0.1.6 sport=8080 dport=4000 [ASSURED] mark=0 zone=0 use=2
ipv4     2 tcp      6 14 TIME_WAIT src=10.0.1.7 dst=10.96.0.1 sport=4001 dport=80 src=10.96.0.1 dst=10.0.1.7 sport=80 dport=4001 [ASSURED] mark=0 zone=0 use=2
ipv4     2 icmp     1 29 src=10.0.1.6 dst=10.96.0.1 type=8 code=0 id=1 src=10.0.2.8 dst=10.0.1.6 type=0 code=0 id=1 mark=0 use=1
`), []*request.Try{packet, proxy, neither, six})
	if !six.Service {
		t.Errorf("IPv6, which is printed without brackets: %+v", six)
	}
	if !packet.Service || packet.NAT || packet.Backend.String() != "10.0.2.9:8080" {
		t.Errorf("per-packet: %+v", packet)
	}
	if proxy.Service || !proxy.NAT || proxy.Backend.String() != "10.0.2.8:8080" {
		t.Errorf("kube-proxy: %+v", proxy)
	}
	if neither.Service || neither.NAT || neither.Backend != dialled {
		t.Errorf("neither: %+v", neither)
	}
}
