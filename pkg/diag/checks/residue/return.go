package residue

import (
	"fmt"
	"regexp"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
)

// comeBack is the rule about what would start kube-proxy again.
var comeBack = &diag.Rule{
	Name: "kube-proxy-return", Severity: diag.Warning,
	Title: "something will bring kube-proxy back",
	Doc: `Nothing is wrong today; the next upgrade, restart or sync is the hazard. kubeadm makes its add-on kube-proxy anew as long as the ConfigMap
kube-proxy is there, and kubeadm 1.32.0 does so even with proxy.disabled in its own configuration. Add-on managers apply what they find in
their folders. kubespray leaves kube-proxy out at creation only. k3s and RKE2 follow the server that an agent last spoke to: one server without the flag is enough.

A DaemonSet that wants no pod, for a node selector that no node has, is a good end state and only told.`,
	Proof: []string{
		"kubectl -n kube-system get configmap kube-proxy kubeadm-config -o yaml",
		"kubectl -n kube-system get daemonset kube-proxy -o wide",
		"kubectl get nodes -o jsonpath='{range .items[*]}{.metadata.name}{\" \"}{.metadata.annotations.k3s\\.io/node-args}{\"\\n\"}{end}'",
	},
	Remedy:  `Upgrade kubeadm clusters with --skip-phases=addon/kube-proxy and run "kubectl kpr residue" after it; delete the ConfigMap kube-proxy once the migration is closed; give every server the flag.`,
	Sources: []string{"kubernetes/kubeadm#3137", "kubernetes-sigs/kubespray#10537"},
}

// ComeBack checks what would start kube-proxy again.
func ComeBack() *diag.Check {
	return &diag.Check{
		Name:  comeBack.Name,
		Doc:   "what would bring kube-proxy back: kubeadm, add-on managers, servers without the flag",
		Scope: diag.OfCluster,
		Rules: []*diag.Rule{comeBack},
		Wants: []fact.Named{fact.ConfigMaps, fact.KubeProxies, fact.Status, fact.WantedMode, fact.AgentOf, fact.RancherFlags},
		Run:   judgeComeBack,
	}
}

var (
	proxyDisabled  = regexp.MustCompile(`(?m)^proxy:\s*\n(\s+.*\n)*?\s+disabled:\s*true`)
	clusterVersion = regexp.MustCompile(`(?m)^kubernetesVersion:\s*v?1\.(\d+)\.(\d+)`)
)

func judgeComeBack(p *diag.Pass) error {
	proxies, _ := fact.KubeProxies.From(p.View())
	on := false
	for _, n := range p.View().Nodes() {
		mode, _ := modeOf(p.View().On(n.Name))
		on = on || mode == agent.ModeTrue
	}
	for i := range proxies.Sets {
		ds := &proxies.Sets[i]
		if s := ds.Status; on && s.DesiredNumberScheduled == 0 && s.NumberReady == 0 && s.ObservedGeneration > 0 {
			p.Find(comeBack, diag.Report{
				Subject: "daemonset/" + ds.Namespace + "/" + ds.Name, Severity: diag.Info, Proof: []fact.Named{fact.KubeProxies},
				Message: fmt.Sprintf("it wants no pod on any node (node selector %v): kube-proxy stays away as long as that stays", ds.Spec.Template.Spec.NodeSelector),
			})
		}
	}
	maps, err := fact.ConfigMaps.From(p.View())
	switch {
	case err != nil && !absent(err):
		p.Unknown(fact.ConfigMaps.ID(), err)
	case err != nil:
		p.Note("not looked at: the ConfigMaps kubeadm-config and kube-proxy")
	}
	for i := range maps {
		m := &maps[i]
		subject := "configmap/" + m.Namespace + "/" + m.Name
		switch text := m.Data["ClusterConfiguration"]; {
		case m.Name == "kubeadm-config" && proxyDisabled.MatchString(text) && beforeFix(text):
			p.Find(comeBack, diag.Report{Subject: subject, Severity: diag.Warning, Proof: []fact.Named{fact.ConfigMaps},
				Message: "proxy.disabled is set, and kubeadm 1.32.0 ignores it on upgrade and applies kube-proxy again: use --skip-phases=addon/kube-proxy, then check again"})
		case m.Name == "kube-proxy" && on:
			p.Find(comeBack, diag.Report{Subject: subject, Severity: diag.Info, Proof: []fact.Named{fact.ConfigMaps},
				Message: "it exists: a kubeadm upgrade would bring the DaemonSet back, unless it is run with --skip-phases=addon/kube-proxy"})
		}
	}
	servers(p)
	return nil
}

// beforeFix holds for clusters whose next upgrade may be the faulty one.
func beforeFix(config string) bool {
	m := clusterVersion.FindStringSubmatch(config)
	if m == nil {
		return true
	}
	return len(m[1]) < 2 || m[1] < "32" || m[1] == "32" && m[2] == "0"
}
