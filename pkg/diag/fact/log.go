package fact

import (
	"github.com/kubectl-kpr/kubectl-kpr/internal/cilium"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// What nodes tell beside the answers of commands.
var (
	// AgentLog are the warnings and errors in the newest part of the agent's log.
	AgentLog = Read(source.AgentLog, func(a source.Artifact) ([]agent.LogLine, error) { return cilium.DecodeAgentLog(a.Data) })
	// ConfigLog are those of the init container config, which is the first to
	// need the API server. Of an agent that runs it is not read.
	ConfigLog = Read(source.InitLog, func(a source.Artifact) ([]agent.LogLine, error) { return cilium.DecodeAgentLog(a.Data) })
	// Cgroup is what the kernel has on the root of a node's control groups.
	Cgroup = Read(source.Cgroup, func(a source.Artifact) (agent.Cgroup, error) { return cilium.DecodeCgroup(a.Data) })
	// BGPRoutes are the routes of the node's BGP speaker; recordings alone have them.
	BGPRoutes = Read(source.BGPRoutes, func(a source.Artifact) ([]agent.BGPRoute, error) { return cilium.DecodeBGPRoutes(a.Data) })
)
