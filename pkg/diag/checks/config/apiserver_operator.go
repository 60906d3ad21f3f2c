package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// operators are those that were seen. That there is no list of pods is a note
// only: the agents' address is judged without.
func operators(p *diag.Pass) []fact.OperatorAddress {
	all, err := fact.OperatorAddresses.From(p.View())
	if err != nil && !errors.Is(err, source.ErrAbsent) {
		p.Note("not looked at: where the operator dials the API server: %s", diag.Reason(err, ""))
	}
	return all
}

// byOperator judges where the operator dials, unless the agents dial there too
// and that was told.
func byOperator(p *diag.Pass, o fact.OperatorAddress, agents []fact.APIAddress, trap map[string]bool) {
	_, wanted := stance(p)
	// Services go on without an operator for a while; it comes back with an agent.
	r := diag.Report{Subject: o.Subject, Address: o.Host, Severity: diag.Warning, Proof: []fact.Named{fact.OperatorAddresses}, Next: []string{"kubectl", "kpr", "config", "--probe-api"}}
	host, _, why := dialFailure(o.Ended)
	switch {
	case !o.Ready && host != "" && !trap[host] && !trap[o.Host]:
		r.Severity = diag.Error
		r.Message = fmt.Sprintf("the operator%s ended because %s does not answer: %s", on(o), host, why)
	case trap[o.Host]:
		return
	case o.Host == "" && wanted && len(agents) > 0:
		r.Message = fmt.Sprintf("KUBERNETES_SERVICE_HOST is not set on the operator, while the agents dial %s: it dials the ClusterIP of default/kubernetes, which without kube-proxy only an agent that runs beside it translates", agents[0])
	case depends(o.APIAddress, wanted, "it does") != "":
		r.Message = "the operator dials " + depends(o.APIAddress, wanted, "it does")
	case loose(o.APIAddress):
		r.Message = fmt.Sprintf("the operator dials %s (%s): no distribution is known to keep a proxy there, so something of your own has to run on every node", o, o.By)
	default:
		return
	}
	p.Find(apiServerAddr, r)
}

func on(o fact.OperatorAddress) string {
	if len(o.Nodes) == 0 {
		return ""
	}
	return " on " + strings.Join(o.Nodes, ", ")
}
