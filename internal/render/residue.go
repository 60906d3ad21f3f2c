package render

import (
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/report"
)

// residue has a row for each node: whether kube-proxy runs there, then what
// there is of it.
func (p page) residue() {
	var rows [][]string
	for _, n := range p.d.Nodes {
		if n.Residue == nil {
			continue
		}
		runs := n.KubeProxy.Running
		if n.KubeProxy.As != "" {
			runs += ": " + n.KubeProxy.As
		}
		chains := report.ChainWords(n.Residue.Chains)
		if chains == "" {
			chains = "none"
		}
		if len(n.Residue.Unread) > 0 {
			chains += ", not read: " + strings.Join(n.Residue.Unread, ", ")
		}
		rows = append(rows, []string{
			Clean(n.Name), Clean(runs), n.Residue.State, Clean(chains),
			Clean(list(n.Residue.IPVS)), Clean(list(n.Residue.Tables)), Clean(list(n.Residue.Unlooked)),
		})
	}
	_, _ = p.WriteString("\n")
	p.table([]string{"NODE", "KUBE-PROXY RUNS", "ITS RULES", "IPTABLES CHAINS", "IPVS", "NFTABLES", "NOT LOOKED AT"}, rows)
}

func list(items []string) string {
	if len(items) == 0 {
		return "-"
	}
	return strings.Join(items, ", ")
}
