package lint

import "github.com/kubectl-kpr/kubectl-kpr/pkg/diag"

// Rules lists what the lint alone can find, sorted by name. K3sDisableList is
// left out: a check has it too, where a node's own files are read.
func Rules() []*diag.Rule {
	return []*diag.Rule{K3sConfig, ValuesAPIServer, ValuesIgnored, ValuesKPR, ValuesRejected}
}

// The rules about files.
var (
	// ValuesRejected is about values that the chart or the agent refuses.
	ValuesRejected = &diag.Rule{
		Name: "values-rejected", Severity: diag.Error,
		Title: "The chart does not render with these values, or the agents exit when they start with them",
		Doc: `Some words were taken by older versions only: kubeProxyReplacement was strict, partial or
probe up to 1.15 and is true or false since 1.16, and the chart refuses everything else. Other values are each
legal and exclude each other, such as LB mode dsr through a VXLAN tunnel: the chart renders them, the agent reads
them once, when it starts, and exits.

A rolling update shows it on the first nodes, as agents that restart over and over. Where the ConfigMap changed
without a roll, it shows at the next reboot of a node.`,
		Proof:  []string{"helm template cilium cilium/cilium --version VERSION -f FILE", "kubectl -n kube-system logs ds/cilium -c cilium-agent --previous"},
		Remedy: "Set the value that the message names. Try it on one node first, with a CiliumNodeConfig.",
	}
	// ValuesIgnored is about values that do nothing.
	ValuesIgnored = &diag.Rule{
		Name: "values-ignored", Severity: diag.Error,
		Title: "A value that does nothing: a name that the chart does not have, or has no more",
		Doc: `Helm passes any key on and charts do not complain of names they do not know. A slip of the pen
(kubeproxyReplacement) therefore installs without a word and leaves the default in force. So does a value that was
removed: nodePort.enabled, hostPort.enabled, externalIPs.enabled and sessionAffinity mean nothing from 1.19 on,
where kubeProxyReplacement alone decides.

A key that stands twice in one object counts once, with its last value.`,
		Proof:  []string{"helm show values cilium/cilium --version VERSION | grep NAME"},
		Remedy: "Correct the name, or take the value out.",
	}
	// ValuesAPIServer is about the address that agents dial the API server at.
	ValuesAPIServer = &diag.Rule{
		Name: "values-api-server", Severity: diag.Error,
		Title: "Without kube-proxy the agents cannot reach the API server at what these values say",
		Doc: `An agent that replaces kube-proxy needs the API server before it can serve a single Service. Without
k8sServiceHost and k8sServicePort it dials the ClusterIP of default/kubernetes, which nobody serves then: agents
wait forever on a fresh node, and on an old one until the rules that kube-proxy left are gone.

The chart takes a host without a port and writes an empty one. A URL in place of a host is no host.`,
		Proof: []string{
			"kubectl -n kube-system get ds cilium -o jsonpath='{.spec.template.spec.containers[0].env}'",
			"kubectl get endpoints kubernetes",
		},
		Remedy: `Set k8sServiceHost and k8sServicePort to an address that answers on every node without any Service:
127.0.0.1 and 6444 for k3s, localhost and 6443 for RKE2, localhost and 7445 for Talos, else the address of the load
balancer or virtual address before the API servers. From 1.18 on k8s.apiServerURLs takes several.`,
	}
	// ValuesKPR is about values that contradict each other without being refused.
	ValuesKPR = &diag.Rule{
		Name: "values-kpr", Severity: diag.Error,
		Title: "Values that do not go together with kubeProxyReplacement",
		Doc: `BPF masquerade belongs to the replacement: without it an agent of 1.15 to 1.17 exits, one of 1.14 masquerades
with iptables after all, and later ones masquerade in BPF with known faults. BPF host routing needs both; where one is
missing the agent goes back to legacy routing and says so in one line of its log. The health check of the replacement
wants port 10256, which a running kube-proxy holds: agents up to 1.17 die of that.`,
		Proof:  []string{"kubectl -n kube-system exec ds/cilium -c cilium-agent -- cilium-dbg status --verbose"},
		Remedy: "Turn the replacement on or off together with what depends on it.",
	}
	// K3sDisableList is about kube-proxy in a list that knows no kube-proxy.
	K3sDisableList = &diag.Rule{
		Name: "k3s-disable-list", Severity: diag.Error,
		Title: "kube-proxy stands in the list disable, where it does nothing",
		Doc: `k3s and RKE2 take any word in the list disable and compare it with the names of the manifests they ship.
kube-proxy is none of them: k3s runs it inside its own process and RKE2 as a static pod. The start succeeds, and
kube-proxy runs on.`,
		Proof:  []string{"kubectl get node NODE -o jsonpath='{.metadata.annotations.k3s\\.io/node-args}'"},
		Remedy: "Write disable-kube-proxy: true into the configuration of every server, restart the servers, then the agents.",
	}
	// K3sConfig is about the rest of a server's configuration.
	K3sConfig = &diag.Rule{
		Name: "k3s-config", Severity: diag.Error,
		Title: "The configuration of k3s or RKE2 leaves parts running that Cilium replaces, or nobody to replace them",
		Doc: `k3s brings flannel, a network policy controller, a load balancer (servicelb) and kube-proxy; RKE2 brings a CNI
and kube-proxy. Cilium beside flannel gives pods two networks. The network policy controller writes rules of its own
that stay when it is turned off. servicelb answers on node addresses, which Cilium's rows for a node's own address
can cut off. kube-proxy beside the replacement works and is not needed.

disable-kube-proxy is a flag of servers. Agents ask a server for it once, when they start.`,
		Proof:  []string{"kubectl get nodes -o jsonpath='{range .items[*]}{.metadata.name} {.metadata.annotations.k3s\\.io/node-args}{\"\\n\"}{end}'"},
		Remedy: "For k3s: flannel-backend: none, disable-network-policy: true, disable-kube-proxy: true. For RKE2: cni: cilium, disable-kube-proxy: true.",
	}
)
