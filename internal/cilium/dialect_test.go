package cilium

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// Every topic of a node is a command or a log, in a form that snapshots know.
func TestDialectCoversTheNodesTopics(t *testing.T) {
	for _, spec := range source.Topics() {
		ask, ok := AskFor(spec.Topic)
		log := spec.Topic == source.AgentLog || spec.Topic == source.InitLog
		if ok != (spec.Node && !log && !spec.Recorded && !spec.Host && !spec.Probe) {
			t.Errorf("%s: asked by a command: %v", spec.Topic, ok)
		}
		if ok && ask.Topic != spec.Topic {
			t.Errorf("%s: asked for %s", spec.Topic, ask.Topic)
		}
	}
	for _, ask := range Dialect() {
		spec, ok := source.SpecOf(ask.Topic)
		if !ok || !slices.Contains(spec.Forms, ask.Form) {
			t.Errorf("%s: form %+v is none of %+v", ask.Topic, ask.Form, spec.Forms)
		}
		if len(ask.Argv) == 0 || ask.Shown("cilium") == "" || strings.Contains(ask.Shown("cilium"), Binary) {
			t.Errorf("%s: argv %q shown as %q", ask.Topic, ask.Argv, ask.Shown("cilium"))
		}
	}
}

func TestShown(t *testing.T) {
	for topic, want := range map[source.Topic]string{
		source.Status:         "cilium-dbg status -o json",
		source.MapRanges:      "cilium-dbg bpf lb list --source-ranges -o json",
		source.FrontendsTable: "cilium-dbg shell -- db/show frontends",
		source.NFTSave:        "iptables-nft-save -c",
		source.LegacySave6:    "ip6tables-legacy-save -c",
		source.IPVS:           "cat /proc/net/ip_vs",
		source.ProxyMode:      "GET http://127.0.0.1:10249/proxyMode, then on [::1], by bash over /dev/tcp",
	} {
		if ask, _ := AskFor(topic); ask.Shown("cilium-dbg") != want {
			t.Errorf("%s: %q, want %q", topic, ask.Shown("cilium-dbg"), want)
		}
	}
}

// The pump against real sockets of this machine, on ports of the test's own.
func TestLoopbackGet(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash here")
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(r.Method + " " + r.URL.Path + "\n"))
	})
	serve := func(address string) (port string, err error) {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return "", err
		}
		s := httptest.NewUnstartedServer(handler)
		_ = s.Listener.Close()
		s.Listener = l
		s.Start()
		t.Cleanup(s.Close)
		_, port, err = net.SplitHostPort(l.Addr().String())
		return port, err
	}
	get := func(port string) string {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		out, err := exec.CommandContext(ctx, "bash", "-c", LoopbackGet, "all", port, "/proxyMode").Output()
		if err != nil {
			t.Errorf("port %s: %v", port, err)
		}
		return string(out)
	}
	v4, err := serve("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if out := get(v4); !strings.HasPrefix(out, "connect: open 127.0.0.1\nHTTP/1.0 200 OK\r\n") || !strings.HasSuffix(out, "GET /proxyMode\n") {
		t.Errorf("open: %q", out)
	}
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(closed.Addr().String())
	_ = closed.Close()
	if out := get(port); out != "connect: refused 127.0.0.1\nconnect: refused ::1\n" {
		t.Errorf("closed: %q", out)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	_, port, _ = net.SplitHostPort(silent.Addr().String())
	if out := get(port); out != "connect: open 127.0.0.1\n" {
		t.Errorf("silent: %q", out)
	}
	v6, err := serve("[::1]:0")
	if err != nil {
		t.Skip("no IPv6 loopback here")
	}
	if out := get(v6); !strings.HasPrefix(out, "connect: refused 127.0.0.1\nconnect: open ::1\nHTTP/1.0 200 OK\r\n") {
		t.Errorf("IPv6: %q", out)
	}
}
