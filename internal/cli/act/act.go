package act

import (
	"github.com/spf13/cobra"

	"github.com/kubectl-kpr/kubectl-kpr/internal/cli"
)

// Commands adds the writing commands to the root, or to the reading command
// that they belong to. It is given to cli as Env.Acts.
func Commands(root *cobra.Command, share cli.Share) {
	if looking, _, err := root.Find([]string{"residue"}); err == nil && looking != root {
		looking.AddCommand(residueClean(share), residueRestore(share))
	}
	root.AddCommand(probeCommand(share))
	root.AddCommand(migrateCommand(share), rollbackCommand(share))
}
