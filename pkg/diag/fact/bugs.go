package fact

import (
	"fmt"

	"github.com/kubectl-kpr/kubectl-kpr/internal/cilium"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// Facts about the version of a node's agent.
var (
	// AgentVersion is the version that the agent tells of itself, else that of
	// its image: "1.20.2".
	AgentVersion = Define("agent-version", true, []Named{Status, Agents}, func(v *View) (string, error) {
		st, statusErr := Status.From(v)
		if st != nil && st.Version != "" {
			return st.Version, nil
		}
		agents, _ := Agents.From(v)
		if version := cilium.VersionOfImage(agents[v.Node()].Image); version != "" {
			return version, nil
		}
		if statusErr != nil {
			return "", statusErr
		}
		return "", fmt.Errorf("version of the agent on %s: neither its status nor its image tells: %w", v.Node(), source.ErrAbsent)
	})
	// Bugs are the known faults that this version of Cilium has.
	Bugs = Define("known-bugs", true, []Named{AgentVersion}, func(v *View) ([]agent.Bug, error) {
		version, err := AgentVersion.From(v)
		if err != nil {
			return nil, err
		}
		bugs, ok := cilium.BugsOf(version)
		if !ok {
			return nil, fmt.Errorf("version of the agent on %s: %q cannot be read", v.Node(), version)
		}
		return bugs, nil
	})
)
