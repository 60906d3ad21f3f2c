package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubectl-kpr/kubectl-kpr/internal/version"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/report"
)

// lookup is what every command that ends in a report has in common: where to
// look, at which nodes, and how to tell it.
type lookup struct {
	app     *app
	command string
	nodes   bool // the report shows the nodes
	sums    bool // what is judged needs no list of each node, see diag.Selection
	residue bool // the report shows what kube-proxy has on each node
	// settings, if not nil, makes the report compare what agents were told with
	// what they run.
	settings *settingsOf

	from   sourceFlags
	which  nodeFlags
	output outputFlags
	waived waiverFlags // of commands that have them
}

func (l *lookup) add(cmd *cobra.Command) {
	l.from.add(cmd)
	l.which.add(l.app, cmd)
	l.output.add(cmd)
}

// run collects, judges and reports.
func (l *lookup) run(ctx context.Context, checks []*diag.Check) error {
	failOn, err := l.output.validate()
	if err != nil {
		return err
	}
	waivers, baseline, err := l.waived.read(ctx, l.app, checks)
	if err != nil {
		return err
	}
	sel, err := l.which.selection()
	if err != nil {
		return err
	}
	sel.Sums = l.sums && l.from.snapshot == ""
	src, err := l.from.open(l.app)
	if err != nil {
		return err
	}
	if c, ok := src.(io.Closer); ok {
		defer func() { _ = c.Close() }()
	}
	bounded, cancel := context.WithTimeout(ctx, l.from.deadline)
	defer cancel()
	shown := report.Facts(l.nodes)
	if l.residue {
		shown = report.ResidueFacts()
	}
	if l.settings != nil {
		shown = report.SettingFacts()
	}
	done, err := diag.Do(bounded, src, sel, checks, shown...)
	if err == nil {
		done.Settle(bounded, src, l.from.settle)
	}
	var chart *report.Chart
	if err == nil && l.settings != nil {
		chart, err = l.settings.beside(bounded, src, done)
	}
	l.from.progress.clear()
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return l.output.write(l.app.env, report.Build(done, report.Options{
		Command: l.command, Tool: version.String(), Now: l.app.env.Now(), FailOn: failOn, Nodes: l.nodes, Residue: l.residue,
		Waivers: waivers, Baseline: baseline, Settings: l.settings != nil, Chart: chart,
	}))
}

// nodeFlags choose nodes.
type nodeFlags struct {
	names    []string
	selector string
}

func (f *nodeFlags) add(a *app, cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.names, "node", nil, "look at this node only; repeats, and takes globs")
	cmd.Flags().StringVarP(&f.selector, "selector", "l", "", "look at nodes with these labels only")
	a.completeNodes(cmd, "node")
}

func (f *nodeFlags) selection() (diag.Selection, error) {
	sel := diag.Selection{Nodes: f.names}
	if f.selector == "" {
		return sel, nil
	}
	parsed, err := labels.Parse(f.selector)
	if err != nil {
		return sel, fmt.Errorf("--selector %q: %w", f.selector, err)
	}
	sel.Labels = parsed
	return sel, nil
}
