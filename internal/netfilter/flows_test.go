package netfilter

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDecodeFlows(t *testing.T) {
	at := netip.MustParseAddrPort
	got, err := DecodeFlows([]byte(`udp      17 29 src=10.244.1.5 dst=10.96.0.10 sport=41234 dport=53 src=10.244.2.7 dst=10.244.1.5 sport=53 dport=41234 [ASSURED] mark=0 use=1
udp      17 3 src=172.30.0.12 dst=10.96.0.10 sport=999 dport=53 packets=9 bytes=700 [UNREPLIED] src=10.96.0.10 dst=172.30.0.12 sport=53 dport=999 packets=0 bytes=0 mark=0 secctx=system_u:object_r:unlabeled_t:s0 use=1

ipv6     10 udp      17 20 src=fd00:0030:0000:0000:0000:0000:0000:0012 dst=fd00:0096:0000:0000:0000:0000:0000:000a sport=5 dport=53 [UNREPLIED] src=fd00:0010:0000:0000:0000:0000:0000:0001 dst=fd00:0030:0000:0000:0000:0000:0000:0012 sport=53 dport=5 mark=0 zone=0 use=2
ipv4     2 icmp     1 28 src=10.0.0.1 dst=10.0.0.2 type=8 code=0 id=1 src=10.0.0.2 dst=10.0.0.1 type=0 code=0 id=1 mark=0 use=2
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []Flow{
		{"udp", at("10.244.1.5:41234"), at("10.96.0.10:53"), at("10.244.2.7:53"), true},
		{"udp", at("172.30.0.12:999"), at("10.96.0.10:53"), at("10.96.0.10:53"), false},
		{"udp", at("[fd00:30::12]:5"), at("[fd00:96::a]:53"), at("[fd00:10::1]:53"), false},
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !got[0].Translated() || got[1].Translated() {
		t.Error("which are translated")
	}
	for _, text := range []string{"udp 17 3 src=1.2.3.4", "udp src=x dst=1.2.3.4 sport=1 dport=2", "what is this", "ipv4", "udp 17 1 src=1.1.1.1 dst=2.2.2.2 sport=1 dport=99999"} {
		if _, err := DecodeFlows([]byte("\n" + text + "\n")); err == nil || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzFlows(f *testing.F) {
	f.Add([]byte("udp 17 3 src=1.2.3.4 dst=5.6.7.8 sport=1 dport=2 [UNREPLIED] src=5.6.7.8 dst=1.2.3.4 sport=2 dport=1\nipv6 10 tcp 6 1 TIME_WAIT src=::1"))
	f.Fuzz(func(t *testing.T, data []byte) {
		flows, err := DecodeFlows(data)
		if err != nil && err.Error() == "" {
			t.Error("error without words")
		}
		for _, fl := range flows {
			if !fl.From.IsValid() || !fl.To.IsValid() || !fl.Answers.IsValid() {
				t.Errorf("%+v", fl)
			}
		}
	})
}
