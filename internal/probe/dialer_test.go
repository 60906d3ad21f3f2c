package probe

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/request"
	kexec "github.com/kubectl-kpr/kubectl-kpr/pkg/exec"
)

// here runs what would run in an agent on this machine.
type here struct{}

func (here) Exec(ctx context.Context, _ string, argv []string, s kexec.Streams) (int, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = s.Stdout, s.Stderr
	if s.Stdin != nil { // as an exec does: nobody waits for the input to end
		in, err := cmd.StdinPipe()
		if err != nil {
			return 0, err
		}
		go func() { _, _ = io.Copy(in, s.Stdin); _ = in.Close() }()
	}
	cmd.WaitDelay = 100 * time.Millisecond // what was killed leaves children behind
	err := cmd.Run()
	return cmd.ProcessState.ExitCode(), err
}

func listen(t *testing.T, network string) (netip.AddrPort, net.Listener) {
	t.Helper()
	l, err := net.Listen(network, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return netip.MustParseAddrPort(l.Addr().String()), l
}

func path(at netip.AddrPort, ask request.Ask) request.Path {
	protocol := "TCP"
	if ask == request.Echo || ask == request.DNS {
		protocol = "UDP"
	}
	return request.Path{Client: request.Client{Kind: "node", Name: "n", Node: "n"}, Address: at, Protocol: protocol, Ask: ask}
}

// The dialer is a program of another language, so it is run against real
// sockets: what answers, what refuses, what is silent and what never connects.
func TestDialer(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash here")
	}
	open, l := listen(t, "tcp")
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(io.Discard, c) }() // listens and says nothing
		}
	}()
	closed, gone := listen(t, "tcp")
	_ = gone.Close()
	var asked string
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Method + " " + r.URL.Path
		w.WriteHeader(http.StatusTeapot)
	}))
	defer web.Close()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	at := func(s *httptest.Server) netip.AddrPort { return netip.MustParseAddrPort(s.Listener.Addr().String()) }
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = udp.Close() }()
	go func() {
		b := make([]byte, 512)
		for {
			n, from, err := udp.ReadFrom(b)
			if err != nil {
				return
			}
			if n > 2 && b[1] == 0x70 { // a query of DNS comes back as its own refusal
				b[2], b[3] = b[2]|0x80, 5
			}
			_, _ = udp.WriteTo(b[:n], from)
		}
	}()
	datagrams := netip.MustParseAddrPort(udp.LocalAddr().String())
	paths := []request.Path{
		path(open, request.Connect), path(closed, request.Connect), path(at(web), request.HTTP), path(at(secure), request.HTTPS),
		path(datagrams, request.DNS), path(datagrams, request.Echo), path(open, request.HTTP),
	}
	p := &Prober{Agents: here{}, Tries: 2, Timeout: 700 * time.Millisecond, HTTPPath: "/healthz"}
	client := Client{Client: paths[0].Client}
	if err := p.Run(t.Context(), paths, []Client{client}); err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		state  request.State
		answer string
		err    string
	}{
		{request.OK, "", ""},
		{request.Failed, "", "connection refused"},
		{request.OK, "HTTP/1.1 418 I'm a teapot", ""},
		{request.OK, "TLS handshake", ""},
		{request.OK, "REFUSED", ""},
		{request.OK, "kubectl-kpr", ""},
		{request.Failed, "", "no answer in time"},
	} {
		got := paths[i]
		if got.State != want.state || len(got.Tries) != 2 {
			t.Errorf("%s %s: %s after %d tries: %s", got.Ask, got.Address, got.State, len(got.Tries), got.Text)
			continue
		}
		for _, try := range got.Tries {
			if try.Answer != want.answer || !strings.Contains(try.Error, want.err) || (want.err == "") != (try.Error == "") {
				t.Errorf("%s %s: answer %q, error %q", got.Ask, got.Address, try.Answer, try.Error)
			}
			// The kernel's own row of the socket, as far as there was one.
			if want.err != "connection refused" && (try.Backend != got.Address || !try.Local.Addr().IsLoopback()) {
				t.Errorf("%s %s: socket %s -> %s", got.Ask, got.Address, try.Local, try.Backend)
			}
		}
	}
	if asked != "GET /healthz" {
		t.Errorf("the server was asked for %q", asked)
	}
	if paths[0].Client.Via != request.ByHost {
		t.Errorf("via %q", paths[0].Client.Via)
	}
}

// Without bash, nc or curl have to do. They tell less, and nothing wrong.
func TestPlainDialer(t *testing.T) {
	open, _ := listen(t, "tcp")
	closed, gone := listen(t, "tcp")
	_ = gone.Close()
	paths := []request.Path{path(open, request.Connect), path(closed, request.Connect)}
	var orders []order
	p := &Prober{}
	for i := range paths {
		o, err := p.order(&paths[i])
		if err != nil {
			t.Fatal(err)
		}
		orders = append(orders, o)
	}
	for _, program := range []string{"nc", "curl"} {
		t.Run(program, func(t *testing.T) {
			if _, err := exec.LookPath(program); err != nil {
				t.Skip("no " + program + " here")
			}
			if program == "curl" {
				t.Skip("the first program found is used, and that is nc where both are")
			}
			pl := &place{client: Client{}, ways: []way{{request.ByExec, func(ctx context.Context, nonce string, at pace, orders []order, s kexec.Streams) (int, error) {
				return here{}.Exec(ctx, "", plainArgv(nonce, at, orders), s)
			}}}}
			got := map[int]string{}
			if err := pl.dial(t.Context(), pace{tries: 1, timeout: time.Second}, orders, func(x told) { got[x.order] = x.word }); err != nil {
				t.Fatal(err)
			}
			if got[0] != "open" || got[1] != "failed" {
				t.Errorf("%v", got)
			}
		})
	}
}

// A pod whose namespace is not found is entered another way; where there is
// none, its paths are unknown and say what was tried.
func TestNoWay(t *testing.T) {
	paths := []request.Path{path(netip.MustParseAddrPort("127.0.0.1:1"), request.Connect)}
	paths[0].Client = request.Client{Kind: "pod", Namespace: "shop", Name: "a", Node: "n"}
	p := &Prober{Agents: here{}, Tries: 1, Timeout: time.Second}
	c := Client{Client: paths[0].Client, IP: "192.0.2.1"}
	if err := p.Run(t.Context(), paths, []Client{c}); err != nil {
		t.Fatal(err)
	}
	if got := paths[0]; got.State != request.Unknown || !strings.Contains(got.Text, "network namespace") {
		t.Errorf("%s: %s", got.State, got.Text)
	}
}

// Ctrl-C ends a dialer at once.
func TestInterrupted(t *testing.T) {
	silent, _ := listen(t, "tcp")
	paths := []request.Path{path(silent, request.HTTP)}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(300*time.Millisecond, cancel)
	p := &Prober{Agents: here{}, Tries: 1, Timeout: 5 * time.Second}
	if err := p.Run(ctx, paths, []Client{{Client: paths[0].Client}}); err == nil {
		t.Error("it went on")
	}
}
