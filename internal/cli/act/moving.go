package act

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-kpr/kubectl-kpr/internal/baseline"
	"github.com/kubectl-kpr/kubectl-kpr/internal/checkpoint"
	"github.com/kubectl-kpr/kubectl-kpr/internal/cli"
	"github.com/kubectl-kpr/kubectl-kpr/internal/kube"
	"github.com/kubectl-kpr/kubectl-kpr/internal/kube/write"
	"github.com/kubectl-kpr/kubectl-kpr/internal/migrate"
	"github.com/kubectl-kpr/kubectl-kpr/internal/plan"
	"github.com/kubectl-kpr/kubectl-kpr/internal/version"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/checks"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/report"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/stage"
)

// moving is a run of migrate, or of rollback.
type moving struct {
	share cli.Share
	change
	cluster  cli.ClusterFlags
	stage    int
	back     bool
	print    bool
	file     string // --plan
	baseline string
	wishes   migrate.Wishes

	op     *operation
	in     *migrate.Inputs
	plan   *plan.Plan
	remove func() // the kubeconfig of helm
}

func (m *moving) add(cmd *cobra.Command) {
	m.change.add(cmd)
	m.addAccept(cmd)
	m.cluster.Add(cmd)
	for _, name := range []string{"host", "drops", "probe-api"} {
		if f := cmd.Flags().Lookup(name); f != nil {
			f.Hidden = true
		}
	}
	fs := cmd.Flags()
	fs.StringVar(&m.file, "plan", "", "use this plan file in place of one made for the cluster")
	fs.StringVar(&m.baseline, "baseline", "", "compare the cluster's objects with this file of preflight --save at every checkpoint")
	fs.StringVar(&m.wishes.Chart, "chart", "", "where helm finds Cilium's chart: a repository's name, an OCI address or a folder")
	fs.StringVar(&m.wishes.Helm, "helm", "", "the helm program, version 3 or 4; helm if not given")
}

func (m *moving) run(ctx context.Context) error {
	accept, err := m.accepted(knownRule)
	if err != nil {
		return err
	}
	defer func() {
		if m.remove != nil {
			m.remove()
		}
	}()
	if m.op, err = m.connect(ctx, m.share, &m.cluster); err != nil {
		return err
	}
	found, err := m.op.open(ctx, migrate.Kind)
	if err != nil {
		return err
	}
	id := newID(migrate.Kind, m.share.Env().Now())
	switch {
	case len(found) > 1:
		return fmt.Errorf("%d migrations are open in %s (%s, %s, …): finish or remove all but one", len(found), m.op.namespace, found[0].ID, found[1].ID)
	case len(found) == 1:
		id = found[0].ID
		var opening *plan.Opening
		if opening, err = m.op.opening(ctx, id); err == nil {
			m.in, err = migrate.FromJSON(opening.Inputs)
		}
	case m.back:
		return errors.New("no migration is open here, so there is nothing to take back; what is closed is taken back by a new one")
	default:
		err = m.inputs(ctx)
	}
	if err != nil {
		return err
	}
	if m.print {
		return m.in.Write(m.share.Env().Out)
	}
	if err := m.make(ctx); err != nil {
		return err
	}
	return ended(ctx, m.share.Env(), m.do(ctx, id, accept))
}

func knownRule(name string) bool {
	if name == "check" { // the operator's own
		return true
	}
	for _, r := range checks.Rules() {
		if r.Name == name {
			return true
		}
	}
	return false
}

// inputs are those of the plan file, else made for the cluster.
func (m *moving) inputs(ctx context.Context) error {
	if m.file != "" {
		f, err := os.Open(m.file)
		if err != nil {
			return fmt.Errorf("--plan: %w", err)
		}
		defer func() { _ = f.Close() }()
		if m.in, err = migrate.ReadInputs(m.file, f); err != nil {
			return err
		}
		return m.in.Valid()
	}
	run, err := diag.Do(ctx, m.op.src, diag.Selection{}, nil, migrate.Facts()...)
	m.cluster.Clear()
	if err != nil {
		return err
	}
	if m.in, err = migrate.Derive(run.Store.Cluster(), m.wishes); err != nil {
		return err
	}
	if m.in.Driver.Kind == "helm" {
		h, err := m.helm()
		if err != nil {
			return err
		}
		if m.in.Release.Version, err = h.Installed(ctx); err != nil {
			return err
		}
	}
	return m.in.Valid()
}

// helm is the operator's helm, with a kubeconfig of its own.
func (m *moving) helm() (*migrate.Helm, error) {
	name, remove, err := m.share.Kubeconfig()
	if err != nil {
		return nil, err
	}
	if m.remove != nil {
		m.remove()
	}
	m.remove = remove
	return &migrate.Helm{Program: m.in.Driver.Helm, Release: m.in.Release, Kubeconfig: name}, nil
}

// make builds the plan from the inputs, and what its steps act on.
func (m *moving) make(context.Context) error {
	workloads, err := write.NewWorkloads(m.op.config)
	if err != nil {
		return err
	}
	open := func() (source.Source, error) { return m.cluster.Open(m.share) }
	eyes := migrate.Looking{Open: open}
	w := &migrate.World{Agents: migrate.AgentSet{Workloads: workloads, Object: m.in.Agents}, Eyes: eyes, Command: command}
	switch m.in.Driver.Kind {
	case "helm":
		if w.Values, err = m.helm(); err != nil {
			return err
		}
	case "command":
		w.Values = &migrate.Commanded{Driver: m.in.Driver}
	default:
		w.Values = &migrate.Emitted{Eyes: eyes, Nodes: m.in.Nodes, Folder: "."}
	}
	if m.in.Proxy.DaemonSet != nil {
		w.Proxies = migrate.ProxySet{Workloads: workloads, Set: *m.in.Proxy.DaemonSet, Map: m.in.Proxy.ConfigMap}
	}
	ask, err := m.gates(open)
	if err != nil {
		return err
	}
	m.plan, err = migrate.New(m.in, w, ask.Gate, m.op.target)
	return err
}

func (m *moving) gates(open func() (source.Source, error)) (*migrate.Asking, error) {
	env := m.share.Env()
	o := checkpoint.Options{Settle: 5 * time.Second, Report: report.Options{Command: "migrate", Tool: version.String(), FailOn: diag.Error}}
	if m.baseline != "" {
		f, err := os.Open(m.baseline)
		if err != nil {
			return nil, fmt.Errorf("--baseline: %w", err)
		}
		defer func() { _ = f.Close() }()
		if o.Before, err = stage.ReadBaseline(m.baseline, f); err != nil {
			return nil, err
		}
		client, err := kube.New(m.op.config)
		if err != nil {
			return nil, err
		}
		o.Objects, o.Items = client, append(baseline.Defaults(), m.in.Baseline...)
	}
	return &migrate.Asking{Inputs: m.in, Open: open, Options: o, Now: env.Now, Exec: m.op.src.Exec, Command: command}, nil
}

// command runs a program of the operator's plan file.
func command(ctx context.Context, argv []string) error {
	out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %.300s", argv[0], err, clean(string(out)))
	}
	return nil
}

func (m *moving) name() string { return strconv.Itoa(m.stage) }
