package probe

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/internal/cilium"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/request"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/exec"
)

// maxWatched bounds the nodes whose drops are watched: the clients', then those
// of backends.
const maxWatched = 12

// watch is what agents drop and decide while requests are made.
type watch struct {
	mu   sync.Mutex
	seen map[string][]agent.Event // by node
	end  context.CancelFunc
	over sync.WaitGroup
}

// watchNodes begins to watch, and returns once the agents listen or four
// seconds have passed. On the nodes it ends by itself.
func (p *Prober) watchNodes(ctx context.Context, paths []request.Path, at pace) *watch {
	ctx, cancel := context.WithCancel(ctx)
	w := &watch{seen: map[string][]agent.Event{}, end: cancel}
	nodes := sortedNodes(paths)
	for _, path := range paths {
		for _, b := range path.Predicted.Backends {
			if b.Node != "" && !slices.Contains(nodes, b.Node) {
				nodes = append(nodes, b.Node)
			}
		}
	}
	nodes = nodes[:min(len(nodes), maxWatched)]
	life := at.life(len(paths)) + 20*time.Second
	ready := make(chan struct{}, len(nodes))
	for _, node := range nodes {
		w.over.Go(func() {
			stdin, hold := io.Pipe() // its end ends the monitor, see guard
			defer func() { _ = hold.Close() }()
			argv := guarded(life, cilium.JudgedArgv())
			out := &listener{ready: ready}
			_, _ = p.Agents.Exec(ctx, node, argv, exec.Streams{Stdin: stdin, Stdout: out})
			out.mu.Lock()
			defer out.mu.Unlock()
			events, _ := cilium.DecodeEvents([]byte(out.b.String())) // what cannot be read proves nothing
			w.mu.Lock()
			defer w.mu.Unlock()
			w.seen[node] = events
		})
	}
	timer := time.NewTimer(4 * time.Second)
	defer timer.Stop()
	for range nodes {
		select {
		case <-ready:
		case <-timer.C:
			return w
		case <-ctx.Done():
			return w
		}
	}
	return w
}

// listener keeps what a monitor prints and tells when its first line came,
// which says that it listens.
type listener struct {
	mu    sync.Mutex
	b     head
	ready chan<- struct{}
	said  bool
}

func (l *listener) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b.max = 4 << 20
	if !l.said {
		l.said = true
		l.ready <- struct{}{}
	}
	return l.b.Write(b)
}

// stop ends the watch and gives the paths their events: those of the client's
// sockets, by address and port.
func (w *watch) stop(paths []request.Path) {
	timer := time.NewTimer(300 * time.Millisecond) // what was dropped last is printed last
	<-timer.C
	w.end()
	w.over.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range paths {
		path := &paths[i]
		for _, node := range slices.Sorted(maps.Keys(w.seen)) {
			for _, e := range w.seen[node] {
				if ours(path, e) {
					path.Events = addEvent(path.Events, eventOf(node, e))
				}
			}
		}
	}
}

// ours holds for packets of the path's tries. Where the socket of a failed try
// was never seen, the client's address does not tell a try from another
// connection, so a drop must be of the dialled address or a backend.
func ours(path *request.Path, e agent.Event) bool {
	if e.Kind != agent.Dropped && e.Kind != agent.Verdict {
		return false
	}
	for _, t := range path.Tries {
		switch {
		case t.Local.IsValid():
			if e.From == t.Local && (e.Kind == agent.Verdict || !t.OK) || e.To == t.Local && !t.OK {
				return true
			}
		case !t.OK && e.Kind == agent.Dropped && (e.To == path.Address || path.Predicts(e.To)):
			return fromClient(path, e.From.Addr())
		}
	}
	return false
}

func fromClient(path *request.Path, ip netip.Addr) bool {
	for _, t := range path.Tries {
		if t.Local.IsValid() {
			return t.Local.Addr() == ip
		}
	}
	return true
}

func eventOf(node string, e agent.Event) request.Event {
	out := request.Event{Node: node, Kind: string(e.Kind), From: e.From.Addr(), To: e.To}
	flow := fmt.Sprintf("%s -> %s %s", e.From, e.To, e.Protocol)
	if e.Kind == agent.Dropped {
		out.Text = "dropped " + flow + ": " + e.Reason
		out.Denied = strings.HasPrefix(strings.ToLower(e.Reason), "policy denied")
		return out
	}
	out.Denied = e.Action == "deny"
	out.Text = fmt.Sprintf("%s policy: %s %s (match %s)", e.Direction, e.Action, flow, e.Match)
	return out
}

// addEvent adds an event that says something new: ports of clients do not.
func addEvent(events []request.Event, e request.Event) []request.Event {
	same := func(x request.Event) bool {
		return x.Node == e.Node && x.Kind == e.Kind && x.To == e.To && x.From == e.From && x.Denied == e.Denied
	}
	if len(events) >= 8 || slices.ContainsFunc(events, same) {
		return events
	}
	return append(events, e)
}
