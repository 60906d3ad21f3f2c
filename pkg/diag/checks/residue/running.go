package residue

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/internal/distro"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
)

// running is the rule about kube-proxy beside KPR.
var running = &diag.Rule{
	Name: "kube-proxy-running", Severity: diag.Error,
	Title: "kube-proxy runs beside an active replacement",
	Doc: `Two programs then translate Services. While both are in step nobody notices; connections from the host's network, answers and
masquerade take one way or the other, and whoever debugs the node reads rules that most packets never meet.

As a DaemonSet it is a warning: it can be seen and removed, and a migration passes through this state. As a static pod, or inside the process
of k3s, microk8s or a unit of systemd, it is an error: kubectl shows little or nothing of it, and it comes back with the node's next start.
It is proven for each node by pods and their owners, by who answers on the ports 10249 and 10256 of the host's network, and where nobody
looked at those by rules that follow the current endpoints. With the replacement off or partial, kube-proxy is meant to run and nothing is said.`,
	Proof: []string{
		"kubectl get pods -n kube-system -o wide -l k8s-app=kube-proxy",
		"kubectl kpr exec NODE -- bash -c 'exec 3<>/dev/tcp/127.0.0.1/10249 && printf \"GET /proxyMode HTTP/1.0\\r\\n\\r\\n\" >&3 && cat <&3'",
		"kubectl kpr residue -o wide",
	},
	Remedy: `Switch it off where it is started: delete the DaemonSet and its ConfigMap (kubeadm), disable-kube-proxy: true on every server and a restart of
servers and agents (k3s, RKE2), the cluster specification (kOps, Talos, k0s). Then clean up its rules or reboot the node. Do not flush rules while it runs: it writes them again.`,
	Sources: []string{"cilium/cilium#34524", "k3s-io/k3s#1641", "rancher/rke2#2728", "rancher/rancher#55326"},
}

// Running checks that no kube-proxy runs where Cilium replaces it.
func Running() *diag.Check {
	return &diag.Check{
		Name:  running.Name,
		Doc:   "whether kube-proxy runs on nodes where Cilium replaces it, and as what",
		Scope: diag.OfCluster,
		Rules: []*diag.Rule{running},
		Wants: []fact.Named{fact.KubeProxies, fact.KubeProxy, fact.Status, fact.WantedMode, fact.Distro, fact.Chains, fact.AgentOf},
		Run:   judgeRunning,
	}
}

func judgeRunning(p *diag.Pass) error {
	v := p.View()
	proxies, _ := fact.KubeProxies.From(v)
	sets := bySets(p, proxies)
	for _, node := range proxies.Nodes {
		q := p.On(node)
		mode, said := modeOf(q.View())
		if mode != agent.ModeTrue {
			continue
		}
		proxy, _ := fact.KubeProxy.From(q.View())
		d, _ := fact.Distro.From(q.View())
		switch {
		case proxy.Running == fact.Yes && (sets == nil || strings.HasPrefix(proxy.As, "static ") || !strings.HasPrefix(proxy.As, "pod ") && d.Inside):
			q.Find(running, diag.Report{
				Subject: "node/" + node, Severity: diag.Error, Next: look(node), Proof: []fact.Named{fact.KubeProxy, fact.Status},
				Message: fmt.Sprintf("kube-proxy runs as %s next to KPR %s%s", proxy.As, said, advice(d, proxy.As)),
			})
		case proxy.Running == fact.NotKnown && sets == nil:
			byRules(q, node, d, said, proxy)
		}
	}
	return nil
}

// bySets reports DaemonSets that run pods beside KPR, and gives their names.
func bySets(p *diag.Pass, proxies fact.Proxies) (names []string) {
	on, said := 0, ""
	for _, n := range p.View().Nodes() {
		if mode, word := modeOf(p.View().On(n.Name)); mode == agent.ModeTrue {
			on++
			said = cmp.Or(said, word)
		}
	}
	for i := range proxies.Sets {
		ds := &proxies.Sets[i]
		s := ds.Status
		if on == 0 || s.NumberReady == 0 && s.DesiredNumberScheduled == 0 {
			continue
		}
		names = append(names, ds.Name)
		p.Find(running, diag.Report{
			Subject: "daemonset/" + ds.Namespace + "/" + ds.Name, Severity: diag.Warning, Proof: []fact.Named{fact.KubeProxies, fact.Status},
			Message: fmt.Sprintf("%d of %d pods ready next to KPR %s: both translate Services until it is removed", s.NumberReady, s.DesiredNumberScheduled, said),
			Next:    []string{"kubectl", "kpr", "residue"},
		})
	}
	return names
}

// byRules takes rules that follow the endpoints for a kube-proxy that no pod
// shows: somebody writes them.
func byRules(p *diag.Pass, node string, d distro.Distro, said string, proxy fact.Proxy) {
	chains, err := fact.Chains.From(p.View())
	switch {
	case err == nil && chains.Fresh() && (d.Inside || d.Name == ""):
		where := "somewhere no pod shows"
		if d.Inside {
			where = d.Proxy + " (" + d.Name + ")"
		}
		p.Find(running, diag.Report{
			Subject: "node/" + node, Severity: diag.Error, Next: look(node), Proof: []fact.Named{fact.Chains, fact.Status},
			Message: fmt.Sprintf("kube-proxy's rules match the current endpoints, there is no kube-proxy pod, and KPR is %s: it runs %s%s", said, where, advice(d, "")),
		})
	case proxy.Missing != nil:
		p.Unknown(fact.KubeProxy.ID(), fmt.Errorf("whether kube-proxy runs is not known: %w", proxy.Missing))
	}
}

func advice(d distro.Distro, as string) string {
	switch {
	case d.Stop != "":
		return ". " + d.Name + " switches it off by " + d.Stop + "; check every node after the restart, its rules stay until a reboot or a clean-up"
	case strings.HasPrefix(as, "static "):
		return ". No DaemonSet owns it: a file on the node starts it. RKE2 wants disable-kube-proxy: true on every server, and agents that are restarted since"
	}
	return ""
}

// modeOf is the mode of a node's agent, else the one that it is told.
func modeOf(v *fact.View) (agent.Mode, string) {
	if a, err := fact.AgentOf.From(v); err == nil && a.Life == fact.Unwanted {
		return "", ""
	}
	if st, _ := fact.Status.From(v); st != nil && st.Mode != "" {
		return st.Mode, st.ModeSaid
	}
	if want, err := fact.WantedMode.From(v); err == nil {
		return want.Mode, want.Said + " (as configured)"
	}
	return "", ""
}
