package trace

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
)

// Narrow is the namespace that a trace of the target may be restricted to, ""
// if it may not: only of a Service is known beforehand where it is.
func (t Target) Narrow() string {
	if t.Kind == ServiceTarget {
		return t.Namespace
	}
	return ""
}

// Shared reports whether a Service or host port of another namespace wants an
// address that a Service of the target's namespace wants too. Who of them the
// maps hold can be told only by looking at both.
func Shared(v *fact.View, t Target) bool {
	services, err := fact.Services.From(v)
	if err != nil {
		return true
	}
	here, there, ports := map[string]bool{}, map[string]bool{}, map[int32]bool{}
	for i := range services {
		into := there
		if services[i].Namespace == t.Namespace {
			into = here
		}
		for _, ip := range addressesOf(&services[i]) {
			into[ip] = true
		}
		for _, p := range services[i].Spec.Ports {
			if services[i].Namespace == t.Namespace {
				ports[p.Port], ports[p.NodePort] = true, true
			}
		}
	}
	pods, _ := fact.Pods.From(v)
	for i := range pods {
		for _, c := range pods[i].Spec.Containers {
			for _, p := range c.Ports {
				if p.HostPort != 0 && ports[p.HostPort] && pods[i].Namespace != t.Namespace {
					return true
				}
			}
		}
	}
	for ip := range here {
		if there[ip] {
			return true
		}
	}
	return false
}

// addressesOf are the addresses that a Service may share with another.
func addressesOf(s *corev1.Service) []string {
	all := slices.Clone(s.Spec.ExternalIPs)
	for _, in := range s.Status.LoadBalancer.Ingress {
		all = append(all, in.IP)
	}
	return slices.DeleteFunc(append(all, s.Spec.LoadBalancerIP), func(ip string) bool { return ip == "" })
}
