package act

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/kubectl-kpr/kubectl-kpr/internal/cli"
)

// residueClean is the command residue clean.
func residueClean(share cli.Share) *cobra.Command {
	r := cleaning{share: share}
	cmd := &cobra.Command{
		Use:   "clean",
		Short: "Remove what kube-proxy has left on nodes, with a backup",
		Long: `Removes what is proven to be kube-proxy's from nodes where it does not run and KPR is True: its
chains and the jumps to them in every table, back end and family of iptables, its nftables tables,
its IPVS virtual servers, IP sets and kube-ipvs0. Rules of the kubelet, of Cilium and of
anybody else stay as they are, also those that are written meanwhile.

A node where kube-proxy runs, where KPR is not True, or where that is not known is refused. Where
a host has no nft, its nftables are not known: --accept nft-table=REASON goes on without.

Node by node: all that the tools show is written to /var/lib/kubectl-kpr/ on the node and to
--backup here; then jumps go before chains, by iptables-restore --noflush; then the node is
looked at again. What was done is in a journal, in ConfigMaps of Cilium's namespace. When it was
interrupted, the same command goes on, and --undo takes back what was done.

It works through a privileged pod on each node, with the agent's image, which ends by itself;
--dry-run looks through such pods as well, and changes nothing else.

Exit codes: 0 done and verified, 2 refused, 3 not verifiable, 1 not started or failed.`,
		Example: `  # what would go, node by node
  kubectl kpr residue clean --dry-run

  # one node first, then the others
  kubectl kpr residue clean --node worker-1
  kubectl kpr residue clean

  # what was reviewed and nothing else, from a program
  digest=$(kubectl kpr residue clean --dry-run -o json | jq -r .digest)
  kubectl kpr residue clean --approve "$digest" --note CHG-4711

  # after an interruption: back to how it was
  kubectl kpr residue clean --undo`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if r.undo && (r.dryRun || r.approve != "") {
				return cli.UsageError(cmd, errors.New("--undo takes back the plan of the journal; --dry-run and --approve are about a new one"))
			}
			return r.run(cmd.Context())
		},
	}
	r.add(cmd)
	r.addAccept(cmd)
	cmd.Flags().BoolVar(&r.undo, "undo", false, "take back a clean-up that did not come to its end")
	r.nodes.Add(share, cmd)
	return cmd
}

// residueRestore is the command residue restore.
func residueRestore(share cli.Share) *cobra.Command {
	r := cleaning{share: share}
	cmd := &cobra.Command{
		Use:   "restore FILE...",
		Short: "Put back what residue clean has removed, from its backups",
		Long: `Puts kube-proxy's chains, jumps, nftables tables and IPVS state of a node back as its backup has
them: jumps where they were among the rows of others, which are not touched. Of the file come
back kube-proxy's rules alone, whatever else it holds.

Nobody keeps these rules up to date. It is for taking back a clean-up, not for going back to
kube-proxy, which writes its own rules. A node where kube-proxy runs is refused.

What the node has now is backed up first, and the command can be resumed and undone like residue clean.`,
		Example: `  kubectl kpr residue restore kpr-residue-clean-20261201-120000/worker-1.json

  # all nodes of a clean-up
  kubectl kpr residue restore kpr-residue-clean-20261201-120000/*.json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.UsageError(cmd, errors.New("a backup file is needed"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			r.files = args
			return r.run(cmd.Context())
		},
	}
	r.add(cmd)
	cmd.Flags().BoolVar(&r.undo, "undo", false, "take back a restore that did not come to its end")
	return cmd
}
