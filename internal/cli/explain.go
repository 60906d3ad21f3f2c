package cli

import (
	"bufio"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/checks"
)

func (a *app) explain() *cobra.Command {
	return &cobra.Command{
		Use:     "explain [RULE]",
		GroupID: "more",
		Short:   "What a rule means, how to prove it by hand, what to do",
		Example: `  # all rules
  kubectl kpr explain

  # one of them
  kubectl kpr explain kpr-mode`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.FixedCompletions(ruleNames(), cobra.ShellCompDirectiveNoFileComp),
		RunE: func(_ *cobra.Command, args []string) error {
			w := bufio.NewWriter(a.env.Out)
			if len(args) == 0 {
				for _, r := range checks.Rules() {
					_, _ = fmt.Fprintf(w, "%-14s %-8s %s\n", r.Name, r.Severity, r.Title)
				}
				return w.Flush()
			}
			name := strings.ReplaceAll(strings.ToLower(args[0]), "_", "-")
			rules := checks.Rules()
			i := slices.IndexFunc(rules, func(r *diag.Rule) bool { return r.Name == name })
			if i < 0 {
				return unknownRule("explain", args[0])
			}
			explainRule(w, rules[i])
			return w.Flush()
		},
	}
}

func explainRule(w *bufio.Writer, r *diag.Rule) {
	_, _ = fmt.Fprintf(w, "%s (%s): %s\n\n%s\n", r.Name, r.Severity, r.Title, r.Doc)
	if len(r.Proof) > 0 {
		_, _ = fmt.Fprintln(w, "\nTo prove it by hand:")
		for _, p := range r.Proof {
			_, _ = fmt.Fprintln(w, "  "+p)
		}
	}
	_, _ = fmt.Fprintf(w, "\nWhat to do:\n  %s\n", strings.ReplaceAll(r.Remedy, "\n", "\n  "))
}

// unknownRule names near ones, or where to find all.
func unknownRule(where, name string) error {
	var near []string
	for _, n := range ruleNames() {
		if strings.Contains(n, strings.ToLower(name)) || strings.HasPrefix(n, strings.SplitN(strings.ToLower(name), "-", 2)[0]) {
			near = append(near, n)
		}
	}
	hint := "see kubectl kpr explain for all"
	if len(near) > 0 {
		hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return fmt.Errorf("%s %q: no such rule; %s", where, name, hint)
}
