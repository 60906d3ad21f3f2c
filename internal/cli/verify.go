package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-kpr/kubectl-kpr/internal/checkpoint"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/stage"
)

func (a *app) verify() *cobra.Command {
	run := staged{lookup: lookup{app: a, command: "verify", nodes: true}, stage: -1}
	soak := soaking{interval: 5 * time.Minute}
	explain := false
	cmd := &cobra.Command{
		Use:     "verify",
		GroupID: "move",
		Short:   "Does every node stand where a stage of the migration wants it",
		Long: `The checkpoint of a stage, at any time and as often as you like: all checks, weighed by the
stage, and every node for itself.

  stage 0   kube-proxy runs on every node, KPR is off          (before, and after a rollback)
  stage 1   KPR is on on every node, the agents' roll is over; kube-proxy may still run
  stage 2   KPR is on, and it is proven for every node that kube-proxy does not run
  stage 3   as stage 2, after a soak

Without --stage it is the stage that the last of the nodes stands at. --explain prints how
the findings of each rule count there.

With --watch it looks again and again for --duration. --save keeps each look in a file, a
JSON object a line; the same command with the same file goes on after an interruption, and
shows for which times nobody looked. The exit code is 0 only if every look was good and the
whole time was covered.`,
		Example: `  # where does the cluster stand, and is it well there
  kubectl kpr verify

  # the checkpoint after kube-proxy went, against the state before the migration
  kubectl kpr verify --stage 2 --baseline before.json

  # how findings count at a stage
  kubectl kpr verify --stage 1 --explain

  # the soak
  kubectl kpr verify --stage 3 --watch --duration 24h --save soak.jsonl`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			soak.given = cmd.Flags().Changed("duration") || cmd.Flags().Changed("interval") || cmd.Flags().Changed("save")
			switch {
			case explain:
				return run.explain()
			case soak.watch:
				return soak.run(cmd.Context(), &run)
			case soak.given:
				return usageError(cmd, errors.New("--duration, --interval and --save belong to --watch"))
			}
			answer, err := run.ask(cmd.Context(), false)
			if err != nil {
				return err
			}
			return run.output.write(a.env, answer.Document)
		},
	}
	run.add(cmd)
	fs := cmd.Flags()
	fs.IntVar(&run.stage, "stage", -1, "the stage that is wanted, 0 to 3; the one the cluster stands at if not given")
	fs.Lookup("stage").DefValue = ""
	fs.StringVar(&run.baseline, "baseline", "", "compare the cluster's objects with this file of preflight --save")
	fs.BoolVar(&explain, "explain", false, "print how findings count at the stage, and look at nothing")
	fs.BoolVarP(&soak.watch, "watch", "w", false, "look again and again")
	fs.DurationVar(&soak.duration, "duration", 24*time.Hour, "with --watch: for how long, counted from the first look in --save")
	fs.DurationVar(&soak.interval, "interval", soak.interval, "with --watch: the time between two looks")
	fs.StringVar(&soak.file, "save", "", "with --watch: keep the looks in this file, and go on with those that are in it")
	complete(cmd, "stage", []string{"0", "1", "2", "3"})
	return cmd
}

// explain prints the table of a stage.
func (l *staged) explain() error {
	s, err := l.wanted()
	if err != nil {
		return fmt.Errorf("--stage: %w", err)
	}
	if s.Number < 0 {
		return errors.New("--explain: name the stage with --stage")
	}
	w := l.app.env.Out
	_, _ = fmt.Fprintf(w, "stage %s: %s\n\nfindings that count otherwise here than elsewhere:\n", s.Name, s.Wants)
	slices.SortFunc(s.Weights, func(a, b stage.Weight) int { return cmp.Compare(a.Rule, b.Rule) })
	for _, x := range s.Weights {
		as := "counts as info"
		if x.As == stage.Strict {
			as = "a warning is an error"
		}
		_, _ = fmt.Fprintf(w, "  %-18s %-22s %s\n", x.Rule, as, x.Why)
	}
	_, err = fmt.Fprintf(w, "\nall other rules count as kubectl kpr explain RULE says\n")
	return err
}

// soaking watches a stage for a while.
type soaking struct {
	watch, given       bool
	duration, interval time.Duration
	file               string
}

func (s *soaking) run(ctx context.Context, l *staged) error {
	switch {
	case l.from.snapshot != "":
		return errors.New("--watch: a snapshot does not change; look at it without --watch")
	case s.interval < time.Second:
		return fmt.Errorf("--interval %s: want 1s or more", s.interval)
	case s.duration < s.interval:
		return fmt.Errorf("--duration %s: shorter than --interval %s", s.duration, s.interval)
	case l.output.format != "text" && l.output.format != "json":
		return fmt.Errorf("--watch: output format %q: want text or json", l.output.format)
	}
	if _, err := l.wanted(); err != nil {
		return fmt.Errorf("--stage: %w", err)
	}
	soak, err := checkpoint.Resume(s.file, s.interval)
	if err != nil {
		return fmt.Errorf("--save: %w", err)
	}
	told := printer{w: l.app.env.Out, json: l.output.format == "json"}
	if n := len(soak.Looks); n > 0 {
		_, _ = fmt.Fprintf(l.app.env.ErrOut, "kubectl kpr: going on with %d looks since %s\n", n, soak.Looks[0].Time.Format(time.RFC3339))
	}
	err = soak.Run(ctx, l.app.env.Now, s.file, s.duration, func(ctx context.Context) (checkpoint.Look, error) {
		answer, err := l.ask(ctx, false)
		if err != nil {
			return checkpoint.Look{}, err
		}
		return checkpoint.LookOf(answer.Document), nil
	}, told.look)
	if err != nil {
		return err
	}
	return told.sum(soak)
}
