// Package distro knows Kubernetes distributions: how to recognise one from its
// Node objects, where its kube-proxy lives, how that is switched off and what
// brings it back. No other package compares names of distributions.
package distro

import corev1 "k8s.io/api/core/v1"

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
	// Return says how kube-proxy comes back after that: by whom, or by which
	// event.
	Return string
	// API is an address of the API server that answers on every node without a
	// Service, as "HOST:PORT"; "" where the distribution has none of its own.
	API string
	// Files is the folder of the files that configure it on each node, where they
	// decide about kube-proxy; "" where something else does.
	Files string
	// Managed: somebody else runs the control plane and may put things back, so
	// nothing is changed there; diagnosis works all the same.
	Managed bool
	// Known is how well what stands here is known.
	Known Known
}

// Known is how well something is known.
type Known uint8

// The ways to know. The zero Known is the weakest.
const (
	Read     Known = iota // in sources and documentation
	Recorded              // in evidence that users published, too
	Run                   // on a real cluster, too
)

// String is the word of the documentation.
func (k Known) String() string {
	return [...]string{"read in its sources", "seen in recorded evidence", "run on a real cluster"}[min(k, Run)]
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
	return []known{rke2(), k3s(), k0s(), microk8s(), talos(), eks(), aks(), gke(), kind(), kops(), kubeadm()}
}
