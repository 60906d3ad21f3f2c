package config

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
)

// migrationOrder is the rule about steps taken too early.
var migrationOrder = &diag.Rule{
	Name: "migration-order", Severity: diag.Error,
	Title: "kube-proxy went before Cilium was ready to replace it",
	Doc: `The order is: a direct API server address for the agents; the replacement on, with the roll finished on every node; then kube-proxy away. Each step taken early
leaves nodes on which nobody translates Services, often noticed at the next reboot only.

A roll is finished when the DaemonSet's observedGeneration has reached its generation and every pod is updated. A count of ready pods says nothing of it: old pods are
ready too. And the gate for one node is its own agent: it has to say that the replacement is on, now.`,
	Proof: []string{
		"kubectl -n kube-system get daemonset cilium -o jsonpath='{.metadata.generation} {.status}'",
		"kubectl kpr status -o wide",
	},
	Remedy:  `Bring kube-proxy back until the agents are ready, or give them the direct address at once and restart those that hang. Then go on in order.`,
	Sources: []string{"cilium/cilium#35440", "nutanix-cloud-native/cluster-api-runtime-extensions-nutanix#1307", "kubernetes/kops#9447"},
}

// MigrationOrder checks that nobody was left without a translation.
func MigrationOrder() *diag.Check {
	return &diag.Check{
		Name:  migrationOrder.Name,
		Doc:   "kube-proxy gone before agents had a direct API address, were rolled out, or say that KPR is on",
		Scope: diag.OfCluster,
		Rules: []*diag.Rule{migrationOrder},
		Wants: []fact.Named{fact.AgentSets, fact.APIAddresses, fact.KubeProxies, fact.KubeProxy, fact.CiliumConfig, fact.Status, fact.WantedMode, fact.Pods},
		Run:   judgeOrder,
	}
}

func judgeOrder(p *diag.Pass) error {
	if err := p.View().Err(fact.CiliumConfig); err != nil {
		p.Unknown(fact.CiliumConfig.ID(), err)
	}
	severity, wanted := severityOf(p)
	proxies, _ := fact.KubeProxies.From(p.View())
	if wanted && severity == diag.Error && proxies.Seen() == fact.No {
		early(p)
	}
	for _, n := range p.View().Nodes() {
		left(p.On(n.Name), proxies)
	}
	return nil
}

// early judges a cluster without kube-proxy.
func early(p *diag.Pass) {
	sets, _ := fact.AgentSets.From(p.View())
	for i := range sets {
		s, g := sets[i].Status, sets[i].Generation
		if (s.ObservedGeneration < g || s.UpdatedNumberScheduled < s.DesiredNumberScheduled) && !allSayTrue(p) {
			p.Find(migrationOrder, diag.Report{
				Subject: "daemonset/" + sets[i].Namespace + "/" + sets[i].Name, Severity: diag.Error, Proof: []fact.Named{fact.AgentSets},
				Message: fmt.Sprintf("generation %d, observed %d, and %d of %d pods are updated: the roll has not finished, although %d are ready, and no kube-proxy is there any more. Do not remove it before every pod is updated",
					g, s.ObservedGeneration, s.UpdatedNumberScheduled, s.DesiredNumberScheduled, s.NumberReady),
			})
		}
	}
	addresses, _ := fact.APIAddresses.From(p.View())
	for _, a := range addresses {
		if a.Host == "" {
			p.Find(migrationOrder, diag.Report{
				Subject: "cluster", Address: a.Set, Severity: diag.Error, Proof: []fact.Named{fact.APIAddresses, fact.KubeProxies},
				Message: "kube-proxy was removed before the agents of " + a.Set + " had a direct address of the API server: the next restart of a node cuts its agent off",
			})
		}
	}
}

// allSayTrue tells a roll of agents that all replace kube-proxy already, which
// is no step of a migration.
func allSayTrue(p *diag.Pass) bool {
	seen := false
	for _, st := range fact.Status.Each(p.View()) {
		if st.Value == nil {
			continue
		}
		if seen = true; st.Value.Mode != agent.ModeTrue {
			return false
		}
	}
	return seen
}

// left finds a node that lost kube-proxy while its agent replaces nothing.
func left(p *diag.Pass, proxies fact.Proxies) {
	st, _ := fact.Status.From(p.View())
	want, err := fact.WantedMode.From(p.View())
	if st == nil || st.Mode != agent.ModeFalse || err != nil || want.Mode == agent.ModeFalse {
		return
	}
	proxy, _ := fact.KubeProxy.From(p.View())
	gone := proxy.Running == fact.No
	if proxy.Running == fact.NotKnown && len(proxies.Running) > 0 {
		gone = !hasPod(p)
	}
	if !gone {
		return
	}
	p.Find(migrationOrder, diag.Report{
		Subject: "node/" + p.Node(), Severity: diag.Error, Proof: []fact.Named{fact.Status, fact.KubeProxy},
		Message: fmt.Sprintf("no kube-proxy on the node any more, while its agent still says KPR %s (%s asks for %s): nobody translates Services here but ClusterIPs dialled by pods", st.ModeSaid, want.By, want.Said),
	})
}

// hasPod holds where a pod of kube-proxy is on the node, in whatever state.
func hasPod(p *diag.Pass) bool {
	pods, err := fact.Pods.From(p.View())
	if err != nil {
		return true
	}
	for i := range pods {
		if pods[i].Spec.NodeName == p.Node() && fact.IsKubeProxy(&pods[i]) && pods[i].Status.Phase != corev1.PodFailed {
			return true
		}
	}
	return false
}
