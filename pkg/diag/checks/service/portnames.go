package service

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// portNames is the rule about ports of Services that no slice has.
var portNames = &diag.Rule{
	Name: "port-name-mismatch", Severity: diag.Error, Settles: true,
	Title: "the names of a Service's port and of its slices' ports do not join",
	Doc: `A Service port gets its endpoints from the slices that have a port of the same name and protocol. The slices
of this Service have endpoints, and none of them has that port, so its frontends have no backend.

It comes about with slices or Endpoints that are written by hand, where the names have to be the Service's own;
and with a named targetPort that the pods do not have: the controller then leaves the port out of the slices.

Agents from 1.18 on also join a port with a name and one without. Kubernetes does not, and neither do older
agents; where every agent joins them it is told as a warning.`,
	Proof: []string{
		"kubectl get service -n NAMESPACE NAME -o jsonpath='{.spec.ports}'",
		"kubectl get endpointslices -n NAMESPACE -l kubernetes.io/service-name=NAME -o jsonpath='{.items[*].ports}'",
	},
	Remedy: `Give both the same name: the Service's port in hand-written slices or Endpoints, the container's port where the
targetPort is a name.`,
}

// PortNames checks that the ports of Services and of their slices join.
func PortNames() *diag.Check {
	return ofAPI(portNames, "the ports of every Service are ports of its slices", judgePortNames)
}

func judgePortNames(p *diag.Pass) error {
	all, err := lacks(p.View(), lb.PortNames)
	if err != nil {
		return err
	}
	for _, l := range all {
		why := strings.Join(l.reasons(), "; ") + l.unknownTarget(p.View())
		if l.joined(p.View()) {
			p.Find(portNames, l.report(diag.Warning, fmt.Sprintf("%s: %s is served only because this version of Cilium joins them all the same", why, l.frontends())))
			continue
		}
		p.Find(portNames, l.report(diag.Error, fmt.Sprintf("%s: %s", why, l.consequence())))
	}
	return nil
}

// unknownTarget tells of a targetPort that is a name: the pods lack it.
func (l lack) unknownTarget(v *fact.View) string {
	service := l.object(v)
	for _, r := range l.rows {
		i := slices.IndexFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == r.PortName })
		if i >= 0 && service.Spec.Ports[i].TargetPort.Type == intstr.String && len(service.Spec.Selector) > 0 {
			return fmt.Sprintf(" (targetPort %q is the name of no port of the pods)", service.Spec.Ports[i].TargetPort.StrVal)
		}
	}
	return ""
}

// joined holds where every agent that was asked has backends for all of the
// frontends.
func (l lack) joined(v *fact.View) bool {
	asked := false
	for _, t := range fact.Held.Each(v) {
		if t.Err != nil {
			continue
		}
		for _, r := range l.rows {
			have, ok := find(t.Value, r.Address)
			if !ok || len(have.Entries) == 0 {
				return false
			}
			asked = true
		}
	}
	return asked
}
