package cli

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-kpr/kubectl-kpr/internal/rules"
)

func (a *app) explain() *cobra.Command {
	markdown := false
	cmd := &cobra.Command{
		Use:     "explain [RULE]",
		GroupID: "more",
		Short:   "What a rule means, how to prove it by hand, what to do",
		Example: `  # all rules
  kubectl kpr explain

  # one of them
  kubectl kpr explain kpr-mode

  # as a page, with what is read for it
  kubectl kpr explain kpr-mode --markdown`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.FixedCompletions(ruleNames(), cobra.ShellCompDirectiveNoFileComp),
		RunE: func(_ *cobra.Command, args []string) error {
			w := bufio.NewWriter(a.env.Out)
			if len(args) == 0 {
				list(w, markdown)
				return w.Flush()
			}
			e, ok := rules.Find(args[0])
			if !ok {
				return unknownRule("explain", args[0])
			}
			text := e.Text()
			if markdown {
				text = e.Page()
			}
			_, _ = w.WriteString(text)
			return w.Flush()
		},
	}
	cmd.Flags().BoolVar(&markdown, "markdown", false, "write Markdown, as docs/rules has it")
	return cmd
}

func list(w *bufio.Writer, markdown bool) {
	if markdown {
		_, _ = w.WriteString(rules.Index())
		return
	}
	all, wide := rules.All(), 0
	for _, e := range all {
		wide = max(wide, len(e.Name))
	}
	for _, e := range all {
		_, _ = fmt.Fprintf(w, "%-*s  %-8s %s\n", wide, e.Name, e.Severity, e.Title)
	}
}

// unknownRule names near ones, or where to find all.
func unknownRule(where, name string) error {
	hint := "see kubectl kpr explain for all"
	if near := rules.Near(name); len(near) > 0 {
		hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return fmt.Errorf("%s %q: no such rule; %s", where, name, hint)
}
