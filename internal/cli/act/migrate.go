package act

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kubectl-kpr/kubectl-kpr/internal/cli"
)

// migrate is the command migrate.
func migrateCommand(share cli.Share) *cobra.Command {
	m := moving{share: share}
	cmd := &cobra.Command{
		Use:     "migrate",
		GroupID: "move",
		Short:   "Move from kube-proxy to KPR, in stages that can be taken back",
		Long: `Without --stage: the plan for this cluster, and where it stands. With one, that stage: gate, what
it does, confirmation, step by step, checkpoint.

  stage 1   Cilium takes over: an address of the API server that needs no Service, the
            replacement, and if wished BPF masquerade and host routing; each step rolls the
            agents once, and ends when every node's agent says so itself
  stage 2   kube-proxy goes, where it is a DaemonSet one node at a time; elsewhere the plan
            says what to do by hand, waits and proves it
  stage 3   looks that all of it holds, and closes the plan

Values are changed by your own helm at the installed chart version, keys of the plan alone; or,
with --driver emit, written to files for whoever owns the release. Every step is journaled in
ConfigMaps of Cilium's namespace before it is done: after an interruption the same command goes
on, and rollback goes back. Managed distributions (EKS, AKS, GKE) are refused.

Exit codes: 0 done and verified, 2 refused by a gate, step or checkpoint, 3 not verifiable, 1 not
started or failed.`,
		Example: `  # the plan, and where it stands
  kubectl kpr migrate --chart cilium/cilium

  # what stage 1 would do, without doing it
  kubectl kpr migrate --stage 1 --chart cilium/cilium --api-server 10.0.0.10:6443 --dry-run

  # stage 1, then stage 2, against the state that preflight --save wrote
  kubectl kpr migrate --stage 1 --chart cilium/cilium --baseline before.json
  kubectl kpr migrate --stage 2 --baseline before.json

  # write the plan down, change it, use it
  kubectl kpr migrate --chart cilium/cilium --print-plan > plan.yaml
  kubectl kpr migrate --stage 1 --plan plan.yaml`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if m.stage < 0 || m.stage > 3 {
				return cli.UsageError(cmd, fmt.Errorf("--stage %d: want 1, 2 or 3", m.stage))
			}
			if m.dryRun && m.stage == 0 {
				return cli.UsageError(cmd, errors.New("--dry-run belongs to --stage; without it nothing is done anyway"))
			}
			return m.run(cmd.Context())
		},
	}
	m.add(cmd)
	fs := cmd.Flags()
	fs.IntVar(&m.stage, "stage", 0, "the stage to do: 1, 2 or 3")
	fs.Lookup("stage").DefValue = ""
	fs.BoolVar(&m.print, "print-plan", false, "write the plan as a file and do nothing")
	fs.StringVar(&m.wishes.APIServer, "api-server", "", "HOST:PORT at which agents are to find the API server, one that needs no Service")
	fs.BoolVar(&m.wishes.Masquerade, "masquerade", false, "also turn BPF masquerade on")
	fs.BoolVar(&m.wishes.HostRouting, "host-routing", false, "also turn BPF host routing on")
	fs.BoolVar(&m.wishes.Combine, "combine", false, "do all of stage 1 in one roll of the agents")
	fs.StringVar(&m.wishes.Driver, "driver", "", "how values are changed: helm, or emit for a release that somebody else owns")
	fs.StringSliceVar(&m.wishes.Order, "first", nil, "nodes that stage 2 does first, such as a canary")
	_ = cmd.RegisterFlagCompletionFunc("stage", cobra.FixedCompletions([]string{"1", "2", "3"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// rollbackCommand is the command rollback.
func rollbackCommand(share cli.Share) *cobra.Command {
	m := moving{share: share, back: true}
	cmd := &cobra.Command{
		Use:     "rollback",
		GroupID: "move",
		Short:   "Take a migration back, kube-proxy first and proven on every node",
		Long: `Takes back what migrate has done, from its journal: all of it, or with --stage 2 only that
kube-proxy went. kube-proxy comes back first and is proven on every node; only then the
replacement goes, and the address of the API server last. What is restored is what was recorded
before each step.

Exit codes are those of migrate.`,
		Example: `  # all of it
  kubectl kpr rollback

  # kube-proxy back, the replacement stays
  kubectl kpr rollback --stage 2`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if m.stage != 1 && m.stage != 2 {
				return cli.UsageError(cmd, fmt.Errorf("--stage %d: want 1, which takes back all, or 2", m.stage))
			}
			return m.run(cmd.Context())
		},
	}
	m.add(cmd)
	cmd.Flags().IntVar(&m.stage, "stage", 1, "the earliest stage to take back")
	return cmd
}
