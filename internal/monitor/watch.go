// Package monitor watches the events of an endpoint in its node's datapath, by
// the agent's own monitor: policy verdicts, drops, traces, and what socket LB
// translated. It leaves nothing running: the monitor ends with its time, and
// within a second of the one who watches.
package monitor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/internal/cilium"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/exec"
)

// Runner runs an argv in the agent of a node, with its streams connected.
type Runner func(ctx context.Context, node string, argv []string, s exec.Streams) (int, error)

// script runs the agent's command line for so many seconds, and ends it when
// its input ends: that is all that tells it that the one who asked is gone.
// Without job control a shell gives what runs beside it an empty input, so the
// input is kept under another number.
const script = `c=cilium-dbg; command -v $c >/dev/null 2>&1 || c=cilium
t=$1; shift; exec 3<&0
timeout -k 2 "$t" "$c" "$@" 3<&- </dev/null & p=$!
{ cat <&3 >/dev/null; kill $p; } 2>/dev/null & w=$!
wait $p; r=$?
kill $w 2>/dev/null
exit $r`

// Watch hands each event of an endpoint to each, in order, until the time is
// over or ctx ends. Endpoint 0 is every event of the node. What cannot be read
// as an event is counted in unread. Errors wrap one of source's.
func Watch(ctx context.Context, run Runner, node string, endpoint int, d time.Duration, each func(agent.Event)) (unread int, err error) {
	w := &watch{each: each, ready: make(chan struct{})}
	return w.run(ctx, run, node, endpoint, d)
}

// watch is one monitor that runs.
type watch struct {
	each   func(agent.Event)
	once   sync.Once
	ready  chan struct{} // closed when the monitor listens
	lines  liner
	errors bytes.Buffer
	unread int
}

func (w *watch) run(ctx context.Context, run Runner, node string, endpoint int, d time.Duration) (int, error) {
	argv := []string{"bash", "-c", script, "kpr", strconv.FormatFloat(max(d, time.Second).Seconds(), 'f', 1, 64), "monitor", "-v"}
	if endpoint > 0 {
		argv = append(argv, "--related-to", strconv.Itoa(endpoint))
	}
	// Our own clock is for a connection that hangs; the node's ends the monitor.
	ctx, cancel := context.WithTimeout(ctx, d+10*time.Second)
	defer cancel()
	stdin, hold := io.Pipe()
	defer func() { _ = hold.Close() }()
	w.lines.each = w.line
	code, err := run(ctx, node, argv, exec.Streams{Stdin: stdin, Stdout: &w.lines, Stderr: (*listening)(w)})
	w.lines.rest()
	w.once.Do(func() { close(w.ready) })
	said := firstLine(w.errors.Bytes())
	switch {
	case err != nil && ctx.Err() == nil:
		return w.unread, err
	case err != nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return w.unread, fmt.Errorf("monitor on %s: no end within %s: %w", node, d+10*time.Second, source.ErrUnreachable)
	case err != nil, code == 124, code == 137, code == 143, code == 0:
		return w.unread, nil // its time was over, or somebody ended it
	case strings.Contains(said, "unknown flag"):
		return w.unread, fmt.Errorf("monitor on %s: %s: %w", node, said, source.ErrAbsent)
	}
	return w.unread, fmt.Errorf("monitor on %s: exit code %d: %s: %w", node, code, said, source.ErrUnreachable)
}

func (w *watch) line(text string) {
	e, ok, err := cilium.DecodeEvent(text)
	if err != nil {
		w.unread++
	}
	if ok {
		w.each(e)
	}
}

// listening is the monitor's stderr: its first words say that it listens.
type listening watch

func (l *listening) Write(p []byte) (int, error) {
	if l.errors.Len() < 4096 {
		_, _ = l.errors.Write(p[:min(len(p), 4096)])
	}
	if bytes.Contains(l.errors.Bytes(), []byte("Ctrl-C")) {
		l.once.Do(func() { close(l.ready) })
	}
	return len(p), nil
}

// During watches an endpoint while f runs, and a little longer, as events come
// late. Events that came before f began are there too.
func During(ctx context.Context, run Runner, node string, endpoint int, most time.Duration, f func(context.Context) error) ([]agent.Event, error) {
	var events []agent.Event
	var mu sync.Mutex
	w := &watch{ready: make(chan struct{}), each: func(e agent.Event) {
		mu.Lock()
		defer mu.Unlock()
		if len(events) < maxEvents {
			events = append(events, e)
		}
	}}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	over := make(chan error, 1)
	go func() {
		_, err := w.run(watching, run, node, endpoint, most)
		over <- err
	}()
	select {
	case <-w.ready:
	case <-time.After(5 * time.Second):
	case <-ctx.Done():
	}
	failed := f(ctx)
	select {
	case <-time.After(linger):
	case <-ctx.Done():
	}
	stop()
	err := <-over
	mu.Lock()
	defer mu.Unlock()
	return slices.Clone(events), errors.Join(failed, err)
}

const (
	linger    = 700 * time.Millisecond
	maxEvents = 10_000
)

// Endpoint finds the endpoint of a pod on its node, by the pod's addresses: the
// names that an agent knows differ between versions.
func Endpoint(ctx context.Context, run Runner, node string, ips []netip.Addr) (int, error) {
	var out, errs bytes.Buffer
	code, err := run(ctx, node, []string{"bash", "-c", `c=cilium-dbg; command -v $c >/dev/null 2>&1 || c=cilium; exec timeout -k 2 15 $c endpoint list -o json`}, exec.Streams{Stdout: bounded(&out, 64<<20), Stderr: bounded(&errs, 4096)})
	switch {
	case err != nil:
		return 0, err
	case code != 0:
		return 0, fmt.Errorf("endpoints on %s: exit code %d: %s: %w", node, code, firstLine(errs.Bytes()), source.ErrUnreachable)
	}
	var list []struct {
		ID     int `json:"id"`
		Status struct {
			Networking struct {
				Addressing []struct {
					IPv4 string `json:"ipv4"`
					IPv6 string `json:"ipv6"`
				} `json:"addressing"`
			} `json:"networking"`
		} `json:"status"`
	}
	if err := json.Unmarshal(out.Bytes(), &list); err != nil {
		return 0, fmt.Errorf("endpoints on %s: %w: %w", node, source.ErrCut, err)
	}
	for _, e := range list {
		for _, a := range e.Status.Networking.Addressing {
			for _, text := range []string{a.IPv4, a.IPv6} {
				if ip, err := netip.ParseAddr(text); err == nil && slices.Contains(ips, ip.Unmap()) {
					return e.ID, nil
				}
			}
		}
	}
	return 0, fmt.Errorf("no endpoint on %s has the address %s: the pod is on the host's network, or Cilium does not manage it: %w", node, join(ips), source.ErrAbsent)
}

func join(ips []netip.Addr) string {
	words := make([]string, len(ips))
	for i, ip := range ips {
		words[i] = ip.String()
	}
	return strings.Join(words, " or ")
}
