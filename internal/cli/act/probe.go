package act

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-kpr/kubectl-kpr/internal/cli"
	"github.com/kubectl-kpr/kubectl-kpr/internal/probe"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/trace"
)

func probeCommand(share cli.Share) *cobra.Command {
	run := probing{share: share}
	cmd := &cobra.Command{
		Use:     "probe [TARGET]",
		GroupID: "look",
		Short:   "Make real requests to a Service and tell what became of them",
		Long: `Connects to each address of a Service that the client can dial and says, beside the answer: which
backend took it and how often, what translated the address (socket LB, per-packet LB or
kube-proxy, by the kernel's own socket and flows), what was dropped on the way, by which policy, and
whether that is what trace says of the same path. A difference is the finding probe-contradicts-trace.

TARGET is what trace takes: svc/NAME[:PORT], an address, or pod/NAME. A port is asked as its name or
appProtocol says (http, https, dns), else by a TCP connection alone; --protocol says otherwise.

From a node, requests begin in its host network, through the agent. From a pod, they begin in the
pod's own network namespace, entered from the agent: to Cilium they are the pod's, and nothing is
left behind. Where that cannot be, a program of the pod connects (bash, nc, curl or wget, by exec).
Where it has none, an ephemeral container does; that writes, so it is asked for first (or --yes), it
ends by itself after 15 minutes, and the next probe uses it again. A pod with the client's labels is
never made: it would become a backend.

--matrix asks each kind of frontend that the cluster has, from a pod and from the host of each node.
--continuous goes on for --duration and counts failures and the longest gap of each path.

Exit codes: 0 every request was answered, 2 some were not, or contradict the trace, 3 what became of
them is not known, 1 wrong usage or failure, 130 interrupted.`,
		Example: `  # from every node
  kubectl kpr probe svc/web -n shop

  # as a pod meets it
  kubectl kpr probe svc/web:http -n shop --from pod/checkout-7d9f

  # is the DNS answering, from one node, twenty times
  kubectl kpr probe svc/kube-dns -n kube-system --from node/w-1 --tries 20

  # every kind of frontend, from pods and hosts of all nodes, as a page
  kubectl kpr probe --matrix -o html > matrix.html

  # the same on a small workload of its own, removed afterwards
  kubectl kpr probe --matrix --deploy

  # what a change costs
  kubectl kpr probe svc/web -n shop --from pod/checkout-7d9f --continuous --duration 5m`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case run.matrix && len(args) > 0:
				return cli.UsageError(cmd, fmt.Errorf("%q: --matrix takes no target", args[0]))
			case !run.matrix && len(args) != 1:
				return cli.UsageError(cmd, fmt.Errorf("%d targets: want one, such as svc/NAME or 10.96.0.10:53", len(args)))
			}
			return nil
		},
		ValidArgsFunction: share.CompleteTarget,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := run.validate(); err != nil {
				return cli.UsageError(cmd, err)
			}
			if run.matrix {
				return run.all(cmd.Context())
			}
			return run.one(cmd.Context(), args[0])
		},
	}
	run.add(cmd)
	_ = cmd.RegisterFlagCompletionFunc("from", share.CompleteClient)
	return cmd
}

// one probes a target.
func (r *probing) one(ctx context.Context, arg string) error {
	failOn, err := r.output.Validate()
	if err != nil {
		return err
	}
	namespace, err := r.share.Namespace()
	if err != nil {
		return err
	}
	q := probe.Question{Wish: r.wish()}
	if q.Target, err = trace.ParseTarget(arg, namespace); err != nil {
		return err
	}
	s, err := r.open(q.Target.Narrow())
	if err != nil {
		return err
	}
	defer r.cluster.Clear()
	looking, cancel := context.WithTimeout(ctx, r.cluster.Deadline()+r.budget())
	defer cancel()
	if q.Clients, err = probe.Clients(looking, s, r.from, namespace); err != nil {
		return err
	}
	answer, err := s.ask(looking, q)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return err
	}
	answer.Probe.Left = s.left()
	r.cluster.Clear()
	return r.output.Write(r.share, answer.Document(r.options(failOn)))
}

// budget is how long the requests may take beside the looking.
func (r *probing) budget() time.Duration {
	if r.continuous {
		return r.duration + 30*time.Second
	}
	return time.Duration(r.tries)*(r.timeout+r.interval)*4 + 30*time.Second
}
