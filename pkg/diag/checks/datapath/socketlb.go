package datapath

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-kpr/kubectl-kpr/internal/words"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
)

// socketLB is the rule about translation at connect.
var socketLB = &diag.Rule{
	Name: "socketlb", Severity: diag.Warning,
	Title: "socket LB does not suit what runs here, or is off where it is needed",
	Doc: `Socket LB translates a Service address when a process connects, before there is a packet. With coverage Full it does so for
pods too, and the packets of pods are then not looked at again. That leaves out whoever has a network stack of its own: KubeVirt's virtual
machines, Kata and gVisor send packets to a ClusterIP from their own kernel, and nobody translates them. Sidecars that
match on the ClusterIP see the backend's address in its place; some setups do well with it. All of them want
socketLB.hostNamespaceOnly, by which pods are served packet by packet.

A kernel's NFS or SMB client that mounts through a ClusterIP keeps the translated address: when the server's pod moves, the mount hangs.
Kernels from 6.6 on, and some distributions' earlier ones, translate again at reconnect.

The agent attaches its programs to the root of the node's control groups when it starts and does not look again. Who removes them, by hand or with a clean-up of another
tool, leaves an agent that still says Enabled.

With socket LB off and the replacement on, 127.0.0.1:NODEPORT and ClusterIPs dialled from the host's network are not
translated by Cilium.`,
	Proof: []string{
		"kubectl kpr exec NODE -- cilium-dbg status --verbose",
		"kubectl -n kube-system get configmap cilium-config -o jsonpath='{.data.bpf-lb-sock-hostns-only}'",
		"kubectl kpr exec NODE -- bpftool cgroup show /run/cilium/cgroupv2",
	},
	Remedy:  `Set socketLB.hostNamespaceOnly=true and restart the agents; existing connections stay as they are. Mount NFS by a node address or by name and port outside the cluster.`,
	Sources: []string{"cilium/cilium#14563", "cilium/cilium#16583", "cilium/cilium#21541", "cilium/cilium#24805", "cilium/cilium#28304", "cilium/cilium#37669"},
}

// SocketLB checks socket LB against the workloads of each node.
func SocketLB() *diag.Check {
	return &diag.Check{
		Name:  socketLB.Name,
		Doc:   "socket LB against the programs in the kernel, virtual machines, sidecars and loopback NodePorts",
		Scope: diag.OfNode,
		Rules: []*diag.Rule{socketLB},
		Needs: []fact.Named{fact.Status},
		Wants: []fact.Named{fact.Pods, fact.Services, fact.KubeProxy, fact.AgentOf, fact.CiliumConfig, fact.Cgroup},
		Applies: func(v *fact.View) string {
			if a, err := fact.AgentOf.From(v); err == nil && a.Life == fact.Unwanted {
				return a.Reason
			}
			if st, err := fact.Status.From(v); err == nil && st.Mode == agent.ModeFalse {
				return "the replacement is off"
			}
			return ""
		},
		Run: judgeSocketLB,
	}
}

func judgeSocketLB(p *diag.Pass) error {
	st, _ := fact.Status.From(p.View())
	if st.SocketLB == agent.On {
		attached(p, st)
	}
	switch {
	case st.SocketLB == agent.Off && st.NodePort != agent.Off:
		loopback(p)
	case st.SocketLB == agent.On && st.SocketLBHostOnly != agent.On && fullCoverage(st):
		ownStacks(p)
	}
	return nil
}

// fullCoverage holds where pods' sockets are translated: said so, or of a
// version that knows nothing else.
func fullCoverage(st *agent.Status) bool {
	return st.SocketLBHostOnly == agent.Off || len(st.SocketLBProtos) > 0
}

func loopback(p *diag.Pass) {
	services, _ := fact.Services.From(p.View())
	var ports []string
	for i := range services {
		for _, port := range services[i].Spec.Ports {
			if port.NodePort > 0 {
				ports = append(ports, fmt.Sprintf("127.0.0.1:%d", port.NodePort))
			}
		}
	}
	if len(ports) == 0 {
		return // what is left to kube-proxy, kpr-mode tells
	}
	proxy, _ := fact.KubeProxy.From(p.View())
	r := diag.Report{Subject: "node/" + p.Node(), Address: "off", Severity: diag.Warning, Proof: []fact.Named{fact.Status}}
	r.Message = "socket LB is off: " + some(ports) + " and ClusterIPs from the host's network are not translated by Cilium"
	if proxy.Running == fact.Yes {
		r.Severity = diag.Info
		r.Message += "; kube-proxy runs and does it"
	}
	p.Find(socketLB, r)
}

// ownStacks finds pods that translation at connect passes by.
func ownStacks(p *diag.Pass) {
	pods, _ := fact.Pods.From(p.View())
	found := map[string][]string{}
	for i := range pods {
		o := &pods[i]
		if o.Spec.NodeName != p.Node() || o.Spec.HostNetwork || o.Status.Phase == corev1.PodSucceeded || o.Status.Phase == corev1.PodFailed {
			continue
		}
		if kind := stackOf(o); kind != "" {
			found[kind] = append(found[kind], o.Namespace+"/"+o.Name)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(found)) {
		names := found[kind]
		r := diag.Report{Subject: "node/" + p.Node(), Address: kind, Severity: diag.Error, Proof: []fact.Named{fact.Status, fact.Pods}}
		switch kind {
		case kindMachine:
			r.Message = fmt.Sprintf("%s (%s) beside socket LB with coverage Full: a virtual machine has its own kernel, and its packets to ClusterIPs, DNS too, are translated by nobody; set socketLB.hostNamespaceOnly=true",
				words.Count(len(names), "virt-launcher pod"), some(names))
		case kindSandbox:
			r.Message = fmt.Sprintf("%s in a sandbox with its own network stack (%s) beside socket LB with coverage Full: its packets to ClusterIPs are translated by nobody; set socketLB.hostNamespaceOnly=true",
				words.Count(len(names), "pod"), some(names))
		default:
			r.Severity = diag.Warning
			r.Message = fmt.Sprintf("%s with the sidecar %s (%s) beside socket LB with coverage Full: its rules that match on a ClusterIP may be passed by, since it sees the backend's address; set socketLB.hostNamespaceOnly=true",
				words.Count(len(names), "pod"), kind, some(names))
		}
		p.Find(socketLB, r)
	}
}

// The kinds of pods with a network stack of their own; a sidecar's kind is its
// container's name.
const (
	kindMachine = "virtual machine"
	kindSandbox = "sandbox"
)

func stackOf(o *corev1.Pod) string {
	if o.Labels["kubevirt.io"] == "virt-launcher" || strings.HasPrefix(o.Name, "virt-launcher-") {
		return kindMachine
	}
	if class := o.Spec.RuntimeClassName; class != nil {
		for _, word := range []string{"kata", "gvisor", "runsc"} {
			if strings.Contains(strings.ToLower(*class), word) {
				return kindSandbox
			}
		}
	}
	for _, c := range slices.Concat(o.Spec.Containers, o.Spec.InitContainers) {
		if slices.Contains([]string{"istio-proxy", "linkerd-proxy", "kuma-sidecar", "consul-dataplane", "osm-envoy"}, c.Name) {
			return c.Name
		}
	}
	return ""
}
