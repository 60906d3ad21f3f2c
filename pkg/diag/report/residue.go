package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/internal/netfilter"
	"github.com/kubectl-kpr/kubectl-kpr/internal/words"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
)

// ResidueFacts are what the nodes of a residue report are made of.
func ResidueFacts() []fact.Named {
	return []fact.Named{fact.Status, fact.AgentOf, fact.KubeProxy, fact.APIServer, fact.Chains, fact.IPVS, fact.NFTables}
}

// Residue is what kube-proxy has in a node's kernel. Whether it runs is
// another question, which Node.KubeProxy answers.
type Residue struct {
	// State: "none", "kept" by a kube-proxy that runs, "left" over, "unclear"
	// where nothing tells which of both, "not known".
	State    string   `json:"state"`
	Chains   []Chains `json:"chains"`             // of iptables; empty for none
	Unread   []string `json:"unread,omitempty"`   // back ends of iptables that were not read
	IPVS     []string `json:"ipvs,omitempty"`     // what its IPVS mode has, in words
	Tables   []string `json:"nftables,omitempty"` // "ip kube-proxy"
	Unlooked []string `json:"unlooked,omitempty"` // what was not looked at, in words
}

// Chains counts kube-proxy's chains in one table.
type Chains struct {
	Family  string `json:"family"`            // IPv4, IPv6
	Backend string `json:"backend,omitempty"` // nft, legacy; "" where nothing tells it
	Table   string `json:"table"`
	Count   int    `json:"count"`
}

// The states of residue.
const (
	ResidueNone    = "none"
	ResidueKept    = "kept"
	ResidueLeft    = "left"
	ResidueUnclear = "unclear"
	residueUnknown = "not known"
)

// residueRules are the rules about what kube-proxy has in the kernel.
var residueRules = []string{"kube-chains", "ipvs", "nft-table"}

// proxyRule is the rule about a kube-proxy that runs beside KPR.
const proxyRule = "kube-proxy-running"

// residue fills in what kube-proxy has on each node. Whose it is now is judged
// by the checks, and taken from their findings.
func residue(d *Document, v *fact.View) {
	for i := range d.Nodes {
		n := &d.Nodes[i]
		r := residueOf(v.On(n.Name))
		left := slices.ContainsFunc(d.Findings, func(f Finding) bool {
			return f.Node == n.Name && slices.Contains(residueRules, f.Rule) && f.Severity != diag.Info.String()
		})
		told := slices.ContainsFunc(d.Findings, func(f Finding) bool { return f.Node == n.Name && slices.Contains(residueRules, f.Rule) })
		some := told || len(r.Chains)+len(r.IPVS)+len(r.Tables) > 0
		switch {
		case some && n.KubeProxy.Running == fact.Yes.String():
			r.State = ResidueKept
		case some && left:
			r.State = ResidueLeft
		case some:
			r.State = ResidueUnclear
		case len(r.Unread) > 0:
			r.State = residueUnknown
		default:
			r.State = ResidueNone
		}
		n.Residue = r
	}
}

func residueOf(v *fact.View) *Residue {
	r := &Residue{Chains: []Chains{}}
	chains, err := fact.Chains.From(v)
	if err != nil {
		r.Unread = append(r.Unread, "iptables of both back ends")
	}
	for _, t := range chains.Tables {
		r.Chains = append(r.Chains, Chains{t.Family.String(), string(t.Backend), t.Table, t.N})
	}
	for _, u := range chains.Unread {
		r.Unread = append(r.Unread, u.What)
	}
	ipvs, err := fact.IPVS.From(v)
	if ipvs.Device {
		r.IPVS = append(r.IPVS, netfilter.IPVSDevice)
	}
	if ipvs.Servers > 0 {
		r.IPVS = append(r.IPVS, words.Count(ipvs.Servers, "virtual server"))
	}
	if len(ipvs.Sets) > 0 {
		r.IPVS = append(r.IPVS, words.Count(len(ipvs.Sets), "IP set"))
	}
	if ipvs.Chains {
		r.IPVS = append(r.IPVS, "its chains")
	}
	if err != nil || ipvs.Unlooked != "" {
		r.Unlooked = append(r.Unlooked, "ipvs")
	}
	tables, err := fact.NFTables.From(v)
	for _, t := range tables.Tables {
		r.Tables = append(r.Tables, t.Name())
	}
	if err != nil {
		r.Unlooked = append(r.Unlooked, "nftables")
	}
	return r
}

// besideKPR counts the nodes on which kube-proxy runs beside an active KPR.
func besideKPR(nodes []Node) int {
	n := 0
	for _, node := range nodes {
		if node.KubeProxy.Running == fact.Yes.String() && node.KPR != nil && node.KPR.Mode == "True" {
			n++
		}
	}
	return n
}

// runsBeside holds where a node or a finding says that kube-proxy runs beside
// KPR: a DaemonSet may tell it where no port was asked.
func runsBeside(d *Document) bool {
	return besideKPR(d.Nodes) > 0 || slices.ContainsFunc(d.Findings, func(f Finding) bool {
		return f.Rule == proxyRule && f.Severity != diag.Info.String()
	})
}

// stateOfResidue answers both questions, one after the other.
func stateOfResidue(d *Document) []string {
	running := stateOfProxy(d.Nodes)
	if n := besideKPR(d.Nodes); n > 0 {
		running = fmt.Sprintf("kube-proxy runs beside KPR on %s", ofNodes(n, len(d.Nodes)))
	} else if runsBeside(d) {
		running = "kube-proxy runs beside KPR"
	}
	by := map[string]int{}
	for _, n := range d.Nodes {
		if n.Residue != nil {
			by[n.Residue.State]++
		}
	}
	var parts []string
	for _, part := range []struct{ state, words string }{
		{ResidueLeft, "rules of it are left over on %s"},
		{ResidueKept, "its rules are kept on %s"},
		{ResidueUnclear, "whether its rules are kept or left over is not clear on %s"},
		{residueUnknown, "what it left is not known on %s"},
	} {
		if n := by[part.state]; n > 0 {
			parts = append(parts, fmt.Sprintf(part.words, ofNodes(n, len(d.Nodes))))
		}
	}
	if len(parts) == 0 && len(d.Nodes) > 0 {
		parts = append(parts, "nothing of it is left where it was looked")
	}
	return []string{running, strings.Join(parts, ", ")}
}

func ofNodes(n, total int) string {
	if n == total {
		return all(n)
	}
	return fmt.Sprintf("%d of %d nodes", n, total)
}

// residueProperties of a node. The first two answer whether kube-proxy runs,
// the others what there is of it.
var residueProperties = []property{
	{"KPR mode", mode},
	{"kube-proxy runs", func(n Node) string {
		if n.KubeProxy.Running == fact.Yes.String() {
			return strings.TrimSpace("yes, as " + kindOf(n.KubeProxy.As) + " " + n.KubeProxy.Mode)
		}
		if n.KubeProxy.Running == fact.No.String() {
			return "no"
		}
		return NotKnown
	}},
	{"Its rules", func(n Node) string {
		switch n.Residue.State {
		case ResidueNone:
			return "none where it was looked"
		case ResidueKept:
			return "kept by it"
		case ResidueLeft:
			return "left over"
		case ResidueUnclear:
			return "kept or left over, nothing tells which"
		}
		return NotKnown
	}},
	{"iptables chains", func(n Node) string {
		switch {
		case len(n.Residue.Chains) > 0:
			return ChainWords(n.Residue.Chains)
		case len(n.Residue.Unread) > 0:
			return NotKnown
		}
		return "none"
	}},
	{"IPVS", func(n Node) string { return n.Residue.words(n.Residue.IPVS, "ipvs", "not looked at") }},
	{"nftables", func(n Node) string {
		if n.KubeProxy.Mode == "nftables" && len(n.Residue.Tables) == 0 {
			return "in use by it"
		}
		return n.Residue.words(n.Residue.Tables, "nftables", "not looked at, --host looks")
	}},
}

func (r *Residue) words(have []string, what, unlooked string) string {
	switch {
	case len(have) > 0:
		return strings.Join(have, ", ")
	case slices.Contains(r.Unlooked, what):
		return unlooked
	}
	return "none"
}

// ChainWords is "nat 40, filter 6 (IPv4, nft)".
func ChainWords(cs []Chains) string {
	var parts []string
	for i := 0; i < len(cs); {
		var tables []string
		at := cs[i]
		for ; i < len(cs) && cs[i].Family == at.Family && cs[i].Backend == at.Backend; i++ {
			tables = append(tables, fmt.Sprintf("%s %d", cs[i].Table, cs[i].Count))
		}
		parts = append(parts, fmt.Sprintf("%s (%s)", strings.Join(tables, ", "), strings.TrimSuffix(at.Family+", "+at.Backend, ", ")))
	}
	return strings.Join(parts, "; ")
}

// kindOf drops the name of a pod, which is another on each node.
func kindOf(as string) string {
	switch {
	case strings.HasPrefix(as, "static pod "):
		return "static pod"
	case strings.HasPrefix(as, "pod "):
		return "pod"
	}
	return as
}
