package exec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// errFull stops the copying into a stream that has reached its limit.
var errFull = errors.New("limit of output reached")

// capped keeps the first max bytes and calls full once there are more.
type capped struct {
	max  int
	full func()

	mu   sync.Mutex
	data []byte
	over bool
}

func newCapped(max int, full func()) *capped { return &capped{max: max, full: full} }

func (c *capped) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	room := c.max - len(c.data)
	if len(p) <= room {
		c.data = append(c.data, p...)
		return len(p), nil
	}
	c.data = append(c.data, p[:room]...)
	c.over = true
	c.full()
	return room, errFull
}

func (c *capped) take() ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.data, c.over
}

// gate stands before the caller's writers: client-go goes on copying into
// them for a while after a cancelled stream has returned.
type gate struct {
	mu   sync.Mutex
	done bool
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.done = true
}

func (g *gate) writer(w io.Writer) io.Writer {
	if w == nil {
		return nil
	}
	return &gated{g, w}
}

type gated struct {
	gate *gate
	w    io.Writer
}

func (g *gated) Write(p []byte) (int, error) {
	g.gate.mu.Lock()
	defer g.gate.mu.Unlock()
	if g.gate.done {
		return 0, io.ErrClosedPipe
	}
	return g.w.Write(p)
}

// classify turns a failed exec into one of source's errors. Status is that of
// the SPDY attempt, 0 if there was none.
func classify(ctx context.Context, t Target, status int, err error) error {
	switch {
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err),
		status == http.StatusForbidden, status == http.StatusUnauthorized:
		return fmt.Errorf("exec in %s: create pods/exec in namespace %s: %w: %w", t, t.Namespace, source.ErrForbidden, err)
	case ctx.Err() != nil:
		return fmt.Errorf("exec in %s: %w: no answer in time: %w", t, source.ErrUnreachable, context.Cause(ctx))
	case strings.Contains(err.Error(), "executable file not found"):
		return fmt.Errorf("exec in %s: %w: %w", t, source.ErrAbsent, err)
	}
	return fmt.Errorf("exec in %s: %w: %s", t, source.ErrUnreachable, queries.ReplaceAllString(err.Error(), "$1"))
}

// queries are the parameters of URLs in an error of the API server: the whole
// command line stands in them, escaped.
var queries = regexp.MustCompile(`(https?://[^\s"?]*)\?[^\s"]*`)
