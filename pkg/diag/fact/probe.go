package fact

import (
	"encoding/json"
	"fmt"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// APIProbe is what became of requests to the API server from a node, one for
// each address that its agent dials. It is absent unless it was asked for.
var APIProbe = Read(source.APIProbe, func(a source.Artifact) ([]agent.APIProbe, error) {
	var probes []agent.APIProbe
	if err := json.Unmarshal(a.Data, &probes); err != nil {
		return nil, fmt.Errorf("api probe: %w", err)
	}
	return probes, nil
})
