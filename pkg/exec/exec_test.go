package exec_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kubectl-kpr/kubectl-kpr/internal/live/livetest"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/exec"
)

var limits = exec.Limits{Stdout: 1 << 20, Stderr: 1 << 20}

func target(pod string) exec.Target {
	return exec.Target{Namespace: "kube-system", Pod: "cilium-" + pod, Container: "cilium-agent"}
}

func open(t *testing.T, server *livetest.Server) *exec.Executor {
	t.Helper()
	e, err := exec.New(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func shell(script string, args ...string) []string {
	return append([]string{"sh", "-c", script}, args...)
}

func TestRun(t *testing.T) {
	for _, protocol := range []string{"WebSocket", "SPDY"} {
		server := livetest.New(t)
		server.NoWebSocket = protocol == "SPDY"
		server.AddAgent("n1", "1.20.2", nil)
		e := open(t, server)
		for _, tt := range []struct {
			argv        []string
			out, errOut string
			code        int
		}{
			{shell("echo out; echo err >&2; exit 3"), "out\n", "err\n", 3},
			{shell("printf '%s|' \"$@\"", "x", "a b", "", "c&d=e;'f'\n%", "ü"), "a b||c&d=e;'f'\n%|ü|", "", 0},
			{shell("exit 255"), "", "", 255},
			{shell("head -c 300000 /dev/zero | cat"), strings.Repeat("\x00", 300000), "", 0},
		} {
			r, err := e.Run(t.Context(), target("n1"), tt.argv, limits)
			if err != nil || string(r.Stdout) != tt.out || string(r.Stderr) != tt.errOut || r.Code != tt.code {
				t.Errorf("%s %q: %.40q %.40q code %d, error %v", protocol, tt.argv, r.Stdout, r.Stderr, r.Code, err)
			}
		}
	}
}

func TestRunStopsAtItsLimits(t *testing.T) {
	server := livetest.New(t)
	server.AddAgent("n1", "1.20.2", nil)
	e := open(t, server)
	for name, argv := range map[string][]string{
		"stdout": shell("while :; do echo 0123456789 || exit; done"),
		"stderr": shell("echo short; while :; do echo 0123456789 >&2 || exit; done"),
	} {
		r, err := e.Run(t.Context(), target("n1"), argv, exec.Limits{Stdout: 1000, Stderr: 1000})
		if !errors.Is(err, source.ErrCut) || !strings.Contains(err.Error(), "more than 1000 bytes") {
			t.Errorf("%s: %v", name, err)
		}
		if len(r.Stdout) > 1000 || len(r.Stderr) > 1000 || len(r.Stdout)+len(r.Stderr) < 1000 {
			t.Errorf("%s: %d and %d bytes", name, len(r.Stdout), len(r.Stderr))
		}
	}
	if r, err := e.Run(t.Context(), target("n1"), shell("printf 1234"), exec.Limits{Stdout: 4}); err != nil || string(r.Stdout) != "1234" {
		t.Errorf("at the limit: %q %v", r.Stdout, err)
	}
}

func TestErrors(t *testing.T) {
	server := livetest.New(t)
	server.AddAgent("refuse", "1.20.2", nil).Fault = livetest.Refuse
	server.AddAgent("hang", "1.20.2", nil).Fault = livetest.Hang
	broken := server.AddAgent("break", "1.20.2", nil)
	broken.Fault, broken.BreakAfter = livetest.Break, 3
	e := open(t, server)
	for pod, want := range map[string]struct {
		class error
		words string
	}{
		"refuse": {source.ErrForbidden, "create pods/exec in namespace kube-system"},
		"hang":   {source.ErrUnreachable, "no answer in time"},
		"break":  {source.ErrCut, "after 3 bytes"},
		"gone":   {source.ErrUnreachable, "not found"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		r, err := e.Run(ctx, target(pod), shell("echo 123456"), limits)
		cancel()
		if !errors.Is(err, want.class) || !strings.Contains(err.Error(), want.words) || !strings.Contains(err.Error(), "kube-system/cilium-"+pod) {
			t.Errorf("%s: %v", pod, err)
		}
		if pod == "break" && string(r.Stdout) != "123" {
			t.Errorf("broken: %q", r.Stdout)
		}
	}
	dead, err := exec.New(&rest.Config{Host: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dead.Run(t.Context(), target("n1"), shell("true"), limits); !errors.Is(err, source.ErrUnreachable) {
		t.Errorf("no server: %v", err)
	}
	if _, err := exec.New(&rest.Config{Host: "::bad::"}); err == nil {
		t.Error("a bad host makes an Executor")
	}
}

// The caller's writer is its own again once Stream has returned.
func TestStreamEndsWithItsContext(t *testing.T) {
	server := livetest.New(t)
	server.AddAgent("n1", "1.20.2", nil)
	e := open(t, server)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out bytes.Buffer
	_, err := e.Stream(ctx, target("n1"), shell("while :; do echo line || exit; done"), exec.Streams{Stdout: writer(func(p []byte) {
		if out.Write(p); out.Len() > 10000 {
			cancel()
		}
	})})
	if !errors.Is(err, source.ErrUnreachable) || !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	n := out.Len() // the race detector would see a late write
	time.Sleep(20 * time.Millisecond)
	if out.Len() != n {
		t.Error("written to after Stream had returned")
	}
}

type writer func([]byte)

func (w writer) Write(p []byte) (int, error) { w(p); return len(p), nil }
