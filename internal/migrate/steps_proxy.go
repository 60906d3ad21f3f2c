package migrate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/internal/plan"
)

// Proxies is kube-proxy's DaemonSet and the nodes it may run on.
type Proxies interface {
	// Affinity is the DaemonSet's as it is. Fence makes it leave out nodes with
	// the label Off; Unfence puts back what Affinity gave.
	Affinity(ctx context.Context) (json.RawMessage, error)
	Fence(ctx context.Context) error
	Unfence(ctx context.Context, was json.RawMessage) error
	// Switch sets or removes the label on a node.
	Switch(ctx context.Context, node string, off bool) error
	// Open says what keeps the DaemonSet's roll from being finished.
	Open(ctx context.Context) (string, error)
	// Retire deletes the DaemonSet and its ConfigMap; Restore brings back what
	// Keep gave.
	Keep(ctx context.Context) (json.RawMessage, error)
	Retire(ctx context.Context) error
	Restore(ctx context.Context, kept json.RawMessage) error
	// Gone holds where neither is there.
	Gone(ctx context.Context) (bool, error)
}

// OffLabel is the label of nodes without kube-proxy.
const OffLabel = "kpr.cilium.io/kube-proxy"

// OffValue is its value.
const OffValue = "off"

// proxySteps take a DaemonSet away, one node at a time.
func proxySteps(w *World, in *Inputs) []plan.Step {
	if in.Proxy.DaemonSet == nil {
		return []plan.Step{byHand(w, in)}
	}
	steps := []plan.Step{fenceStep(w, in)}
	nodes := slices.Clone(in.Order)
	for _, n := range in.Nodes {
		if !slices.Contains(nodes, n) {
			nodes = append(nodes, n)
		}
	}
	for i, n := range nodes {
		steps = append(steps, offStep(w, in, n, nodes[i+1:]))
	}
	return append(steps, retireStep(w, in))
}

// fenceStep changes the DaemonSet's template once, so that nodes can be taken
// out one by one by a label.
func fenceStep(w *World, in *Inputs) plan.Step {
	finished := func(ctx context.Context, _ plan.Record) error {
		p := w.Pace.orDefaults()
		return p.until(ctx, p.Node, w.Proxies.Open)
	}
	return plan.Step{
		Name: "fence", Doc: "make DaemonSet " + in.Proxy.DaemonSet.String() + " leave out nodes labelled " + OffLabel + "=" + OffValue,
		Risk:    "the template changes, so kube-proxy restarts once on each node; its rules stay meanwhile",
		Capture: func(ctx context.Context) (plan.Record, error) { return w.Proxies.Affinity(ctx) },
		Apply:   func(ctx context.Context, _ plan.Record) error { return w.Proxies.Fence(ctx) },
		Verify:  finished, Undone: finished,
		Undo: func(ctx context.Context, r plan.Record) error { return w.Proxies.Unfence(ctx, json.RawMessage(r)) },
	}
}

// offStep takes kube-proxy off one node, and leaves the others as they are.
func offStep(w *World, in *Inputs, node string, later []string) plan.Step {
	replaced := func(ctx context.Context) error {
		seen, err := w.Eyes.See(ctx, []string{node})
		switch x := seen[node]; {
		case err != nil:
			return fmt.Errorf("%w: %w", plan.ErrUnverified, err)
		case x.Said.Mode == "" && x.Missing != nil:
			return fmt.Errorf("%w: %w", plan.ErrUnverified, x.Missing)
		case x.Said.Mode != "True":
			return fmt.Errorf("the agent says KPR %s: without kube-proxy nobody would translate Services on %s", x.Said.Mode, node)
		}
		return nil
	}
	return plan.Step{
		Name: "off", Node: node, Doc: "take kube-proxy off " + node,
		Risk:  "connections that kube-proxy's rules carry on this node can break once; new ones go by Cilium",
		Ready: replaced,
		Apply: func(ctx context.Context, _ plan.Record) error { return w.Proxies.Switch(ctx, node, true) },
		Verify: func(ctx context.Context, _ plan.Record) error {
			if err := w.proxyIs(ctx, node, "no"); err != nil {
				return err
			}
			if err := replaced(ctx); err != nil {
				return err
			}
			return w.untouched(ctx, later)
		},
		Undo:   func(ctx context.Context, _ plan.Record) error { return w.Proxies.Switch(ctx, node, false) },
		Undone: func(ctx context.Context, _ plan.Record) error { return w.proxyIs(ctx, node, "yes") },
	}
}

// proxyIs waits until it is proven for a node that kube-proxy runs or does not.
func (w *World) proxyIs(ctx context.Context, node, want string) error {
	p := w.Pace.orDefaults()
	return p.until(ctx, p.Node, func(ctx context.Context) (string, error) {
		seen, err := w.Eyes.See(ctx, []string{node})
		if err != nil {
			return "", err
		}
		switch x := seen[node]; {
		case x.Proxy == want:
			return "", nil
		case x.Proxy == "" && x.Missing != nil:
			return "", x.Missing
		}
		return map[string]string{"no": "kube-proxy still runs on ", "yes": "kube-proxy does not run on "}[want] + node, nil
	})
}

// untouched fails where nodes whose turn has not come lost their kube-proxy.
func (w *World) untouched(ctx context.Context, nodes []string) error {
	if len(nodes) == 0 {
		return nil
	}
	seen, err := w.Eyes.See(ctx, nodes)
	if err != nil {
		return fmt.Errorf("%w: %w", plan.ErrUnverified, err)
	}
	var lost []string
	for _, n := range nodes {
		if seen[n].Proxy == "no" {
			lost = append(lost, n)
		}
	}
	if len(lost) > 0 {
		return errors.New("kube-proxy is gone from nodes whose turn has not come: " + strings.Join(lost, ", "))
	}
	return nil
}

// retireStep deletes what would bring kube-proxy back.
func retireStep(w *World, in *Inputs) plan.Step {
	what := "DaemonSet " + in.Proxy.DaemonSet.String()
	if in.Proxy.ConfigMap != nil {
		what += " and ConfigMap " + in.Proxy.ConfigMap.String()
	}
	return plan.Step{
		Name: "retire", Doc: "delete " + what + ", which run nowhere any more, so that an upgrade does not bring kube-proxy back",
		Risk:    "none for traffic; both are kept in the journal",
		Capture: func(ctx context.Context) (plan.Record, error) { return w.Proxies.Keep(ctx) },
		Apply:   func(ctx context.Context, _ plan.Record) error { return w.Proxies.Retire(ctx) },
		Verify:  w.gone(true),
		Undo:    func(ctx context.Context, r plan.Record) error { return w.Proxies.Restore(ctx, json.RawMessage(r)) },
		Undone:  w.gone(false),
	}
}

func (w *World) gone(want bool) func(context.Context, plan.Record) error {
	return func(ctx context.Context, _ plan.Record) error {
		p := w.Pace.orDefaults()
		return p.until(ctx, p.Node, func(ctx context.Context) (string, error) {
			gone, err := w.Proxies.Gone(ctx)
			switch {
			case err != nil || gone == want:
				return "", err
			case want:
				return "the DaemonSet or its ConfigMap is still there", nil
			}
			return "the DaemonSet or its ConfigMap is not there", nil
		})
	}
}

// byHand waits for what only the operator, or a command of theirs, can do.
func byHand(w *World, in *Inputs) plan.Step {
	nodes := in.Nodes
	is := func(ctx context.Context, want string) error {
		seen, err := w.Eyes.See(ctx, nodes)
		if err != nil {
			return fmt.Errorf("%w: %w", plan.ErrUnverified, err)
		}
		var not, unknown []string
		for _, n := range nodes {
			switch seen[n].Proxy {
			case want:
			case "":
				unknown = append(unknown, n)
			default:
				not = append(not, n)
			}
		}
		switch {
		case len(not) > 0 && want == "no":
			return fmt.Errorf("kube-proxy still runs on %s. By hand: %s. Then run this again", strings.Join(not, ", "), in.Proxy.ByHand)
		case len(not) > 0:
			return fmt.Errorf("kube-proxy does not run on %s. By hand, take back: %s. Then run this again", strings.Join(not, ", "), in.Proxy.ByHand)
		case len(unknown) > 0:
			return fmt.Errorf("whether kube-proxy runs is not known on %s: %w", strings.Join(unknown, ", "), plan.ErrUnverified)
		}
		return nil
	}
	run := func(argv []string) func(context.Context, plan.Record) error {
		return func(ctx context.Context, _ plan.Record) error {
			if len(argv) == 0 {
				return nil // nothing that this program does; Verify says what to do
			}
			return w.Command(ctx, argv)
		}
	}
	input, _ := json.Marshal(in.Proxy)
	return plan.Step{
		Name: "switch-off", Doc: "switch kube-proxy off: " + in.Proxy.ByHand, Input: input,
		Risk:   "its process restarts with the distribution's; on servers the API server with it",
		Apply:  run(in.Proxy.Argv),
		Verify: func(ctx context.Context, _ plan.Record) error { return is(ctx, "no") },
		Undo:   run(in.Proxy.Back),
		Undone: func(ctx context.Context, _ plan.Record) error { return is(ctx, "yes") },
	}
}
