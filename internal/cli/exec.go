package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	kexec "github.com/kubectl-kpr/kubectl-kpr/pkg/exec"
)

func (a *app) exec() *cobra.Command {
	var to clusterFlags
	var stdin bool
	cmd := &cobra.Command{
		Use:     "exec NODE -- COMMAND [ARG...]",
		GroupID: "more",
		Short:   "Run a command in the agent of a node",
		Long: `Finds the Cilium agent of the node and runs the command in its container, with its
streams connected. The exit code is the command's own; 1 if it could not be started.

The words after -- are passed on as they are, no shell reads them.`,
		Example: `  kubectl kpr exec worker-1 -- cilium-dbg status --verbose
  kubectl kpr exec worker-1 -- cilium-dbg bpf lb list
  kubectl kpr exec worker-1 -- bash -c 'ip -brief address | grep UP'`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch dash := cmd.ArgsLenAtDash(); {
			case len(args) == 0:
				return usageError(cmd, fmt.Errorf("a node is needed"))
			case dash != 1 || len(args) < 2:
				return usageError(cmd, fmt.Errorf("node %q: want exactly one node, then -- and a command", args[0]))
			}
			return nil
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return a.nodeNames(cmd, toComplete), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			src, err := to.cluster(a)
			if err != nil {
				return err
			}
			streams := kexec.Streams{Stdout: a.env.Out, Stderr: a.env.ErrOut}
			if stdin {
				streams.Stdin = a.env.In
			}
			code, err := src.Exec(cmd.Context(), args[0], args[1:], streams)
			if err != nil {
				return err
			}
			if code != 0 {
				return ExitError{code}
			}
			return nil
		},
	}
	cmd.Flags().BoolVarP(&stdin, "stdin", "i", false, "pass standard input to the command")
	to.addNamespace(cmd)
	return cmd
}
