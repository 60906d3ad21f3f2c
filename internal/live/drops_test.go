package live

import (
	"errors"
	"testing"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/internal/live/livetest"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

const dropsCmd = "cilium-dbg monitor --type drop"

// TestDrops: a monitor ends when its time is over, and has then answered; one
// that ends by itself with an error has not. Without the option nobody watches.
func TestDrops(t *testing.T) {
	const line = "Listening for events on 2 CPUs\nxx drop (Policy denied) flow 0x0 to endpoint 7, ifindex 9, file bpf_lxc.c:1, , identity 1->2: 10.0.0.1:4000 -> 10.0.0.2:80 tcp SYN\n"
	for name, c := range map[string]struct {
		recording livetest.Recording
		watch     time.Duration
		want      string
		class     error
	}{
		"time is over":    {livetest.Recording{Stdout: line, Sleep: "20"}, time.Second, line, nil},
		"cannot begin":    {livetest.Recording{Stderr: "Is the agent running?", Code: 1}, time.Second, "", source.ErrAgentDown},
		"not asked for":   {livetest.Recording{Stdout: line}, 0, "", source.ErrAbsent},
		"nothing to tell": {livetest.Recording{Sleep: "20"}, time.Second, "", source.ErrCut},
	} {
		t.Run(name, func(t *testing.T) {
			server := livetest.New(t)
			a := server.AddAgent("n1", "1.20.2", map[string]livetest.Recording{statusCmd: {Stdout: "{}"}, dropsCmd: c.recording})
			a.Unasked = c.watch == 0
			src := open(t, server, func(o *Options) { o.Drops = c.watch })
			g := collect(t, src, on("n1", source.Status, source.Drops)...)[on("n1", source.Drops)[0]]
			if c.class == nil && (g.err != nil || string(g.artifact.Data) != c.want) || c.class != nil && !errors.Is(g.err, c.class) {
				t.Errorf("%q, %v; want %q, %v", g.artifact.Data, g.err, c.want, c.class)
			}
		})
	}
}
