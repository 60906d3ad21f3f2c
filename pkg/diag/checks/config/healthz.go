package config

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
)

// healthz is the rule about who answers balancers' questions.
var healthz = &diag.Rule{
	Name: "healthz", Severity: diag.Warning,
	Title: "balancers ask kube-proxy's health port, and nobody, or two, want to answer",
	Doc: `kube-proxy answers /healthz on port 10256. Cloud load balancers probe it for Services with externalTrafficPolicy Cluster, and take a node out when nobody answers. With
kube-proxy gone the agent does it if kube-proxy-replacement-healthz-bind-address says so, which the chart leaves empty.

Set while kube-proxy still runs on a node, both want the port; the agent that comes second fails to bind it and restarts. The wrong process is the other one: emptying the
address only hides that kube-proxy runs.

Services with externalTrafficPolicy Local have a port of their own, healthCheckNodePort. A 503 there is right on a node without an endpoint, and an error where the node has
a ready one or its Envoy takes the traffic: no balancer sends it any. Only recordings hold such answers.`,
	Proof:   []string{"kubectl kpr exec NODE -- ss -lntp", "kubectl -n kube-system get configmap cilium-config -o jsonpath='{.data.kube-proxy-replacement-healthz-bind-address}'", "kubectl kpr exec NODE -- curl -si http://127.0.0.1:HEALTHCHECKNODEPORT/"},
	Remedy:  `Set kubeProxyReplacementHealthzBindAddr to 0.0.0.0:10256 once kube-proxy is gone from every node, and not before.`,
	Sources: []string{"cilium/cilium#27502", "rancher/rke2#3490", "cilium/cilium#33600"},
}

// Healthz checks who answers on kube-proxy's health port.
func Healthz() *diag.Check {
	return &diag.Check{
		Name:  healthz.Name,
		Doc:   "who answers on port 10256, which cloud balancers probe",
		Scope: diag.OfCluster,
		Rules: []*diag.Rule{healthz},
		Wants: []fact.Named{fact.CiliumConfig, fact.Services, fact.Nodes, fact.KubeProxies, fact.KubeProxy, fact.Pods, fact.ProxyHealth, fact.Status, fact.WantedMode},
		Run:   judgeHealthz,
	}
}

func judgeHealthz(p *diag.Pass) error {
	config, err := fact.CiliumConfig.From(p.View())
	if err != nil { // nobody knows who is meant to answer
		p.Unknown(fact.CiliumConfig.ID(), err)
		return nil
	}
	address := config["kube-proxy-replacement-healthz-bind-address"]
	proxies, _ := fact.KubeProxies.From(p.View())
	if strings.HasSuffix(address, ":10256") {
		clash(p, address, proxies)
		return nil
	}
	if proxies.Seen() != fact.Yes {
		nobody(p, address)
	}
	return nil
}

// clash finds nodes where kube-proxy has the port that the agent wants.
func clash(p *diag.Pass, address string, proxies fact.Proxies) {
	pods, _ := fact.Pods.From(p.View())
	for _, node := range proxies.Running {
		q := p.On(node)
		proxy, _ := fact.KubeProxy.From(q.View())
		r := diag.Report{Subject: "node/" + node, Severity: diag.Warning, Proof: []fact.Named{fact.CiliumConfig, fact.KubeProxy}, Next: []string{"kubectl", "kpr", "residue", "--node", node}}
		r.Message = fmt.Sprintf("kube-proxy (%s) and the agent both want %s: whoever starts second fails to bind it", proxy.As, address)
		if n := restarts(pods, node); n > 0 {
			r.Severity = diag.Error
			r.Message = fmt.Sprintf("kube-proxy (%s) and the agent both want %s; the agent has restarted %d times. kube-proxy is the wrong one here", proxy.As, address, n)
		}
		q.Find(healthz, r)
	}
}

func restarts(pods []corev1.Pod, node string) int32 {
	var n int32
	for i := range pods {
		if pods[i].Spec.NodeName != node || pods[i].Labels["k8s-app"] != "cilium" {
			continue
		}
		for _, c := range pods[i].Status.ContainerStatuses {
			n = max(n, c.RestartCount)
		}
	}
	return n
}

// nobody warns where cloud balancers ask and no one answers.
func nobody(p *diag.Pass, address string) {
	services, _ := fact.Services.From(p.View())
	var probed []string
	for i := range services {
		s := &services[i]
		if s.Spec.Type == corev1.ServiceTypeLoadBalancer && s.Spec.LoadBalancerClass == nil && s.Spec.ExternalTrafficPolicy != corev1.ServiceExternalTrafficPolicyLocal && len(s.Status.LoadBalancer.Ingress) > 0 {
			probed = append(probed, s.Namespace+"/"+s.Name)
		}
	}
	nodes, _ := fact.Nodes.From(p.View())
	provider := ""
	for i := range nodes {
		if scheme, _, ok := strings.Cut(nodes[i].Spec.ProviderID, ":"); ok && scheme != "kind" && scheme != "k3s" {
			provider = scheme
		}
	}
	if len(probed) == 0 || provider == "" || !replaced(p) || answered(p) {
		return
	}
	set := ""
	if address != "" {
		set = " (it is " + address + ")"
	}
	p.Find(healthz, diag.Report{Subject: "cluster", Severity: diag.Warning, Proof: []fact.Named{fact.Services, fact.Nodes, fact.CiliumConfig},
		Message: fmt.Sprintf("%d LoadBalancer Services with externalTrafficPolicy Cluster (%s), nodes of the provider %s, and nothing answers on :10256: balancers that probe kube-proxy's health take every node for down; set kubeProxyReplacementHealthzBindAddr%s",
			len(probed), probed[0], provider, set)})
}

func replaced(p *diag.Pass) bool {
	for _, n := range p.View().Nodes() {
		v := p.View().On(n.Name)
		if st, _ := fact.Status.From(v); st != nil && st.Mode != "" {
			if st.Mode == agent.ModeTrue {
				return true
			}
			continue
		}
		if want, err := fact.WantedMode.From(v); err == nil && want.Mode == agent.ModeTrue {
			return true
		}
	}
	return false
}

func answered(p *diag.Pass) bool {
	for _, n := range p.View().Nodes() {
		if h, err := fact.ProxyHealth.From(p.View().On(n.Name)); err == nil && h.Open {
			return true
		}
	}
	return false
}
