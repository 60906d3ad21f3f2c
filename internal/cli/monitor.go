package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-kpr/kubectl-kpr/internal/kube"
	"github.com/kubectl-kpr/kubectl-kpr/internal/monitor"
	"github.com/kubectl-kpr/kubectl-kpr/internal/render"
	"github.com/kubectl-kpr/kubectl-kpr/internal/words"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/report"
)

func (a *app) monitor() *cobra.Command {
	run := monitoring{app: a, duration: 30 * time.Second}
	cmd := &cobra.Command{
		Use:     "monitor pod/NAME | svc/NAME",
		GroupID: "look",
		Short:   "Watch policy verdicts and drops of a pod, with names for addresses",
		Long: `Finds the pod's node, its agent and its endpoint there, runs the agent's monitor for it, and
says whose the addresses are. svc/NAME watches the pods behind a Service, on all their nodes.
It ends by itself after --duration, and nothing is left in the agents, however it ends.

Verdicts and drops are judged after the translation: they name the backend, never the Service's
own address. Whether a Service is translated rightly is told by trace, not by verdicts.

Exit codes: 0 all that was seen was let through, 2 something was denied or dropped, 3 a pod could
not be watched.`,
		Example: `  # what is denied to a pod, and what it is denied
  kubectl kpr monitor pod/cart-0 -n shop

  # everything of the pods behind a Service, for a minute
  kubectl kpr monitor svc/cart -n shop --type policy-verdict,drop,trace --duration 1m

  # for a program: one object a line
  kubectl kpr monitor pod/cart-0 -n shop -o json | jq -r 'select(.kind == "drop") | .reason'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError(cmd, fmt.Errorf("%d targets: want one, pod/NAME or svc/NAME", len(args)))
			}
			return nil
		},
		ValidArgsFunction: a.completeTargets,
		RunE:              func(cmd *cobra.Command, args []string) error { return run.run(cmd.Context(), args[0]) },
	}
	fs := cmd.Flags()
	fs.StringSliceVar(&run.types, "type", []string{string(agent.Verdict), string(agent.Dropped)}, "what to show: policy-verdict, drop, trace")
	fs.DurationVar(&run.duration, "duration", run.duration, "how long to watch, up to 1h")
	fs.StringVarP(&run.format, "output", "o", "text", "output format: text or json, which is one object a line")
	run.to.addNamespace(cmd)
	complete(cmd, "type", []string{string(agent.Verdict), string(agent.Dropped), string(agent.Traced)})
	complete(cmd, "output", []string{"text", "json"})
	return cmd
}

// monitoring is one run of the command.
type monitoring struct {
	app      *app
	to       clusterFlags
	types    []string
	duration time.Duration
	format   string
	sum      *monitor.Sum
}

func (m *monitoring) validate() error {
	for _, t := range m.types {
		if !slices.Contains([]string{string(agent.Verdict), string(agent.Dropped), string(agent.Traced)}, t) {
			return fmt.Errorf("--type %q: want policy-verdict, drop or trace", t)
		}
	}
	switch {
	case m.duration < time.Second || m.duration > time.Hour:
		return fmt.Errorf("--duration %s: want 1s to 1h", m.duration)
	case m.format != "text" && m.format != "json":
		return fmt.Errorf("--output: output format %q: want text or json", m.format)
	}
	return nil
}

func (m *monitoring) run(ctx context.Context, arg string) error {
	if err := m.validate(); err != nil {
		return err
	}
	config, err := m.app.flags.ToRESTConfig()
	if err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	src, err := m.to.cluster(m.app)
	if err != nil {
		return err
	}
	client, err := m.app.factory().KubernetesClientSet()
	if err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	objects, err := kube.New(config)
	if err != nil {
		return err
	}
	aim := aim{client: client, objects: objects}
	if aim.namespace, _, err = m.app.flags.ToRawKubeConfigLoader().Namespace(); err != nil {
		return fmt.Errorf("namespace: %w", err)
	}
	if err := aim.find(ctx, arg); err != nil {
		return err
	}
	m.sum = monitor.NewSum()
	if m.format == "text" {
		_, _ = fmt.Fprintf(m.app.env.ErrOut, "kubectl kpr: watching %s for %s\n", render.Clean(aim.what()), m.duration)
	}
	unread, failed, err := monitor.All(ctx, src.Exec, aim.targets, aim.names(ctx), m.duration, m.app.env.Now, m.show)
	if err != nil {
		return err
	}
	m.sum.Unread = unread
	return m.end(ctx, &aim, failed)
}

// show prints a record, if it is of a kind that was asked for.
func (m *monitoring) show(r monitor.Record) {
	m.sum.Add(r)
	if r.Kind != agent.Lost && !slices.Contains(m.types, string(r.Kind)) {
		return
	}
	if m.format == "json" {
		_ = json.NewEncoder(m.app.env.Out).Encode(r)
		return
	}
	_, _ = fmt.Fprintf(m.app.env.Out, "%s  %-8s %s\n", r.Time.Format("15:04:05.000"), r.Word(), render.Clean(r.Says()))
}

// end sums up, and says where to go on.
func (m *monitoring) end(ctx context.Context, aim *aim, failed map[string]error) error {
	out := m.app.env.ErrOut
	if m.format == "text" {
		out = m.app.env.Out
	}
	for _, err := range aim.skipped {
		_, _ = fmt.Fprintf(out, "? not watched: %s\n", render.Clean(err.Error()))
	}
	for _, pod := range slices.Sorted(maps.Keys(failed)) {
		_, _ = fmt.Fprintf(out, "? %s could not be watched: %s\n", render.Clean(pod), render.Clean(failed[pod].Error()))
	}
	s := m.sum
	if s.Missing > 0 || s.Unread > 0 {
		_, _ = fmt.Fprintf(out, "? %d events were lost by the monitor, %d lines could not be read\n", s.Missing, s.Unread)
	}
	denied := s.Sorted()
	if m.format == "text" {
		_, _ = fmt.Fprintf(out, "%s in %s: %d verdicts, %d drops, %d traces\n", words.Count(s.Events, "event"), m.duration, s.Kinds[agent.Verdict], s.Kinds[agent.Dropped], s.Kinds[agent.Traced])
		for i, t := range denied {
			if i == 10 {
				_, _ = fmt.Fprintf(out, "  +%d more\n", len(denied)-i)
				break
			}
			_, _ = fmt.Fprintf(out, "  %4d  %s\n", t.Count, render.Clean(t.Says))
		}
		m.policies(ctx, aim, denied)
	}
	switch {
	case len(denied) > 0:
		return ExitError{report.ExitFound}
	case len(failed) > 0 || len(aim.skipped) > 0:
		return ExitError{report.ExitUnknown}
	}
	return nil
}

// policies names those that select the pods where something was denied.
func (m *monitoring) policies(ctx context.Context, aim *aim, denied []monitor.Tally) {
	if len(denied) == 0 {
		return
	}
	for i := range aim.pods {
		p := &aim.pods[i]
		if !slices.ContainsFunc(denied, func(t monitor.Tally) bool { return t.Pod == p.Namespace+"/"+p.Name }) {
			continue
		}
		names, all := monitor.Policies(ctx, aim.objects, p)
		switch {
		case len(names) > 0:
			_, _ = fmt.Fprintf(m.app.env.Out, "policies that select pod %s: %s\n  next:  kubectl get -n %s %s -o yaml\n", render.Clean(p.Name), render.Clean(strings.Join(names, ", ")), p.Namespace, strings.Join(names, " "))
		case all:
			_, _ = fmt.Fprintf(m.app.env.Out, "no policy selects pod %s: the policy of the other end denies, or the drop is no policy's\n", render.Clean(p.Name))
		}
		return // the first is enough: pods of a Service have the same labels
	}
}

var errNoPods = errors.New("no pod is behind it")
