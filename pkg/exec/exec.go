// Package exec runs an argv in a container of a pod, the way kubectl exec
// does: over a WebSocket, and over SPDY where the API server or a proxy before
// it does not speak that. A command that ran and failed is a result with its
// exit code; an error means that it could not be run or its output not be read
// to the end.
package exec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	utilexec "k8s.io/client-go/util/exec"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// Executor runs commands in the pods of one cluster. It is safe for
// concurrent use.
type Executor struct {
	config *rest.Config
	client *rest.RESTClient
	// spdy is set once a WebSocket was refused and SPDY was not, so that a
	// cluster behind an old proxy costs one failed attempt and not one a node.
	spdy atomic.Bool
}

// Target is a container of a pod.
type Target struct{ Namespace, Pod, Container string }

// Result is what a command left behind. Code is its exit code; Stdout and
// Stderr are what was read, which may be less than it wrote where Run also
// returned an error.
type Result struct {
	Stdout, Stderr []byte
	Code           int
}

// Limits are how many bytes of each stream Run takes. Zero means none at all.
type Limits struct{ Stdout, Stderr int }

// Streams are the ends that Stream connects. A nil one is not asked for.
type Streams struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// New is an Executor for the cluster of config, which is copied.
func New(config *rest.Config) (*Executor, error) {
	c := rest.CopyConfig(config)
	c.Timeout = 0 // ends the whole stream, not the handshake; contexts do better
	c.APIPath, c.GroupVersion = "/api", &corev1.SchemeGroupVersion
	c.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	client, err := rest.RESTClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("client for pods/exec: %w", err)
	}
	return &Executor{config: c, client: client}, nil
}

// Run runs argv without input and returns what it printed. Output over the
// limits ends the connection; the part within them comes with an error that
// wraps source.ErrCut.
//
// A connection that a proxy closes in good order before the command's status
// came looks like a success with less output: client-go 0.37 does not tell the
// two apart. Whoever must know frames the output.
//
// Errors wrap source.ErrForbidden with verb and resource, source.ErrCut where
// output began and then the connection broke, else source.ErrUnreachable.
func (e *Executor) Run(ctx context.Context, t Target, argv []string, max Limits) (Result, error) {
	return e.RunWith(ctx, t, argv, nil, max)
}

// RunWith is Run with input on standard input, unless it is nil.
func (e *Executor) RunWith(ctx context.Context, t Target, argv []string, input []byte, max Limits) (Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stdout, stderr := newCapped(max.Stdout, cancel), newCapped(max.Stderr, cancel)
	streams := Streams{Stdout: stdout, Stderr: stderr}
	if input != nil {
		streams.Stdin = bytes.NewReader(input)
	}
	code, err := e.Stream(ctx, t, argv, streams)
	r := Result{Code: code}
	var over bool
	r.Stdout, over = stdout.take()
	if over {
		return r, fmt.Errorf("exec in %s: more than %d bytes of output: %w", t, max.Stdout, source.ErrCut)
	}
	r.Stderr, over = stderr.take()
	switch {
	case over:
		return r, fmt.Errorf("exec in %s: more than %d bytes on stderr: %w", t, max.Stderr, source.ErrCut)
	case err != nil && len(r.Stdout) > 0 && errors.Is(err, source.ErrUnreachable) && ctx.Err() == nil:
		return r, fmt.Errorf("exec in %s: connection broke after %d bytes: %w", t, len(r.Stdout), source.ErrCut)
	}
	return r, err
}

// Stream runs argv with its streams connected, until it ends or ctx does, and
// returns its exit code. When ctx ends the command may go on in the container:
// Kubernetes has no way to end it. Errors are those of Run, without ErrCut.
func (e *Executor) Stream(ctx context.Context, t Target, argv []string, s Streams) (int, error) {
	// client-go reports broken streams to a global logger as well, which
	// would write into the middle of a report.
	ctx = klog.NewContext(ctx, logr.Discard())
	o := corev1.PodExecOptions{Container: t.Container, Command: argv,
		Stdin: s.Stdin != nil, Stdout: s.Stdout != nil, Stderr: s.Stderr != nil}
	u := e.client.Post().Resource("pods").Namespace(t.Namespace).Name(t.Pod).SubResource("exec").
		VersionedParams(&o, scheme.ParameterCodec).URL()
	var status atomic.Int32
	executor, err := e.executor(u, &status)
	if err != nil {
		return 0, fmt.Errorf("exec in %s: %w: %w", t, source.ErrUnreachable, err)
	}
	guard := &gate{}
	defer guard.shut()
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{
		Stdin: s.Stdin, Stdout: guard.writer(s.Stdout), Stderr: guard.writer(s.Stderr)})
	var exit utilexec.ExitError
	switch {
	case err == nil:
		return 0, nil
	case errors.As(err, &exit) && exit.Exited():
		return exit.ExitStatus(), nil
	}
	return 0, classify(ctx, t, int(status.Load()), err)
}

// executor prefers WebSockets, which need a GET, and so also the verb get on
// pods/exec; a user with create alone is refused there and served by SPDY.
func (e *Executor) executor(u *url.URL, status *atomic.Int32) (remotecommand.Executor, error) {
	transport, upgrader, err := spdy.RoundTripperFor(e.config)
	if err != nil {
		return nil, err
	}
	old, err := remotecommand.NewSPDYExecutorForTransports(&tap{transport, status}, upgrader, http.MethodPost, u)
	if err != nil || e.spdy.Load() {
		return old, err
	}
	ws, err := remotecommand.NewWebSocketExecutor(e.config, http.MethodGet, u.String())
	if err != nil {
		return nil, err
	}
	refused := func(err error) bool { return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err) }
	return remotecommand.NewFallbackExecutor(ws, &second{old, &e.spdy}, refused)
}

// second remembers that the fallback worked. A refusal of both says nothing
// about the protocol: the user may be forbidden, or the pod gone.
type second struct {
	remotecommand.Executor
	worked *atomic.Bool
}

func (s *second) StreamWithContext(ctx context.Context, o remotecommand.StreamOptions) error {
	err := s.Executor.StreamWithContext(ctx, o)
	var exit utilexec.ExitError
	if err == nil || errors.As(err, &exit) {
		s.worked.Store(true)
	}
	return err
}

// tap notes the HTTP status of an upgrade: client-go 0.37 gives the words of a
// refused SPDY upgrade and loses its status.
type tap struct {
	http.RoundTripper
	status *atomic.Int32
}

func (t *tap) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.RoundTripper.RoundTrip(r)
	if resp != nil {
		t.status.Store(int32(resp.StatusCode))
	}
	return resp, err
}

// String is "NAMESPACE/POD".
func (t Target) String() string { return t.Namespace + "/" + t.Pod }
