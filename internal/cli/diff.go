package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-kpr/kubectl-kpr/internal/render"
	"github.com/kubectl-kpr/kubectl-kpr/internal/version"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/checks"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/report"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// running is the word for the cluster of kubectl's own flags.
const running = "live"

func (a *app) diff() *cobra.Command {
	d := differ{app: a, output: outputFlags{formats: render.DiffFormats()}}
	cmd := &cobra.Command{
		Use:     "diff BEFORE AFTER",
		GroupID: "look",
		Short:   "What changed between two snapshots, or since one",
		Long: `Compares two looks at a cluster. Each side is a recording (what --snapshot takes) or the
word "live", which is the running cluster; ./live is a file of that name.

Compared are findings, by key, which nodes there are, their modes, versions and kube-proxy,
cilium-config key by key and what agents run, and every frontend and backend of every node
in three layers: as the API wants it, as the agent believes it, and as the BPF maps hold it.
Nodes that changed alike are named together. What one side did not see is neither new nor
gone: it is not compared, and said so. Recordings that are redacted line up when they were
made with the same --redact-key.

Exit codes: 0 the same, 2 different, 3 nothing differs and something could not be
compared, 1 wrong usage or failure.`,
		Example: `  # before and after an upgrade
  kubectl kpr diff before.tar.gz after.tar.gz

  # what changed since last week's snapshot
  kubectl kpr diff last-week.tar.gz live

  # the backends that are new in the maps, for a program
  kubectl kpr diff before.tar.gz live -o json | jq -r '.diff.frontends[] | select(.layer == "kernel" and .what == "backend new") | [.service, .frontend, .backend] | @tsv'`,
		Args: d.args,
		RunE: func(cmd *cobra.Command, args []string) error { return d.run(cmd.Context(), args[0], args[1]) },
	}
	d.from.add(cmd)
	cmd.Flags().DurationVar(&d.from.settle, "settle", 5*time.Second, "after how long to look again at findings of a running cluster that may pass; 0 looks once")
	d.output.add(cmd)
	_ = cmd.Flags().MarkHidden("fail-on")
	return cmd
}

// differ compares two sides.
type differ struct {
	app    *app
	from   clusterFlags
	output outputFlags
}

func (d *differ) args(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) != 2:
		return usageError(cmd, fmt.Errorf("%d arguments: want BEFORE and AFTER, each a snapshot or %q", len(args), running))
	case args[0] == running && args[1] == running:
		return usageError(cmd, errors.New("both sides are live: name a recording for one of them"))
	case args[0] != running && args[1] != running && (d.from.host || d.from.probeAPI || d.from.drops > 0):
		return usageError(cmd, errors.New("--host, --probe-api and --drops: ask a running cluster, which neither side is"))
	}
	return nil
}

func (d *differ) run(ctx context.Context, before, after string) error {
	failOn, err := d.output.validate()
	if err != nil {
		return err
	}
	was, err := d.look(ctx, before)
	if err != nil {
		return fmt.Errorf("before: %w", err)
	}
	is, err := d.look(ctx, after)
	if err != nil {
		return fmt.Errorf("after: %w", err)
	}
	return d.output.write(d.app.env, report.Compare(was, is, report.Options{Command: "diff", Tool: version.String(), Now: d.app.env.Now(), FailOn: failOn}))
}

// look collects and judges one side.
func (d *differ) look(ctx context.Context, side string) (*diag.Run, error) {
	from := sourceFlags{clusterFlags: d.from, snapshot: side}
	if side == running {
		from.snapshot = ""
	} else {
		from.host, from.probeAPI, from.drops = false, false, 0
	}
	src, err := from.open(d.app)
	if err != nil {
		return nil, err
	}
	if c, ok := src.(io.Closer); ok {
		defer func() { _ = c.Close() }()
	}
	return judge(ctx, src, from.clusterFlags, report.DiffFacts())
}

// judge runs every check on a source, within its deadline.
func judge(ctx context.Context, src source.Source, from clusterFlags, facts []fact.Named) (*diag.Run, error) {
	bounded, cancel := context.WithTimeout(ctx, from.deadline)
	defer cancel()
	run, err := diag.Do(bounded, src, diag.Selection{}, checks.All(), facts...)
	if err == nil {
		run.Settle(bounded, src, from.settle)
	}
	from.progress.clear()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return run, err
}
