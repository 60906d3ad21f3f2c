// Package checks lists every check there is.
package checks

import (
	"cmp"
	"slices"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/checks/config"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/checks/datapath"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/checks/node"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/checks/residue"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/checks/service"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lint"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/request"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/stage"
)

// All lists the checks, sorted by name.
func All() []*diag.Check {
	all := []*diag.Check{
		config.APIServerAddr(),
		config.Drift(),
		config.HealthCheckPorts(),
		config.Healthz(),
		config.MigrationOrder(),
		config.MigrationStop(),
		config.RancherDrift(),
		config.ReleaseOwner(),
		datapath.CIDROverlap(),
		datapath.Devices(),
		datapath.HostRouting(),
		datapath.KPRMode(),
		datapath.LBMode(),
		datapath.Masq(),
		datapath.SocketLB(),
		datapath.SocketLBVolumes(),
		datapath.XDP(),
		node.NotReady(),
		node.AgentDown(),
		residue.IPVS(),
		residue.Broken(),
		residue.ComeBack(),
		residue.DisableList(),
		residue.KubeChains(),
		residue.Running(),
		residue.NFTTable(),
		residue.RuleLostMatch(),
		service.Divergence(),
		service.Excluded(),
		service.ExpectedBehaviour(),
		service.FamilyMismatch(),
		service.FeatureOff(),
		service.FrontendMissing(),
		service.Global(),
		service.Missing(),
		service.NoBackends(),
		service.NoLocal(),
		service.PortNames(),
		service.Pressure(),
		service.Regression(),
		service.Stale(),
		service.State(),
		service.Topology(),
		service.Unwritten(),
		service.WildcardNodeIP(),
		service.SourceRange(),
		service.Protocol(),
		service.LRP(),
		service.L7Redirect(),
		service.Conflict(),
		service.CTStale(),
		service.HostFlows(),
		service.Drops(),
		service.Affinity(),
	}
	slices.SortFunc(all, func(a, b *diag.Check) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// Rules lists the rules of all checks, the one they share, those about files,
// of the stages of a migration and of probes, sorted by name.
func Rules() []*diag.Rule {
	rules := []*diag.Rule{diag.Incomplete}
	for _, c := range All() {
		rules = append(rules, c.Rules...)
	}
	rules = append(rules, lint.Rules()...)
	rules = append(rules, stage.Rules()...)
	rules = append(rules, request.Rules()...)
	slices.SortStableFunc(rules, func(a, b *diag.Rule) int { return cmp.Compare(a.Name, b.Name) })
	return slices.CompactFunc(rules, func(a, b *diag.Rule) bool { return a.Name == b.Name })
}
