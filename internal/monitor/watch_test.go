package monitor_test

import (
	"context"
	"errors"
	"net/netip"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/internal/monitor"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/exec"
)

const monitored = `-> overlay flow 0x6255dd78 , identity 9102->33409 state new ifindex cilium_vxlan orig-ip 0.0.0.0: 10.244.1.203:47428 -> 10.244.0.145:8080 tcp SYN
Policy verdict log: flow 0xb9adb30e local EP ID 682, remote ID kube-apiserver, proto 6, egress, action deny, auth: disabled, match none, 10.244.1.203:42140 -> 172.30.0.11:6443 tcp SYN
what is this
xx drop (Policy denied) flow 0x75a3e631 to endpoint 0, ifindex 35, file bpf_lxc.c:1663, , identity 9102->kube-apiserver: 10.244.1.203:42140 -> 172.30.0.11:6443 tcp SYN
`

// node runs what is meant for an agent here, with a stand-in for its command
// line, and ends its input when the context ends, as a kubelet does.
type node struct {
	path string
	pids []int
	mu   sync.Mutex
}

func newNode(t *testing.T, stub string) *node {
	t.Helper()
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "cilium-dbg"), []byte("#!/bin/bash\n"+stub), 0o755); err != nil {
		t.Fatal(err)
	}
	return &node{path: bin + ":" + os.Getenv("PATH")}
}

func (n *node) run(ctx context.Context, _ string, argv []string, s exec.Streams) (int, error) {
	cmd := osexec.Command(argv[0], argv[1:]...)
	cmd.Env = []string{"PATH=" + n.path}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Stdout, cmd.Stderr = s.Stdout, s.Stderr
	if s.Stdin != nil {
		in, err := cmd.StdinPipe()
		if err != nil {
			return 0, err
		}
		context.AfterFunc(ctx, func() { _ = in.Close() })
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	n.mu.Lock()
	n.pids = append(n.pids, cmd.Process.Pid)
	n.mu.Unlock()
	_ = cmd.Wait()
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	return cmd.ProcessState.ExitCode(), nil
}

// gone waits until nothing of the sessions runs any more.
func (n *node) gone(t *testing.T) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	left := ""
	for range 60 {
		out, _ := osexec.Command("ps", "-eo", "sess=,stat=,args=").Output()
		left = ""
		for line := range strings.Lines(string(out)) {
			f := strings.Fields(line)
			if len(f) > 1 && slices.ContainsFunc(n.pids, func(p int) bool { return f[0] == strconv.Itoa(p) }) && f[1][0] != 'Z' {
				left += line
			}
		}
		if left == "" {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("left running:\n%s", left)
}

func printing(text, stderr, then string) string {
	return "cat <<'EOF'\n" + text + "EOF\necho '" + stderr + "' >&2\n" + then + "\n"
}

// TestWatch: the monitor ends with its time, and every line is an event or
// counted as none.
func TestWatch(t *testing.T) {
	n := newNode(t, `[ "$*" = "monitor -v --related-to 682" ] || exit 9`+"\n"+printing(monitored, "", "exec sleep 30"))
	var kinds []agent.EventKind
	unread, err := monitor.Watch(t.Context(), n.run, "w-1", 682, time.Second, func(e agent.Event) { kinds = append(kinds, e.Kind) })
	if err != nil || unread != 1 || len(kinds) != 3 || kinds[0] != agent.Traced || kinds[1] != agent.Verdict || kinds[2] != agent.Dropped {
		t.Errorf("%v, %d unread, %v", kinds, unread, err)
	}
	n.gone(t)
}

// TestDuring: the monitor ends soon after what it was meant for, not with its
// time, and an error of that comes through.
func TestDuring(t *testing.T) {
	n := newNode(t, printing(monitored, "Press Ctrl-C to quit", "exec sleep 30"))
	failed := errors.New("refused")
	events, err := monitor.During(t.Context(), n.run, "w-1", 682, 25*time.Second, func(context.Context) error { return failed })
	if !errors.Is(err, failed) || len(events) != 3 {
		t.Errorf("%d events, %v", len(events), err)
	}
	n.gone(t)
}

func TestWatchStops(t *testing.T) {
	n := newNode(t, printing(monitored, "", "exec sleep 30"))
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := monitor.Watch(ctx, n.run, "w-1", 0, 20*time.Second, func(agent.Event) { cancel() }); err != nil {
		t.Error(err)
	}
	n.gone(t)
}

func TestWatchFails(t *testing.T) {
	n := newNode(t, printing("", "Error: unknown flag: --related-to", "exit 1"))
	if _, err := monitor.Watch(t.Context(), n.run, "w-1", 0, time.Second, func(agent.Event) {}); !errors.Is(err, source.ErrAbsent) {
		t.Errorf("%v", err)
	}
	n = newNode(t, printing("", "Error: cannot connect", "exit 1"))
	if _, err := monitor.Watch(t.Context(), n.run, "w-1", 0, time.Second, func(agent.Event) {}); !errors.Is(err, source.ErrUnreachable) || !strings.Contains(err.Error(), "cannot connect") {
		t.Errorf("%v", err)
	}
}

func TestEndpoint(t *testing.T) {
	const list = `[{"id":7,"status":{"networking":{"addressing":[{"ipv4":"10.0.0.7"}]}}},{"id":682,"status":{"networking":{"addressing":[{"ipv4":"10.244.1.203","ipv6":"fd00::1"}]}}}]`
	n := newNode(t, printing(list+"\n", "", ""))
	for text, want := range map[string]int{"10.244.1.203": 682, "fd00::1": 682, "10.9.9.9": 0} {
		id, err := monitor.Endpoint(t.Context(), n.run, "w-1", []netip.Addr{netip.MustParseAddr(text)})
		if id != want || (want == 0) != errors.Is(err, source.ErrAbsent) {
			t.Errorf("%s: %d %v", text, id, err)
		}
	}
}
