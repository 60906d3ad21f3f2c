package fact

import (
	"slices"

	"github.com/kubectl-kpr/kubectl-kpr/internal/cilium"
)

// OperatorAddresses are the addresses at which the pods of Cilium's operator
// dial the API server: one entry for pods of one Deployment that agree.
var OperatorAddresses = Define("operator-api-addresses", false, []Named{Pods, CiliumConfig, Services, VirtualIPs}, operatorAddresses)

// OperatorAddress is where the operator finds the API server.
type OperatorAddress struct {
	APIAddress // Set is the Deployment, or the pod where none is known
	Subject    string
	Nodes      []string // where these pods are, sorted
	Ready      bool     // one of them is
	Ended      string   // the last line of one that ended, "" for none
}

// operatorAddresses goes by the pods, as what they run with is what counts.
// Where there are none the answer is empty: the operator may be scaled to
// nothing, or run elsewhere.
func operatorAddresses(v *View) ([]OperatorAddress, error) {
	pods, err := Pods.From(v)
	if err != nil {
		return nil, err
	}
	config, _ := CiliumConfig.From(v)
	services, _ := Services.From(v)
	vips, _ := VirtualIPs.From(v)
	var out []OperatorAddress
	for _, o := range cilium.Operators(pods) {
		a := OperatorAddress{Subject: "pod/" + o.Namespace + "/" + o.Pod, Ready: o.Ready, Ended: o.Ended}
		a.Set = o.Namespace + "/" + o.Pod
		if o.Deployment != "" {
			a.Set = o.Namespace + "/" + o.Deployment
			a.Subject = "deployment/" + a.Set
		}
		if a.Host, a.Port = o.Host, o.Port; a.Host != "" {
			a.By = "environment of the operator"
		}
		a.settle(config, services, vips)
		i := slices.IndexFunc(out, func(have OperatorAddress) bool {
			return have.Subject == a.Subject && have.Host == a.Host && have.Port == a.Port
		})
		if i < 0 {
			out = append(out, a)
			i = len(out) - 1
		}
		out[i].Ready = out[i].Ready || a.Ready
		if out[i].Ended == "" {
			out[i].Ended = a.Ended
		}
		if o.Node != "" && !slices.Contains(out[i].Nodes, o.Node) {
			out[i].Nodes = append(out[i].Nodes, o.Node)
			slices.Sort(out[i].Nodes)
		}
	}
	return out, nil
}
