package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/kubectl-kpr/kubectl-kpr/internal/version"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/report"
)

// exitInterrupted is what a shell expects of a program that SIGINT ended.
const exitInterrupted = 130

// ExitError ends a command with a code and without a message: what there was
// to say has been said.
type ExitError struct{ Code int }

// Error names the code; it is never printed.
func (e ExitError) Error() string { return fmt.Sprintf("exit code %d", e.Code) }

// Execute runs the plugin with args and returns its exit code.
func Execute(ctx context.Context, env Env, args []string) int {
	cmd := New(env)
	cmd.SetArgs(args)
	cmd.SetIn(env.In)
	cmd.SetOut(env.Out)
	cmd.SetErr(env.ErrOut)
	return codeOf(ctx, env, cmd.ExecuteContext(ctx))
}

func codeOf(ctx context.Context, env Env, err error) int {
	var exit ExitError
	switch {
	case err == nil:
		return report.ExitOK
	case errors.As(err, &exit):
		return exit.Code
	case ctx.Err() != nil:
		_, _ = fmt.Fprintln(env.ErrOut, "kubectl kpr: interrupted")
		return exitInterrupted
	case errors.Is(err, syscall.EPIPE), errors.Is(err, io.ErrClosedPipe):
		return report.ExitOK // the reader has seen enough
	}
	_, _ = fmt.Fprintln(env.ErrOut, "kubectl kpr: "+strings.TrimSpace(err.Error()))
	return report.ExitFailed
}

// New builds the command tree.
func New(env Env) *cobra.Command {
	flags := genericclioptions.NewConfigFlags(true)
	root := &cobra.Command{
		Use:   "kubectl-kpr",
		Short: "Look into Cilium's kube-proxy replacement",
		Long: `kubectl kpr answers, for every node at once, whether Cilium's kube-proxy
replacement (KPR) is active and healthy, and what of kube-proxy is still there.

Commands only read unless their help says otherwise. Those that read take
--snapshot PATH to look at recorded evidence in place of a cluster.

Exit codes: 0 nothing found, 2 findings, 3 something needed could not be seen,
1 wrong usage or failure, 130 interrupted.`,
		Example: `  # the state of KPR on every node
  kubectl kpr status

  # the same from a recorded snapshot
  kubectl kpr status --snapshot kpr-prod-20261201-015522.tar.gz

  # every check there is, for a program
  kubectl kpr check -o json`,
		Version:       version.String(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl kpr"},
	}
	flags.AddFlags(root.PersistentFlags())
	root.SetFlagErrorFunc(usageError)
	root.AddGroup(&cobra.Group{ID: "look", Title: "Look at a cluster or a snapshot:"}, &cobra.Group{ID: "move", Title: "Move from kube-proxy to KPR:"}, &cobra.Group{ID: "more", Title: "Record and learn more:"})
	app := &app{env: env, flags: flags}
	root.AddCommand(app.status(), app.trace(), app.monitor(), app.check(), app.residue(), app.config(), app.diff(), app.preflight(), app.verify(), app.snapshot(), app.exec(), app.explain(), app.version())
	if env.Acts != nil {
		env.Acts(root, Share{app})
	}
	root.SetHelpCommandGroupID("more")
	root.SetCompletionCommandGroupID("more")
	app.completion(root)
	return root
}

// app is what the commands share.
type app struct {
	env   Env
	flags *genericclioptions.ConfigFlags
}

func usageError(cmd *cobra.Command, err error) error {
	return fmt.Errorf("%w (see %s --help)", err, cmd.CommandPath())
}

// noArgs refuses arguments with a word on what was meant.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError(cmd, fmt.Errorf("argument %q: %s takes none", args[0], cmd.CommandPath()))
	}
	return nil
}
