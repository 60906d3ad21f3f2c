package cli

import (
	"github.com/spf13/cobra"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/checks/datapath"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/checks/node"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/checks/service"
)

func (a *app) status() *cobra.Command {
	run := lookup{app: a, command: "status", nodes: true, sums: true}
	cmd := &cobra.Command{
		Use:     "status",
		GroupID: "look",
		Short:   "Is KPR active and healthy, on every node, and does kube-proxy still run",
		Long: `For every node: the mode of the kube-proxy replacement as the agent runs it, socket
LB and its coverage, devices and direct routing, LB mode and algorithm, masquerade,
host routing, the API server address, whether kube-proxy runs, the agent's health, and
whether API, agent and BPF maps agree about every frontend and backend.

What most nodes say is shown once, and below it the nodes that say otherwise.`,
		Example: `  # all nodes
  kubectl kpr status

  # two pools of nodes, each by name and by label
  kubectl kpr status --node 'edge-*' -l node.kubernetes.io/pool=edge

  # a row for each node
  kubectl kpr status -o wide

  # nodes whose agent does not say True
  kubectl kpr status -o json | jq -r '.nodes[] | select(.kpr.mode != "True") | .name'

  # from a recorded snapshot
  kubectl kpr status --snapshot kpr-prod-20261201-015522.tar.gz`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return run.run(cmd.Context(), append([]*diag.Check{node.AgentDown(), datapath.KPRMode()}, service.Sync()...))
		},
	}
	run.add(cmd)
	return cmd
}
