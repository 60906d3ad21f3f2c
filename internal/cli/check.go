package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/checks"
)

func (a *app) check() *cobra.Command {
	run := lookup{app: a, command: "check"}
	var only []string
	cmd := &cobra.Command{
		Use:     "check",
		GroupID: "look",
		Short:   "Run every check, or those of --only",
		Long: `Runs the checks and reports what they found, with the evidence that proves it.
A check that lacks evidence is unknown and never counts as ok.

What is known and accepted can be left out of the count, with --ignore by rule and subject or with
--baseline by an earlier report or a snapshot. It stays in the JSON under "waived". It opens no gate of a migration.

` + checkList(),
		Example: `  # everything
  kubectl kpr check

  # one rule, with warnings counting
  kubectl kpr check --only kpr-mode --fail-on warning

  # for a program
  kubectl kpr check -o json | jq -r '.findings[] | [.severity, .rule, .subject, .message] | @tsv'

  # for a pipeline
  kubectl kpr check -o junit > kpr.xml

  # all but what is known: one rule on some Services, and all of last week's report
  kubectl kpr check --ignore 'backend-state=service/batch/*' --baseline last-week.json

  # only what is new since a snapshot
  kubectl kpr check --baseline before-upgrade.tar.gz`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			chosen, err := choose(only)
			if err != nil {
				return err
			}
			return run.run(cmd.Context(), chosen)
		},
	}
	run.add(cmd)
	run.waived.add(cmd)
	cmd.Flags().StringSliceVar(&only, "only", nil, "names of checks or rules to run")
	complete(cmd, "only", ruleNames())
	return cmd
}

func checkList() string {
	var b strings.Builder
	b.WriteString("Checks:\n")
	for _, c := range checks.All() {
		fmt.Fprintf(&b, "  %-14s %s\n", c.Name, c.Doc)
	}
	return b.String()
}

// choose finds the checks of the given names; a check has its own name and
// those of its rules.
func choose(only []string) ([]*diag.Check, error) {
	all := checks.All()
	if len(only) == 0 {
		return all, nil
	}
	var out []*diag.Check
	for _, name := range only {
		i := slices.IndexFunc(all, func(c *diag.Check) bool {
			return c.Name == name || slices.ContainsFunc(c.Rules, func(r *diag.Rule) bool { return r.Name == name })
		})
		if i < 0 {
			return nil, unknownRule("--only", name)
		}
		if !slices.Contains(out, all[i]) {
			out = append(out, all[i])
		}
	}
	return out, nil
}

func ruleNames() []string {
	var names []string
	for _, r := range checks.Rules() {
		names = append(names, r.Name)
	}
	return names
}
