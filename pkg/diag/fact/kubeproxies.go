package fact

import (
	"errors"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-kpr/kubectl-kpr/internal/distro"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

var (
	// KubeProxies is what is known of kube-proxy in the cluster as a whole.
	KubeProxies = Define("kube-proxies", false, []Named{KubeProxy, DaemonSets, Pods, NodeArgs}, kubeProxies)
	// ConfigMaps are those that can bring kube-proxy back.
	ConfigMaps = Read(source.ConfigMaps, objects[corev1.ConfigMap])
	// Distro is the distribution of a node.
	Distro = Define("distribution", true, []Named{Nodes}, func(v *View) (distro.Distro, error) {
		n, err := nodeObject(v)
		if err != nil {
			return distro.Distro{}, err
		}
		return distro.Of(n), nil
	})
	// NodeArgs are the arguments that k3s and RKE2 write down on their node.
	NodeArgs = Define("node-args", true, []Named{Nodes}, func(v *View) ([]string, error) {
		n, err := nodeObject(v)
		if err != nil {
			return nil, err
		}
		return distro.Args(n), nil
	})
)

// Proxies is kube-proxy in the cluster.
type Proxies struct {
	// Sets are DaemonSets of kube-proxy, whether or not they want a pod.
	Sets []appsv1.DaemonSet
	// Nodes are those of the run and those of kube-proxy's pods: old evidence
	// can name a node in a pod alone.
	Nodes []string
	// Running are the nodes on which it runs.
	Running []string
	// Disabled: the arguments of a k3s or RKE2 server switch it off, and no node's
	// keep it on.
	Disabled bool
	// Looked: DaemonSets were read, so that none of them means something.
	Looked bool
}

// Seen tells whether there is any sign of a kube-proxy that runs. NotKnown is
// where nothing was read that could show one.
func (p Proxies) Seen() Answer {
	for i := range p.Sets {
		if p.Sets[i].Status.DesiredNumberScheduled > 0 || p.Sets[i].Status.NumberReady > 0 {
			return Yes
		}
	}
	switch {
	case len(p.Running) > 0:
		return Yes
	case p.Looked:
		return No
	}
	return NotKnown
}

func kubeProxies(v *View) (Proxies, error) {
	var p Proxies
	sets, err := DaemonSets.From(v)
	p.Looked = err == nil
	for _, ds := range sets {
		if isKubeProxy(ds.Spec.Template.Labels, ds.Name) || ds.Name == "kube-proxy" {
			p.Sets = append(p.Sets, ds)
		}
	}
	for _, n := range v.Nodes() {
		p.Nodes = append(p.Nodes, n.Name)
	}
	pods, podErr := Pods.From(v)
	for i := range pods {
		if node := pods[i].Spec.NodeName; node != "" && isKubeProxy(pods[i].Labels, pods[i].Name) && !slices.Contains(p.Nodes, node) {
			p.Nodes = append(p.Nodes, node)
		}
	}
	for _, node := range p.Nodes {
		if proxy, err := KubeProxy.From(v.On(node)); err == nil && proxy.Running == Yes {
			p.Running = append(p.Running, node)
		}
	}
	p.Looked = p.Looked || podErr == nil
	p.Disabled = disabled(v)
	return p, nil
}

// disabled looks at servers only: the arguments of agents never say it.
func disabled(v *View) bool {
	off := false
	for _, n := range v.Nodes() {
		args, err := NodeArgs.From(v.On(n.Name))
		if err != nil || len(args) == 0 || args[0] != "server" {
			continue
		}
		switched, _ := distro.Switched(args)
		if !switched {
			return false
		}
		off = true
	}
	return off
}

func nodeObject(v *View) (*corev1.Node, error) {
	nodes, err := Nodes.From(v)
	if err != nil {
		return nil, err
	}
	for i := range nodes {
		if nodes[i].Name == v.Node() {
			return &nodes[i], nil
		}
	}
	return nil, errors.Join(source.ErrAbsent, errors.New("no Node object of that name"))
}

// IsKubeProxy tells kube-proxy's pods from others.
func IsKubeProxy(p *corev1.Pod) bool { return isKubeProxy(p.Labels, p.Name) }
