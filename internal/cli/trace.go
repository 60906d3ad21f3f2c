package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-kpr/kubectl-kpr/internal/render"
	"github.com/kubectl-kpr/kubectl-kpr/internal/version"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/report"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/trace"
)

func (a *app) trace() *cobra.Command {
	run := tracing{lookup: lookup{app: a, command: "trace", output: outputFlags{formats: render.TraceFormats()}}}
	cmd := &cobra.Command{
		Use:     "trace TARGET",
		GroupID: "look",
		Short:   "Follow a Service from each frontend to its backends, on every node",
		Long: `Says where the connections to a Service end: for each of its frontends and each node,
what the API wants, what the agent believes and what the node's BPF maps hold, side by
side, and which of the three is behind. Nodes that hold the same are shown once.

TARGET is svc/NAME[:PORT] or NAME[:PORT], an address as a log or a pager shows it
(10.96.0.10:53, 10.96.0.10:53/udp, [fd00::a]:53, or an IP alone), or pod/NAME for the
Services that the pod is behind. The namespace is kubectl's -n.

--from says who connects, which changes the way and the answer: a pod's socket is
translated at connect, a packet from outside where it enters a node; Local policies,
non-routable ClusterIPs and a switched-off replacement stop the one and not the other.

Exit codes: 0 somebody serves and the layers agree, 2 a layer is behind or nobody serves
this client, 3 something needed could not be seen, 1 wrong usage or failure.`,
		Example: `  # a Service, from everywhere
  kubectl kpr trace svc/web -n shop

  # an address that a pager shows
  kubectl kpr trace 10.96.0.10:53/udp

  # one port, as a pod meets it, and as a client outside does
  kubectl kpr trace web:http -n shop --from pod/checkout-7d9f
  kubectl kpr trace web:http -n shop --from outside

  # the Services that a pod is behind
  kubectl kpr trace pod/web-0 -n shop

  # with real requests beside the three layers
  kubectl kpr trace web:http -n shop --from pod/checkout-7d9f --probe

  # a picture for the postmortem
  kubectl kpr trace svc/web -n shop -o dot | dot -Tsvg > web.svg

  # from a recorded snapshot
  kubectl kpr trace svc/web -n shop --snapshot kpr-prod-20261201-015522.tar.gz`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError(cmd, fmt.Errorf("%d targets: want one, such as svc/NAME or 10.96.0.10:53", len(args)))
			}
			return nil
		},
		ValidArgsFunction: a.completeTargets,
		RunE: func(cmd *cobra.Command, args []string) error {
			return run.run(cmd.Context(), args[0])
		},
	}
	run.add(cmd)
	cmd.Flags().StringVar(&run.client, "from", "", "who connects: pod/NAME, pod/NAMESPACE/NAME, node/NAME or outside; everybody if not given")
	cmd.Flags().BoolVar(&run.probe, "probe", false, "also make requests on each path, from the client or from the host of each node, and set them beside the layers")
	_ = cmd.RegisterFlagCompletionFunc("from", a.completeClients)
	return cmd
}

// tracing is a lookup that ends in a trace.
type tracing struct {
	lookup
	client string // --from
	probe  bool   // --probe
}

func (l *tracing) run(ctx context.Context, arg string) error {
	failOn, err := l.output.validate()
	if err != nil {
		return err
	}
	sel, err := l.which.selection()
	if err != nil {
		return err
	}
	namespace, _, err := l.app.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return fmt.Errorf("namespace: %w", err)
	}
	if l.probe && l.from.snapshot != "" {
		return errors.New("--probe: asks a running cluster, which --snapshot is not")
	}
	target, err := trace.ParseTarget(arg, namespace)
	if err != nil {
		return err
	}
	from, err := trace.ParseClient(l.client, namespace)
	if err != nil {
		return fmt.Errorf("--from: %w", err)
	}
	bounded, cancel := context.WithTimeout(ctx, l.from.deadline)
	defer cancel()
	if l.from.snapshot == "" && from.Kind == trace.PodClient {
		if from, err = l.app.locate(bounded, from); err != nil {
			return err
		}
	}
	// Only the client's node translates for it, so only that one is asked.
	if from.Node != "" && len(sel.Nodes) == 0 && sel.Labels == nil {
		sel.Nodes = []string{from.Node}
	}
	sel.Within = target.Narrow()
	d, err := l.follow(bounded, sel, failOn, target, from)
	if errors.Is(err, errShared) {
		sel.Within = ""
		d, err = l.follow(bounded, sel, failOn, target, from)
	}
	l.from.progress.clear()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return err
	}
	return l.output.write(l.app.env, d)
}

// errShared: the namespace of the Service alone does not tell who has its
// addresses.
var errShared = errors.New("an address is wanted in two namespaces")

// follow traces, and on a running cluster looks a second time where a layer is
// behind, for it may be about to catch up.
func (l *tracing) follow(ctx context.Context, sel diag.Selection, failOn diag.Severity, target trace.Target, from trace.Client) (*report.Document, error) {
	l.from.within = sel.Within
	src, err := l.from.open(l.app)
	if err != nil {
		return nil, err
	}
	if c, ok := src.(io.Closer); ok {
		defer func() { _ = c.Close() }()
	}
	facts := append(report.Facts(true), trace.Facts()...)
	done, err := diag.Do(ctx, src, sel, nil, facts...)
	if err != nil {
		return nil, err
	}
	if sel.Within != "" && trace.Shared(done.Store.Cluster(), target) {
		return nil, errShared
	}
	t, err := trace.Of(done.Store.Cluster(), target, from)
	if err != nil {
		return nil, err
	}
	if t.Verdict.State == trace.Behind {
		t, done = l.again(ctx, src, sel, facts, t, done)
	}
	d := report.Build(done, report.Options{Command: l.command, Tool: version.String(), Now: l.app.env.Now(), FailOn: failOn})
	d.Follow(t, failOn)
	if l.probe {
		if err := l.beside(ctx, src, done, target, from, d, failOn); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func (l *tracing) again(ctx context.Context, src source.Source, sel diag.Selection, facts []fact.Named, t *trace.Trace, done *diag.Run) (*trace.Trace, *diag.Run) {
	later, ok := src.Again()
	if !ok || l.from.settle <= 0 {
		return t, done
	}
	timer := time.NewTimer(l.from.settle)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return t, done
	case <-timer.C:
	}
	second, err := diag.Do(ctx, later, sel, nil, facts...)
	if err != nil {
		return t, done
	}
	settled, err := t.Again(second.Store.Cluster())
	if err != nil || settled.Verdict.State == trace.Unknown {
		return t, done // what the second look could not see stays
	}
	return settled, second
}

// locate finds the node of a client pod, which need be behind no Service. What
// the user may not read is looked for in the evidence.
func (a *app) locate(ctx context.Context, c trace.Client) (trace.Client, error) {
	client, err := a.factory().KubernetesClientSet()
	if err != nil {
		return c, fmt.Errorf("kubeconfig: %w", err)
	}
	pod, err := client.CoreV1().Pods(c.Namespace).Get(ctx, c.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return c, fmt.Errorf("--from: pod %s/%s: not found", c.Namespace, c.Name)
	case err != nil:
		return c, nil
	case pod.Spec.NodeName == "":
		return c, errors.New("--from: pod " + c.Namespace + "/" + c.Name + ": on no node yet")
	}
	c.Node, c.HostNetwork = pod.Spec.NodeName, pod.Spec.HostNetwork
	return c, nil
}
