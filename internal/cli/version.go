package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kubectl-kpr/kubectl-kpr/internal/version"
)

func (a *app) version() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		GroupID: "more",
		Short:   "Print the version of the plugin",
		Example: `  kubectl kpr version`,
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(a.env.Out, version.String())
			return err
		},
	}
}
