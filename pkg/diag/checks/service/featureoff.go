package service

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
)

// featureOff is the rule about what Services ask for and nobody gives.
var featureOff = &diag.Rule{
	Name: "kpr-feature-disabled", Severity: diag.Error,
	Title: "a Service uses what is switched off on the node, and nobody else serves it",
	Doc: `The replacement has parts: NodePort, LoadBalancer, externalIPs, hostPort, session affinity. Up to 1.18 each can be off while the rest is on, and with the
replacement off all but ClusterIPs dialled by pods are kube-proxy's. Where kube-proxy is not seen to run, a Service that uses such a part has frontends that
nobody translates.

Session affinity is special: pods' requests to ClusterIPs are balanced by Cilium in every mode, so that affinity has to be on in Cilium whoever does the rest.`,
	Proof: []string{
		"kubectl kpr exec NODE -- cilium-dbg status --verbose",
		"kubectl get services -A -o custom-columns=NS:.metadata.namespace,NAME:.metadata.name,EXTERNAL:.spec.externalIPs,AFFINITY:.spec.sessionAffinity",
	},
	Remedy:  `Switch the part on (enable-external-ips, enable-host-port, enable-node-port, enable-session-affinity; all of them with kubeProxyReplacement=true) and restart the agents, or run kube-proxy.`,
	Sources: []string{"cilium/cilium#27151", "cilium/cilium#35254"},
}

// FeatureOff checks parts that are off against the Services that use them.
func FeatureOff() *diag.Check {
	return &diag.Check{
		Name:  featureOff.Name,
		Doc:   "parts of the replacement that are off and that Services use",
		Scope: diag.OfNode,
		Rules: []*diag.Rule{featureOff},
		Needs: []fact.Named{fact.Status, fact.Services},
		Wants: []fact.Named{fact.KubeProxies, fact.KubeProxy, fact.AgentOf},
		Applies: func(v *fact.View) string {
			if a, err := fact.AgentOf.From(v); err == nil && a.Life == fact.Unwanted {
				return a.Reason
			}
			return ""
		},
		Run: judgeFeatures,
	}
}

func judgeFeatures(p *diag.Pass) error {
	st, _ := fact.Status.From(p.View())
	services, _ := fact.Services.From(p.View())
	proxies, _ := fact.KubeProxies.From(p.View())
	proxy, _ := fact.KubeProxy.From(p.View())
	served := proxy.Running == fact.Yes || proxy.Running == fact.NotKnown && proxies.Seen() == fact.Yes
	for i := range services {
		s := &services[i]
		find := func(what, message string) {
			p.Find(featureOff, diag.Report{Subject: "service/" + s.Namespace + "/" + s.Name, Address: what, Severity: diag.Error, Message: message, Proof: []fact.Named{fact.Status, fact.Services}})
		}
		if s.Spec.SessionAffinity == corev1.ServiceAffinityClientIP && st.Affinity == agent.Off && s.Spec.ClusterIP != corev1.ClusterIPNone {
			find("affinity", fmt.Sprintf("it wants sessionAffinity ClientIP, and Session Affinity is off in the agent (KPR %s): pods' requests are balanced by Cilium in every mode, so a client's connections go to any backend", st.ModeSaid))
		}
		if served {
			continue
		}
		for _, part := range partsOf(s) {
			if part.off(st) {
				find(part.name, fmt.Sprintf("it uses %s, which is off in the agent (KPR %s), and no kube-proxy is known to serve it: %s answers nobody", part.name, st.ModeSaid, part.what))
			}
		}
	}
	return nil
}

// usedPart is a part of the replacement that a Service uses.
type usedPart struct {
	name, what string
	state      func(*agent.Status) agent.Switch
}

// off leaves NodePorts and LoadBalancers of a replacement that is off as a whole
// to kpr-mode, which tells them once and not for each Service.
func (u usedPart) off(st *agent.Status) bool {
	return u.state(st) == agent.Off && (u.name == "externalIPs" || st.Mode != agent.ModeFalse)
}

func partsOf(s *corev1.Service) []usedPart {
	var out []usedPart
	if len(s.Spec.ExternalIPs) > 0 {
		out = append(out, usedPart{"externalIPs", few(slices.Clone(s.Spec.ExternalIPs)), func(st *agent.Status) agent.Switch { return st.ExternalIPs }})
	}
	if s.Spec.Type == corev1.ServiceTypeNodePort || s.Spec.Type == corev1.ServiceTypeLoadBalancer {
		for _, port := range s.Spec.Ports {
			if port.NodePort > 0 {
				out = append(out, usedPart{"NodePort", fmt.Sprintf("port %d of the node", port.NodePort), func(st *agent.Status) agent.Switch { return st.NodePort }})
				break
			}
		}
	}
	return out
}
