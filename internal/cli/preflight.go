package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

func (a *app) preflight() *cobra.Command {
	run := staged{lookup: lookup{app: a, command: "preflight", nodes: true}}
	var file string
	cmd := &cobra.Command{
		Use:     "preflight",
		GroupID: "move",
		Short:   "May this cluster move from kube-proxy to KPR, and the baseline it must return to",
		Long: `Runs every check and weighs what it finds as stage 0 of the migration does: that kube-proxy
runs is right, an agent that does not run what it is told is an error. Each node has to be
seen for itself; what is not known is no permission.

One request to the API server is sent from each node, at the address that its agent dials,
with your credentials, through the agent's pod; --probe-api=false leaves it out.

With --save the state of the cluster is written down: how well nodes, workloads, aggregated
APIs, ExternalSecrets, Argo CD Applications, backups, certificates and Flux releases are, by
their own status. Every later checkpoint is compared with it (verify --baseline). Only names
and states are written, nothing of what the objects hold.

It changes nothing in the cluster.`,
		Example: `  # may this cluster migrate, and how it is now
  kubectl kpr preflight --save before.json

  # only with a backup of Velero of the last day
  kubectl kpr preflight --require-backup 24h

  # what stands against it, for a program
  kubectl kpr preflight -o json | jq -r '.findings[] | select(.severity == "error") | .message'

  # from a recorded snapshot
  kubectl kpr preflight --snapshot kpr-prod-20261201-015522.tar.gz`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if run.backupWithin < 0 {
				return fmt.Errorf("--require-backup %s: want a positive duration", run.backupWithin)
			}
			if run.from.snapshot != "" {
				run.from.probeAPI = run.from.probeAPI && cmd.Flags().Changed("probe-api")
			}
			answer, err := run.ask(cmd.Context(), file != "")
			if err != nil {
				return err
			}
			if file != "" {
				if err := save(file, answer.Baseline().Write); err != nil {
					return fmt.Errorf("--save: %w", err)
				}
				_, _ = fmt.Fprintf(a.env.ErrOut, "kubectl kpr: baseline written to %s\n", file)
			}
			return run.output.write(a.env, answer.Document)
		},
	}
	run.add(cmd)
	fs := cmd.Flags()
	fs.StringVar(&file, "save", "", "write the baseline to this file")
	fs.DurationVar(&run.backupWithin, "require-backup", 0, "demand a Completed backup of Velero that is no older than this, such as "+(24*time.Hour).String())
	_ = fs.Set("probe-api", "true")
	fs.Lookup("probe-api").DefValue, fs.Lookup("probe-api").Changed = "true", false
	return cmd
}
