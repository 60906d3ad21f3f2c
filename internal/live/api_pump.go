package live

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/internal/cilium"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/exec"
)

// runner runs an argv in an agent's pod with its streams connected.
type runner func(ctx context.Context, argv []string, streams exec.Streams) (int, error)

// pump is a TCP connection that begins in a pod: what is written goes to the
// input of a program there, which passes it on, and the answer comes back as
// its output.
type pump struct {
	host, port string
	in         *io.PipeWriter
	out        *bufio.Reader
	end        context.CancelFunc
	over       chan struct{} // closed when the program has ended

	mu     sync.Mutex
	stderr strings.Builder
	err    error // the exec's
}

// openPump starts argv, which is cilium.APIPump, and waits until it is
// connected. Where it is not the pump comes with errNotConnected, and words
// says why.
func openPump(ctx context.Context, run runner, argv []string) (*pump, error) {
	ctx, cancel := context.WithCancel(ctx)
	stdin, in := io.Pipe()
	outside, stdout := io.Pipe()
	p := &pump{in: in, out: bufio.NewReader(outside), end: cancel, over: make(chan struct{})}
	go func() {
		defer close(p.over)
		_, err := run(ctx, argv, exec.Streams{Stdin: stdin, Stdout: stdout, Stderr: (*complaint)(p)})
		p.mu.Lock()
		p.err = err
		p.mu.Unlock()
		_ = stdout.CloseWithError(io.EOF)
		_ = stdin.CloseWithError(io.ErrClosedPipe)
	}()
	context.AfterFunc(ctx, func() {
		_ = outside.CloseWithError(context.Cause(ctx))
		_ = in.CloseWithError(context.Cause(ctx))
	})
	address, err := p.line()
	if err == nil {
		p.host, p.port, _ = strings.Cut(address, " ")
		var word string
		if word, err = p.line(); err == nil && word == "open" {
			return p, nil
		}
	}
	late := ctx.Err() != nil
	_ = p.Close()
	<-p.over
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.host == "" && p.err != nil:
		return nil, p.err
	case p.host == "" && err != nil:
		return nil, fmt.Errorf("the pod's answer ended before its first line: %w", source.ErrCut)
	case late && p.stderr.Len() == 0:
		p.stderr.WriteString("no answer in time")
	}
	return p, errNotConnected
}

// line reads one of the program's own lines.
func (p *pump) line() (string, error) {
	var b strings.Builder
	for b.Len() < 512 {
		c, err := p.out.ReadByte()
		if err != nil {
			return "", err
		}
		if c == '\n' {
			break
		}
		b.WriteByte(c)
	}
	return cilium.PlainLine(b.String(), 300), nil
}

// words is what the program complained of: bash's last words.
func (p *pump) words() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(p.stderr.String()), "\n")
	s := cilium.PlainLine(lines[0], 300)
	if i := strings.LastIndex(s, ": "); i >= 0 && strings.HasPrefix(s, "kpr: ") {
		s = s[i+2:]
	}
	if s == "" {
		s = "not connected"
	}
	return s
}

// complaint is a pump's stderr.
type complaint pump

func (c *complaint) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if room := 2048 - c.stderr.Len(); room > 0 {
		c.stderr.Write(b[:min(room, len(b))])
	}
	return len(b), nil
}

// Read is part of net.Conn.
func (p *pump) Read(b []byte) (int, error) { return p.out.Read(b) }

// Write is part of net.Conn.
func (p *pump) Write(b []byte) (int, error) { return p.in.Write(b) }

// Close ends the program and waits for nothing.
func (p *pump) Close() error {
	_ = p.in.Close()
	p.end()
	return nil
}

// LocalAddr is part of net.Conn; what is local is in the pod.
func (p *pump) LocalAddr() net.Addr { return pumpAddress{} }

// RemoteAddr is part of net.Conn.
func (p *pump) RemoteAddr() net.Addr { return pumpAddress{p.host, p.port} }

// SetDeadline does nothing: the pump's context has one.
func (p *pump) SetDeadline(time.Time) error { return nil }

// SetReadDeadline does nothing.
func (p *pump) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline does nothing.
func (p *pump) SetWriteDeadline(time.Time) error { return nil }

type pumpAddress struct{ host, port string }

// Network is part of net.Addr.
func (pumpAddress) Network() string { return "tcp" }

// String is part of net.Addr.
func (a pumpAddress) String() string { return net.JoinHostPort(a.host, a.port) }
