// Package distro knows Kubernetes distributions: how to recognise one from its
// Node objects, where its kube-proxy lives, how that is switched off and what
// brings it back. No other package compares names of distributions.
package distro

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Distro is a distribution. The zero Distro is one that nothing told of.
type Distro struct {
	Name    string // "k3s", "RKE2", …; "" if not known
	Because string // what it was recognised by

	// Proxy says where kube-proxy lives: "inside the k3s process".
	Proxy string
	// Inside: kube-proxy is part of another process and shows as no pod.
	Inside bool
	// Stop says how it is switched off for good.
	Stop string
	// Managed: somebody else runs the control plane and may put things back, so
	// nothing is changed there; diagnosis works all the same.
	Managed bool
	// Run: this was tried on a real cluster; else it was read in the
	// distribution's sources and documentation.
	Run bool
}

// Of recognises the distribution of a node.
func Of(n *corev1.Node) Distro {
	for _, known := range all() {
		if because := known.sign(n); because != "" {
			d := known.Distro
			d.Because = because
			return d
		}
	}
	return Distro{}
}

// All lists the distributions that can be recognised.
func All() []Distro {
	var out []Distro
	for _, known := range all() {
		out = append(out, known.Distro)
	}
	return out
}

type known struct {
	Distro
	sign func(*corev1.Node) string
}

// all is in the order of asking: what is most specific comes first, as kubeadm
// stands below several of the others.
func all() []known {
	return []known{
		{Distro{Name: "RKE2", Proxy: "a static pod kube-proxy-NODE", Stop: "disable-kube-proxy: true in the configuration of every server, then a restart of rke2-server and of rke2-agent on each node, one at a time"},
			anyOf(annotated("rke2.io/node-args"), version("+rke2"))},
		{Distro{Name: "k3s", Proxy: "inside the k3s process, without a pod", Inside: true, Stop: "disable-kube-proxy: true in the configuration of every server (a flag of its own, no item of disable), then a restart of k3s on the servers and of k3s-agent on each node"},
			anyOf(annotated("k3s.io/node-args"), version("+k3s"))},
		{Distro{Name: "k0s", Proxy: "a DaemonSet that k0s applies again", Stop: "spec.network.kubeProxy.disabled: true in the k0s configuration, then a restart of the controllers"},
			version("+k0s")},
		{Distro{Name: "microk8s", Proxy: "inside the kubelite process, without a pod", Inside: true, Stop: "the argument file of kube-proxy in /var/snap/microk8s/current/args, and a restart of the snap"},
			labelled("microk8s.io/cluster")},
		{Distro{Name: "Talos", Proxy: "a DaemonSet that the machine configuration applies", Stop: "cluster.proxy.disabled: true in the machine configuration of the control plane"},
			image("Talos")},
		{Distro{Name: "EKS", Proxy: "the add-on kube-proxy, a DaemonSet", Stop: "delete the add-on kube-proxy", Managed: true},
			anyOf(version("-eks-"), labelled("eks.amazonaws.com/nodegroup"))},
		{Distro{Name: "AKS", Proxy: "a managed DaemonSet", Stop: "kubeProxyConfig.enabled=false of the cluster", Managed: true},
			labelled("kubernetes.azure.com/cluster")},
		{Distro{Name: "GKE", Proxy: "a static pod, or Dataplane V2 in its place", Stop: "not by the user: Google manages it", Managed: true},
			anyOf(version("-gke."), labelled("cloud.google.com/gke-nodepool"))},
		{Distro{Name: "kind", Proxy: "a DaemonSet by kubeadm", Stop: "networking.kubeProxyMode: none at creation, else delete the DaemonSet and its ConfigMap"},
			provider("kind://")},
		{Distro{Name: "kOps", Proxy: "a static pod", Stop: "spec.kubeProxy.enabled: false in the cluster spec, then a rolling update"},
			labelled("kops.k8s.io/instancegroup")},
		{Distro{Name: "kubeadm", Proxy: "a DaemonSet", Stop: "delete the DaemonSet and the ConfigMap kube-proxy; upgrade with --skip-phases=addon/kube-proxy", Run: true},
			annotated("kubeadm.alpha.kubernetes.io/cri-socket")},
	}
}

func anyOf(signs ...func(*corev1.Node) string) func(*corev1.Node) string {
	return func(n *corev1.Node) string {
		for _, sign := range signs {
			if because := sign(n); because != "" {
				return because
			}
		}
		return ""
	}
}

func annotated(key string) func(*corev1.Node) string {
	return func(n *corev1.Node) string {
		if _, ok := n.Annotations[key]; ok {
			return "annotation " + key
		}
		return ""
	}
}

func labelled(key string) func(*corev1.Node) string {
	return func(n *corev1.Node) string {
		if _, ok := n.Labels[key]; ok {
			return "label " + key
		}
		return ""
	}
}

func version(part string) func(*corev1.Node) string {
	return func(n *corev1.Node) string {
		if v := n.Status.NodeInfo.KubeletVersion; strings.Contains(v, part) {
			return "kubelet " + v
		}
		return ""
	}
}

func image(prefix string) func(*corev1.Node) string {
	return func(n *corev1.Node) string {
		if i := n.Status.NodeInfo.OSImage; strings.HasPrefix(i, prefix) {
			return "operating system " + i
		}
		return ""
	}
}

func provider(prefix string) func(*corev1.Node) string {
	return func(n *corev1.Node) string {
		if strings.HasPrefix(n.Spec.ProviderID, prefix) {
			return "providerID " + n.Spec.ProviderID
		}
		return ""
	}
}

// Args are the arguments that k3s and RKE2 write down on their node, nil where
// there are none.
func Args(n *corev1.Node) []string {
	for _, key := range []string{"k3s.io/node-args", "rke2.io/node-args"} {
		if text, ok := n.Annotations[key]; ok {
			return parseArgs(text)
		}
	}
	return nil
}

// Switched tells what the arguments of a server say of kube-proxy: off, and
// whether somebody tried to by an item of disable, which does nothing.
func Switched(args []string) (off, byList bool) {
	for i, a := range args {
		name, value, has := strings.Cut(strings.TrimLeft(a, "-"), "=")
		if !has && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
			value = args[i+1]
		}
		switch name {
		case "disable-kube-proxy":
			off = value == "" || value == "true"
		case "disable", "no-deploy":
			byList = byList || slices.Contains(strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' }), "kube-proxy")
		}
	}
	return off, byList
}
