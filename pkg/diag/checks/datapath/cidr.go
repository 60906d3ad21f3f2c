package datapath

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
)

// cidrOverlap is the rule about ranges that contain each other's addresses.
var cidrOverlap = &diag.Rule{
	Name: "cidr-overlap", Severity: diag.Error,
	Title: "the range of pods contains Service or node addresses",
	Doc: `Pods, Services and nodes need ranges of their own. A ClusterIP inside the range of a node's pods is taken for a pod there: Cilium
answers for it, routes to it and may give it to a pod. The same holds for a node's address. It shows up late, when the range has
been handed out so far.

Cilium's own pool defaults to 10.0.0.0/8, of which each node gets a part; 10.96.0.0/12, where many clusters have their
Services, lies inside. That is a warning while no node's part contains one.`,
	Proof: []string{
		"kubectl get ciliumnodes -o custom-columns=NAME:.metadata.name,PODS:.spec.ipam.podCIDRs",
		"kubectl get services -A -o custom-columns=NS:.metadata.namespace,NAME:.metadata.name,IP:.spec.clusterIPs",
		"kubectl -n kube-system get configmap cilium-config -o jsonpath='{.data.cluster-pool-ipv4-cidr}'",
	},
	Remedy: `Give Cilium a range that nothing else uses (ipam.operator.clusterPoolIPv4PodCIDRList), before the nodes join. Nodes that
have a part of the old one keep it until they are drained and their CiliumNode is deleted.`,
}

// CIDROverlap checks ranges against each other.
func CIDROverlap() *diag.Check {
	return &diag.Check{
		Name:  cidrOverlap.Name,
		Doc:   "ranges of pods against ClusterIPs and node addresses",
		Scope: diag.OfCluster,
		Rules: []*diag.Rule{cidrOverlap},
		Needs: []fact.Named{fact.Services},
		Wants: []fact.Named{fact.Nodes, fact.Status, fact.CiliumConfig, fact.DaemonSets},
		Run:   judgeCIDRs,
	}
}

// owned is an address and whose it is.
type owned struct {
	ip   netip.Addr
	what string // "kube-system/kube-dns", "node w-1"
	node bool
}

func judgeCIDRs(p *diag.Pass) error {
	all := ownedAddresses(p.View())
	ranges := podRangesOf(p.View())
	hit := false
	for _, node := range p.View().Nodes() {
		for _, r := range ranges[node.Name] {
			for _, kind := range []bool{false, true} {
				inside := within(all, r, kind)
				if len(inside) == 0 {
					continue
				}
				hit = true
				what, consequence := "the ClusterIP", "the address is taken for a pod of this node"
				if kind {
					what, consequence = "the node address", "packets to it stay on this node"
				}
				p.On(node.Name).Find(cidrOverlap, diag.Report{
					Subject: "node/" + node.Name, Address: r.String() + " " + what, Severity: diag.Error, Proof: []fact.Named{fact.Status, fact.Services},
					Message: fmt.Sprintf("the pod range %s of the node contains %s %s: %s", r, what, list(inside), consequence),
				})
			}
		}
	}
	pools(p, all, hit)
	return nil
}

// pools looks at the ranges that parts for nodes are taken from.
func pools(p *diag.Pass, all []owned, hit bool) {
	config, err := fact.CiliumConfig.From(p.View())
	if mode := cmp.Or(config["ipam"], "cluster-pool"); err != nil || mode != "cluster-pool" && mode != "cluster-pool-v2beta" {
		return
	}
	for _, key := range []string{"cluster-pool-ipv4-cidr", "cluster-pool-ipv6-cidr"} {
		for word := range strings.FieldsFuncSeq(config[key], func(r rune) bool { return r == ' ' || r == ',' }) {
			pool, err := netip.ParsePrefix(word)
			if err != nil {
				continue
			}
			inside := within(all, pool.Masked(), false)
			if len(inside) == 0 {
				continue
			}
			of := 0
			for _, o := range all {
				if !o.node && o.ip.Is4() == pool.Addr().Is4() {
					of++
				}
			}
			share := fmt.Sprintf("%d of %d ClusterIPs", len(inside), of)
			if len(inside) == of {
				share = "all ClusterIPs"
			}
			message := fmt.Sprintf("%s %s covers %s (%s)", key, pool, share, list(inside))
			if !hit {
				message += ": nodes that join later may get a part with one of them"
			}
			if told := clusterCIDR(p.View()); told != "" && told != pool.String() {
				message += "; kube-proxy was told " + told
			}
			p.Find(cidrOverlap, diag.Report{Subject: "configmap/kube-system/cilium-config", Address: key + " " + word, Severity: diag.Warning, Message: message, Proof: []fact.Named{fact.CiliumConfig, fact.Services}})
		}
	}
}

func ownedAddresses(v *fact.View) []owned {
	var all []owned
	services, _ := fact.Services.From(v)
	for i := range services {
		s := &services[i]
		ips := s.Spec.ClusterIPs
		if len(ips) == 0 {
			ips = []string{s.Spec.ClusterIP}
		}
		for _, text := range ips {
			if ip, err := netip.ParseAddr(text); err == nil {
				all = append(all, owned{ip.Unmap(), s.Namespace + "/" + s.Name, false})
			}
		}
	}
	nodes, _ := fact.Nodes.From(v)
	for i := range nodes {
		for _, a := range nodes[i].Status.Addresses {
			if ip, err := netip.ParseAddr(a.Address); err == nil {
				all = append(all, owned{ip.Unmap(), "node " + nodes[i].Name, true})
			}
		}
	}
	slices.SortFunc(all, func(a, b owned) int { return a.ip.Compare(b.ip) })
	return all
}

// podRangesOf are the ranges of each node's pods: the agent's word, else the
// Node object's.
func podRangesOf(v *fact.View) map[string][]netip.Prefix {
	out := map[string][]netip.Prefix{}
	nodes, _ := fact.Nodes.From(v)
	config, _ := fact.CiliumConfig.From(v)
	for i := range nodes {
		if config["ipam"] != "kubernetes" {
			break // the Node's own range is nobody's then
		}
		for _, text := range append(slices.Clone(nodes[i].Spec.PodCIDRs), nodes[i].Spec.PodCIDR) {
			if p, err := netip.ParsePrefix(text); err == nil && !slices.Contains(out[nodes[i].Name], p.Masked()) {
				out[nodes[i].Name] = append(out[nodes[i].Name], p.Masked())
			}
		}
	}
	for node, st := range fact.Status.Each(v) {
		if st.Value != nil && len(st.Value.PodRanges) > 0 {
			out[node] = st.Value.PodRanges
		}
	}
	return out
}

func within(all []owned, r netip.Prefix, node bool) []owned {
	var in []owned
	for _, o := range all {
		if o.node == node && r.Contains(o.ip) {
			in = append(in, o)
		}
	}
	return in
}

func list(all []owned) string {
	var words []string
	for i, o := range all {
		if i == 3 {
			words = append(words, fmt.Sprintf("%d more", len(all)-3))
			break
		}
		words = append(words, fmt.Sprintf("%s (%s)", o.ip, o.what))
	}
	return strings.Join(words, ", ")
}

// clusterCIDR is what kube-proxy was told of the pods' range, "" if nothing.
func clusterCIDR(v *fact.View) string {
	sets, _ := fact.DaemonSets.From(v)
	i := slices.IndexFunc(sets, func(ds appsv1.DaemonSet) bool { return strings.Contains(ds.Name, "kube-proxy") })
	if i < 0 {
		return ""
	}
	for _, c := range sets[i].Spec.Template.Spec.Containers {
		for _, word := range slices.Concat(c.Command, c.Args) {
			if value, ok := strings.CutPrefix(word, "--cluster-cidr="); ok {
				return value
			}
		}
	}
	return ""
}
