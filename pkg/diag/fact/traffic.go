package fact

import (
	"github.com/kubectl-kpr/kubectl-kpr/internal/cilium"
	"github.com/kubectl-kpr/kubectl-kpr/internal/netfilter"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// Facts about packets and connections. No running cluster is asked for them unless
// an option allows it.
var (
	// Conntrack is `bpf ct list global`.
	Conntrack = Read(source.Conntrack, func(a source.Artifact) ([]lb.Connection, error) { return cilium.DecodeConntrack(a.Data) })
	// HostFlows are the UDP flows that a host's netfilter tracks, read with --host.
	HostFlows = Read(source.HostConntrack, func(a source.Artifact) ([]netfilter.Flow, error) { return netfilter.DecodeFlows(a.Data) })
	// Drops is what `monitor --type drop` saw.
	Drops = Read(source.Drops, func(a source.Artifact) ([]agent.Drop, error) { return cilium.DecodeDrops(a.Data) })
)
