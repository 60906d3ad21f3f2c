package cli

import (
	"fmt"
	"io"
	"sync"
)

// progress counts nodes on standard error while a run goes on, on a terminal
// only. The zero pointer shows nothing.
type progress struct {
	mu    sync.Mutex
	w     io.Writer
	shown bool
}

func newProgress(env Env) *progress {
	if _, tty := env.Terminal(env.ErrOut); !tty || env.Getenv("TERM") == "dumb" {
		return nil
	}
	return &progress{w: env.ErrOut}
}

func (p *progress) show(done, total int) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shown = true
	_, _ = fmt.Fprintf(p.w, "\r%d of %d nodes answered", done, total)
}

// clear takes the line away again, so that only the report remains.
func (p *progress) clear() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		_, _ = io.WriteString(p.w, "\r\x1b[K")
	}
}
