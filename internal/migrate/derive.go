package migrate

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/internal/distro"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
)

// Wishes are what an operator may say of a plan without writing a file.
type Wishes struct {
	APIServer               string // HOST:PORT
	Masquerade, HostRouting bool
	Combine                 bool
	Chart, Helm             string
	Driver                  string // helm, emit; "" for helm
	Order                   []string
}

// Facts are what Derive reads.
func Facts() []fact.Named {
	return []fact.Named{fact.AgentSets, fact.AgentOf, fact.KubeProxies, fact.Distro, fact.APIAddresses, fact.Status, fact.KubeProxy}
}

// Derive makes inputs for a cluster as it was read. Where something needed is
// not known, or the distribution is run by somebody else, it fails and says so.
func Derive(v *fact.View, w Wishes) (*Inputs, error) {
	in := &Inputs{Combine: w.Combine, Order: w.Order, Driver: Driver{Kind: w.Driver, Helm: w.Helm}}
	if in.Driver.Kind == "" {
		in.Driver.Kind = "helm"
	}
	yes := true
	in.Target.Replace = &yes
	if w.Masquerade {
		in.Target.Masquerade = &yes
	}
	if w.HostRouting {
		in.Target.HostRouting = &yes
	}
	if err := in.agents(v, w); err != nil {
		return nil, err
	}
	d, err := in.nodes(v)
	if err != nil {
		return nil, err
	}
	if d.Managed {
		return nil, fmt.Errorf("the nodes are %s's, whose control plane is run by somebody else: nothing is changed there. kube-proxy is %s; it is switched off by: %s", d.Name, d.Proxy, d.Stop)
	}
	if err := in.address(v, w, d); err != nil {
		return nil, err
	}
	return in, in.proxy(v, d)
}

// agents finds the DaemonSet and, by its own annotations, the release.
func (in *Inputs) agents(v *fact.View, w Wishes) error {
	sets, err := fact.AgentSets.From(v)
	if err != nil {
		return fmt.Errorf("the agents' DaemonSet: %w", err)
	}
	if len(sets) != 1 {
		return fmt.Errorf("%d DaemonSets of Cilium agents: a plan is for one", len(sets))
	}
	ds := &sets[0]
	in.Agents = Object{ds.Namespace, ds.Name}
	in.Release = Release{Object: Object{ds.Annotations["meta.helm.sh/release-namespace"], ds.Annotations["meta.helm.sh/release-name"]}, Chart: w.Chart}
	if in.Driver.Kind != "helm" {
		return nil
	}
	switch {
	case in.Release.Name == "":
		return fmt.Errorf("daemonset %s names no Helm release: change the values where they are kept, with --driver emit, or by a command of yours in a plan file", in.Agents)
	case in.Release.Chart == "":
		return errors.New("where does helm find Cilium's chart? Give --chart, such as cilium/cilium, an OCI address or a folder; the installed version is kept")
	}
	return nil
}

// nodes lists those that are meant to run an agent, and their distribution.
func (in *Inputs) nodes(v *fact.View) (distro.Distro, error) {
	var d distro.Distro
	for _, n := range v.Nodes() {
		on := v.On(n.Name)
		if a, err := fact.AgentOf.From(on); err == nil && a.Life == fact.Unwanted {
			continue
		}
		in.Nodes = append(in.Nodes, n.Name)
		one, err := fact.Distro.From(on)
		if err != nil {
			continue
		}
		if d.Name != "" && one.Name != d.Name {
			return d, fmt.Errorf("nodes of two distributions, %s and %s: write a plan file for them", d.Name, one.Name)
		}
		d = one
	}
	slices.Sort(in.Nodes)
	if len(in.Nodes) == 0 {
		return d, errors.New("no node is meant to run a Cilium agent")
	}
	in.Distribution = d.Name
	return d, nil
}

// address chooses where agents find the API server. One that they have already
// and that needs no Service is kept.
func (in *Inputs) address(v *fact.View, w Wishes, d distro.Distro) error {
	given := w.APIServer
	all, err := fact.APIAddresses.From(v)
	if given == "" && err == nil && len(all) == 1 && all[0].Host != "" && all[0].Service == "" && len(all[0].Unset) == 0 {
		return nil
	}
	if given == "" {
		given = d.API
	}
	if given == "" {
		return errors.New("the agents have no address of the API server that needs no Service: give --api-server HOST:PORT, one that answers on every node (a load balancer before the API servers, or one of them)")
	}
	host, port, err := net.SplitHostPort(given)
	if err != nil || host == "" || port == "" {
		return fmt.Errorf("--api-server %q: want HOST:PORT", given)
	}
	in.Target.APIHost, in.Target.APIPort = host, port
	return nil
}

// proxy finds what to take away.
func (in *Inputs) proxy(v *fact.View, d distro.Distro) error {
	proxies, err := fact.KubeProxies.From(v)
	if err != nil {
		return err
	}
	switch {
	case len(proxies.Sets) > 1:
		return fmt.Errorf("%d DaemonSets of kube-proxy: write a plan file that names one", len(proxies.Sets))
	case len(proxies.Sets) == 1 && (d.Name == "" || d.Name == "kubeadm" || d.Name == "kind"):
		ds := proxies.Sets[0]
		in.Proxy.DaemonSet = &Object{ds.Namespace, ds.Name}
		for _, vol := range ds.Spec.Template.Spec.Volumes {
			if vol.ConfigMap != nil && strings.Contains(vol.ConfigMap.Name, "kube-proxy") {
				in.Proxy.ConfigMap = &Object{ds.Namespace, vol.ConfigMap.Name}
			}
		}
	case d.Stop != "":
		in.Proxy.ByHand = d.Stop
	default:
		in.Proxy.ByHand = "kube-proxy is no DaemonSet here and the distribution was not recognised: switch it off where it is started"
	}
	return nil
}
