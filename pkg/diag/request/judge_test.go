package request

import (
	"net/netip"
	"strings"
	"testing"
)

var (
	dialled = netip.MustParseAddrPort("10.96.0.1:80")
	first   = netip.MustParseAddrPort("10.0.1.1:8080")
	second  = netip.MustParseAddrPort("10.0.2.1:8080")
	local   = netip.MustParseAddrPort("10.0.0.9:4000")
)

func good(to netip.AddrPort) Try { return Try{OK: true, Local: local, Backend: to} }
func late(to netip.AddrPort) Try {
	return Try{Late: true, Error: "no answer in time", Local: local, Backend: to}
}

func TestJudge(t *testing.T) {
	backends := []Backend{{Address: first.String() + "/TCP", Pod: "web-0"}, {Address: second.String() + "/TCP", Pod: "web-1"}}
	denial := Event{Node: "w-2", Kind: "drop", Text: "dropped", Denied: true, Rule: "networkpolicy/shop/deny"}
	for name, test := range map[string]struct {
		path      Path
		state     State
		mechanism string
		how       string // of the contradiction, "" for none
		words     string
	}{
		"answered as predicted": {Path{Tries: []Try{good(first), good(second)}, Predicted: Prediction{State: "ok", Backends: backends}},
			OK, SocketLB, "", "2 of 2 answered"},
		"answered by a stranger": {Path{Tries: []Try{good(netip.MustParseAddrPort("10.0.3.1:8080"))}, Predicted: Prediction{State: "ok", Backends: backends}},
			OK, SocketLB, "no layer has", ""},
		"silent although well": {Path{Tries: []Try{late(first)}, Predicted: Prediction{State: "ok", Backends: backends}},
			Failed, SocketLB, "all layers in agreement", "no answer in time"},
		"denied is no contradiction": {Path{Tries: []Try{late(first)}, Events: []Event{denial}, Predicted: Prediction{State: "ok", Backends: backends}},
			Failed, SocketLB, "", "by networkpolicy/shop/deny"},
		"an allowing verdict explains nothing": {Path{Tries: []Try{late(first)}, Events: []Event{{Kind: "policy-verdict", Text: "allow"}}, Predicted: Prediction{State: "ok"}},
			Failed, SocketLB, "all layers in agreement", "1 of 1 failed: no answer in time"},
		"a lost row": {Path{Tries: []Try{good(first), {Error: "no route to host"}}, Client: Client{Node: "w-1"}, Predicted: Prediction{State: "behind", Layer: "kernel", Text: "10.0.2.1:8080 is lost"}},
			Some, SocketLB, "", "the kernel is behind on w-1: 10.0.2.1:8080 is lost"},
		"nobody, and yet answered": {Path{Tries: []Try{good(dialled)}, Predicted: Prediction{State: "nobody"}},
			OK, "", "nobody to serve", ""},
		"per-packet": {Path{Tries: []Try{{OK: true, Local: local, Backend: first, Service: true}}, Predicted: Prediction{State: "ok"}}, OK, PacketLB, "", ""},
		"kube-proxy": {Path{Tries: []Try{{OK: true, Local: local, Backend: first, NAT: true}}, Predicted: Prediction{State: "elsewhere"}}, OK, KubeProxy, "", ""},
		"silent datagrams prove nothing": {Path{Ask: Echo, Protocol: "UDP", Tries: []Try{late(first)}, Predicted: Prediction{State: "ok"}},
			Unknown, SocketLB, "", "proves neither way"},
		"refused datagrams do": {Path{Ask: Echo, Tries: []Try{{Error: "connection refused"}}, Predicted: Prediction{State: "nobody", Text: "no endpoint"}},
			Failed, "", "", "as trace says: no endpoint"},
		"nothing was tried":  {Path{}, Unknown, "", "", "no request was made"},
		"could not be tried": {Path{State: Unknown, Text: "no agent"}, Unknown, "", "", "no agent"},
		"another protocol answers": {Path{Ask: HTTP, Tries: []Try{{Other: true, Error: "does not speak HTTP", Local: local, Backend: first}}, Predicted: Prediction{State: "ok"}},
			Failed, SocketLB, "", "does not speak HTTP"},
	} {
		t.Run(name, func(t *testing.T) {
			p := test.path
			p.Address = dialled
			Judge(&p)
			if p.State != test.state || p.Mechanism != test.mechanism || !strings.Contains(p.Text, test.words) {
				t.Errorf("%s by %q: %s", p.State, p.Mechanism, p.Text)
			}
			if !strings.Contains(p.Predicted.How, test.how) || p.Predicted.Contradicts != (test.how != "") {
				t.Errorf("contradiction: %q", p.Predicted.How)
			}
			again := p
			if Judge(&again); again.Text != p.Text || again.State != p.State {
				t.Errorf("judged twice: %s", again.Text)
			}
		})
	}
}

// What is unknown is never counted as answered, and what fails by design only
// where nothing else is answered.
func TestProbeCounts(t *testing.T) {
	c := Client{Kind: "node", Name: "w-1", Node: "w-1"}
	stops := Path{Client: c, Service: "shop/web", State: Failed, Predicted: Prediction{State: "stops"}, Bad: 1}
	fine := Path{Client: c, Service: "shop/web", State: OK, Good: 1}
	dark := Path{Client: c, Service: "shop/web", State: Unknown, Text: "no agent"}
	for _, test := range []struct {
		paths []Path
		fails int
		words string
	}{
		{[]Path{stops}, 1, ""},
		{[]Path{stops, fine}, 0, "1 serve no client there, by design"},
		{[]Path{fine, dark}, 0, "1 not known"},
		{nil, 0, "no address"},
	} {
		p := Probe{Target: "service/shop/web", Paths: test.paths}
		fails := 0
		for i := range p.Paths {
			if p.Fails(&p.Paths[i]) {
				fails++
			}
		}
		if s := p.Sentence(); fails != test.fails || !strings.Contains(s, test.words) {
			t.Errorf("%d fail: %s", fails, s)
		}
	}
}
