package probe

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/internal/cilium"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/request"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/exec"
)

// Agents runs a program in the agent of a node; live.Source does.
type Agents interface {
	Exec(ctx context.Context, node string, argv []string, streams exec.Streams) (int, error)
}

// Pods runs a program in a container; exec.Executor does.
type Pods interface {
	Stream(ctx context.Context, t exec.Target, argv []string, streams exec.Streams) (int, error)
}

// Ephemeral gives a pod a container to ask from, with bash in it, or the one
// that it has from before. It writes, so it comes from elsewhere.
type Ephemeral interface {
	Container(ctx context.Context, namespace, pod string) (exec.Target, error)
}

// Client is who connects, with what it takes to be in its place.
type Client struct {
	request.Client
	IP         string   // of a pod, "" for nodes and pods in the host's network
	Containers []string // running ones, the pod's default first
}

// errNoWay: a place cannot be entered this way; another may do.
var errNoWay = errors.New("cannot be entered this way")

// place is a client with the ways to be there, the next one first.
type place struct {
	client Client
	ways   []way
}

// way is one way of running a dialer.
type way struct {
	name string
	run  func(ctx context.Context, nonce string, p pace, orders []order, s exec.Streams) (int, error)
}

// placeOf lists the ways to be a client. What goes on for long begins in the pod
// itself where it can: an agent that restarts ends what runs in it.
func (p *Prober) placeOf(c Client, long bool) *place {
	inAgent := func(ip string) func(context.Context, string, pace, []order, exec.Streams) (int, error) {
		return func(ctx context.Context, nonce string, at pace, orders []order, s exec.Streams) (int, error) {
			return p.Agents.Exec(ctx, c.Node, dialerArgv(nonce, ip, at, orders), s)
		}
	}
	if c.IP == "" {
		return &place{c, []way{{request.ByHost, inAgent("")}}}
	}
	entered := way{request.ByNamespace, inAgent(c.IP)}
	var ways []way
	if !long {
		ways = append(ways, entered)
	}
	for i, container := range c.Containers {
		if i == maxContainers || p.Pods == nil {
			break
		}
		t := exec.Target{Namespace: c.Namespace, Pod: c.Name, Container: container}
		ways = append(ways,
			way{request.ByExec, func(ctx context.Context, nonce string, at pace, orders []order, s exec.Streams) (int, error) {
				return p.Pods.Stream(ctx, t, dialerArgv(nonce, "", at, orders), s)
			}},
			way{request.ByExec, func(ctx context.Context, nonce string, at pace, orders []order, s exec.Streams) (int, error) {
				return p.Pods.Stream(ctx, t, plainArgv(nonce, at, orders), s)
			}})
	}
	if long {
		ways = append(ways, entered)
	}
	if p.Ephemeral != nil {
		ways = append(ways, way{request.ByEphemeral, func(ctx context.Context, nonce string, at pace, orders []order, s exec.Streams) (int, error) {
			t, err := p.Ephemeral.Container(ctx, c.Namespace, c.Name)
			if err != nil {
				return 0, err
			}
			return p.Pods.Stream(ctx, t, dialerArgv(nonce, "", at, orders), s)
		}})
	}
	return &place{c, ways}
}

// maxContainers bounds the containers of a pod that are tried.
const maxContainers = 3

// dial runs the dialer by the first way that works and gives each line of it to
// take as it comes. It remembers the way.
func (pl *place) dial(ctx context.Context, p pace, orders []order, take func(told)) error {
	var why []string
	for len(pl.ways) > 0 {
		w := pl.ways[0]
		err := w.dial(ctx, p, orders, take)
		if !errors.Is(err, errNoWay) || ctx.Err() != nil {
			pl.client.Via = w.name
			return err
		}
		if s := w.name + ": " + whyNot(err); len(why) == 0 || why[len(why)-1] != s {
			why = append(why, s)
		}
		pl.ways = pl.ways[1:]
	}
	return fmt.Errorf("%s: no way to connect from there: %s: %w", pl.client, strings.Join(why, "; "), source.ErrUnreachable)
}

// whyNot says it without what a runtime says around it.
func whyNot(err error) string {
	if strings.Contains(err.Error(), "executable file not found") {
		return "no shell in the container"
	}
	return cilium.PlainLine(strings.TrimSuffix(err.Error(), ": "+errNoWay.Error()), 160)
}

func (w way) dial(ctx context.Context, p pace, orders []order, take func(told)) error {
	ctx, cancel := context.WithTimeout(ctx, p.life(len(orders))+10*time.Second)
	defer cancel()
	random := make([]byte, 8)
	_, _ = rand.Read(random) // never fails, see crypto/rand
	nonce := hex.EncodeToString(random)
	out, in := io.Pipe()
	complaint := &head{max: 1024}
	type end struct {
		code int
		err  error
	}
	ended := make(chan end, 1)
	stdin, hold := io.Pipe() // its end ends what runs there, see guard
	defer func() { _ = hold.Close() }()
	go func() {
		code, err := w.run(ctx, nonce, p, orders, exec.Streams{Stdin: stdin, Stdout: in, Stderr: complaint})
		ended <- end{code, err}
		_ = in.Close()
	}()
	// An exec that does not notice the end is not waited for.
	stop := context.AfterFunc(ctx, func() { _ = out.CloseWithError(context.Cause(ctx)) })
	defer stop()
	began, done, none := false, false, false
	lines := bufio.NewScanner(out)
	lines.Buffer(make([]byte, 0, 8<<10), 16<<10)
	for lines.Scan() {
		t, h, err := parseLine(nonce, lines.Text())
		switch {
		case err != nil: // somebody else's, or of a later version
		case t != nil && t.order < len(orders) && t.try < p.tries:
			take(*t)
		case h != nil && h.word == "done":
			done = true
		case h != nil:
			began, none = true, h.rest == "none"
		}
	}
	_ = out.CloseWithError(io.ErrClosedPipe) // a line too long ends it; the program is not waited for
	if ctx.Err() != nil {
		return fmt.Errorf("%s: the requests did not end in time: %w: %w", w.name, source.ErrCut, context.Cause(ctx))
	}
	last := <-ended
	switch {
	case none:
		return fmt.Errorf("no network namespace or program for it was found there: %w", errNoWay)
	case done:
		return nil
	case !began && last.err != nil:
		return fmt.Errorf("%w: %w", last.err, errNoWay)
	case !began:
		return fmt.Errorf("exit code %d, %s: %w", last.code, cilium.PlainLine(complaint.String(), 200), errNoWay)
	}
	return fmt.Errorf("%s: the requests ended before their time: %w", w.name, source.ErrCut)
}

// head keeps the beginning of what is written.
type head struct {
	max int
	b   strings.Builder
}

func (h *head) Write(b []byte) (int, error) {
	if room := h.max - h.b.Len(); room > 0 {
		h.b.Write(b[:min(room, len(b))])
	}
	return len(b), nil
}

func (h *head) String() string { return h.b.String() }
