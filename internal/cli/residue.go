package cli

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/checks"
)

// residueRules are the rules about kube-proxy: whether it runs and what it left.
var residueRules = []string{
	"kube-proxy-running", "kube-proxy-broken", "kube-proxy-return",
	"kube-chains", "ipvs", "nft-table", "rule-lost-match",
}

func (a *app) residue() *cobra.Command {
	run := lookup{app: a, command: "residue", nodes: true, residue: true}
	cmd := &cobra.Command{
		Use:     "residue",
		GroupID: "look",
		Short:   "Is kube-proxy running, what has it left on each node, and who would bring it back",
		Long: `Answers three questions and does not mix them:

  Is kube-proxy running?    For every node, by pods and their owners, by what answers on its
                            ports 10249 and 10256, and by what listens there.
  What is there of it?      Its chains in iptables (nat, filter and mangle, nft and legacy back
                            end, IPv4 and IPv6), its IPVS mode, its nftables tables. Rules outlive
                            the process: they prove nothing about it. Chains of the kubelet, of
                            Cilium and of others that look alike do not count.
  Who brings it back?       kubeadm, add-on managers, kubespray, a server of k3s or RKE2.

It never writes; residue clean does. nftables tables that were left are seen from the host only, with --host.

The exit code is 2 where kube-proxy runs beside an active KPR, whatever --fail-on says.`,
		Example: `  # all nodes
  kubectl kpr residue

  # a row for each node
  kubectl kpr residue -o wide

  # nodes with something left over
  kubectl kpr residue -o json | jq -r '.nodes[] | select(.residue.state == "left") | .name'

  # after a clean-up: anything that is left fails
  kubectl kpr residue --node w-1 --fail-on warning

  # from a recorded snapshot
  kubectl kpr residue --snapshot kpr-prod-20261201-015522.tar.gz`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return run.run(cmd.Context(), residueChecks())
		},
	}
	run.add(cmd)
	return cmd
}

// residueChecks are the checks that have one of the rules.
func residueChecks() []*diag.Check {
	return slices.DeleteFunc(checks.All(), func(c *diag.Check) bool {
		return !slices.ContainsFunc(c.Rules, func(r *diag.Rule) bool { return slices.Contains(residueRules, r.Name) })
	})
}
