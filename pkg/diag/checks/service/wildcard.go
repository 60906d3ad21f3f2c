package service

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// wildcardNodeIP is the rule about Services that take a node's own address.
var wildcardNodeIP = &diag.Rule{
	Name: "wildcard-node-ip", Severity: diag.Error,
	Title: "a Service has a node's own address, and unknown ports of Service addresses are dropped",
	Doc: `From 1.19 on each ClusterIP and each LoadBalancer address that Cilium takes for its own has a row IP:0/ANY, which drops
what comes for ports that no Service has. If the address is a node's own as well, that is everything else on
the node: SSH, the kubelet, the API server.

Cilium takes an address for its own if the Service's loadBalancerClass is one of Cilium's, or is not set and
default-lb-service-ipam is lbipam, its default. So an address that MetalLB, kube-vip or the ServiceLB of k3s
and RKE2 gave out counts too. A class of somebody else's, or of node IPAM, does not. From 1.20 on addresses of nodes
get no such row; patch releases of 1.19 may have learned it, which the map tells.

Before 1.19 nothing is wrong yet, and an upgrade to it would cut the node off.`,
	Proof: []string{
		"kubectl get services -A -o wide",
		"kubectl get nodes -o wide",
		"kubectl kpr exec NODE -- cilium-dbg bpf lb list",
	},
	Remedy: `Give the Service an address that no node has. If it is meant to be the node's, set default-lb-service-ipam to none
(Helm: defaultLBServiceIPAM) or a loadBalancerClass that is not Cilium's before you upgrade to 1.19, or go to 1.20.
From a node that is cut off already, the way in is its console or another of its addresses.`,
}

// WildcardNodeIP checks that no Service has the address of a node.
func WildcardNodeIP() *diag.Check {
	return &diag.Check{
		Name: wildcardNodeIP.Name, Doc: "no Service address cuts a node off by being its own",
		Scope: diag.OfCluster, Rules: []*diag.Rule{wildcardNodeIP},
		Needs: []fact.Named{fact.Services},
		Wants: []fact.Named{fact.Nodes, fact.NodeView, fact.KernelTable, fact.Capabilities, fact.Config},
		Run:   judgeWildcards,
	}
}

// shared is an address that a Service and a node have.
type shared struct {
	service *corev1.Service
	ip      netip.Addr
	typ     string // LoadBalancer or ClusterIP
}

func judgeWildcards(p *diag.Pass) error {
	services, _ := fact.Services.From(p.View())
	ahead := map[lb.Name][]string{}
	var order []lb.Name
	for _, n := range p.View().Nodes() {
		on := p.On(n.Name)
		for _, s := range sharedOn(on.View(), services) {
			name := lb.Name{Namespace: s.service.Namespace, Name: s.service.Name}
			switch verdict, err := s.judge(on.View()); {
			case err != nil:
				on.Unknown(fact.KernelTable.ID(), err)
			case verdict == cutOff:
				on.Find(wildcardNodeIP, diag.Report{
					Subject: "service/" + name.String(), Address: s.ip.String(), Severity: diag.Error, Proof: []fact.Named{fact.Services, fact.MapRows},
					Message: fmt.Sprintf("its %s address %s is the node's own, and what comes for other ports there is dropped: SSH, kubelet and API server are cut off", s.typ, s.ip),
				})
			case verdict == wouldBe:
				if len(ahead[name]) == 0 {
					order = append(order, name)
				}
				if ip := s.ip.String(); !slices.Contains(ahead[name], ip) {
					ahead[name] = append(ahead[name], ip)
				}
			}
		}
	}
	for _, name := range order {
		p.Find(wildcardNodeIP, diag.Report{
			Subject: "service/" + name.String(), Severity: diag.Warning, Proof: []fact.Named{fact.Services, fact.Nodes},
			Message: fmt.Sprintf("its address is a node's own (%s): an upgrade to 1.19 would drop what comes for other ports there, SSH, kubelet and API server included", listed(ahead[name])),
		})
	}
	return nil
}

// sharedOn finds the Service addresses that are the node's own, by the API or
// on a device that the agent balances on.
func sharedOn(v *fact.View, services []corev1.Service) []shared {
	own := map[netip.Addr]bool{}
	nodes, _ := fact.Nodes.From(v)
	if i := slices.IndexFunc(nodes, func(n corev1.Node) bool { return n.Name == v.Node() }); i >= 0 {
		view := lb.View(&nodes[i])
		for _, ip := range slices.Concat(view.Addresses, view.Others) {
			own[ip] = true
		}
	}
	view, _ := fact.NodeView.From(v)
	for _, ip := range slices.Concat(view.Addresses, view.Others) {
		own[ip] = true
	}
	var out []shared
	take := func(s *corev1.Service, text, typ string) {
		if ip, err := netip.ParseAddr(text); err == nil && own[ip.Unmap()] {
			out = append(out, shared{s, ip.Unmap(), typ})
		}
	}
	for i := range services {
		s := &services[i]
		for _, ip := range s.Spec.ClusterIPs {
			take(s, ip, "ClusterIP")
		}
		for _, in := range s.Status.LoadBalancer.Ingress {
			if in.IPMode == nil || *in.IPMode != corev1.LoadBalancerIPModeProxy {
				take(s, in.IP, "LoadBalancer")
			}
		}
	}
	return out
}

// The verdicts on an address that a Service and a node share.
const (
	harmless = iota
	wouldBe  // not with this version, but with 1.19
	cutOff
)

// judge asks the map first: only it tells what a patch release does.
func (s shared) judge(v *fact.View) (int, error) {
	maps, mapErr := fact.KernelTable.From(v)
	can, _ := fact.Capabilities.From(v)
	cfg, _ := fact.Config.From(v)
	row, ok := maps.Find(lb.Address{IP: s.ip, Protocol: lb.ANY})
	if ok && row.Address.Wildcard() && can.WildcardRows != lb.No {
		return cutOff, nil
	}
	if s.typ == "LoadBalancer" && !takenByCilium(s.service, cfg.Data["default-lb-service-ipam"]) {
		return harmless, nil
	}
	newer := can.WildcardRows
	if newer == lb.Unknown && mapErr == nil {
		newer = lb.AnswerOf(slices.ContainsFunc(maps.Rows, func(r lb.Row) bool { return r.Wildcard }))
	}
	switch {
	case newer == lb.No && s.typ == "LoadBalancer":
		return wouldBe, nil
	case newer == lb.No, mapErr == nil, can.NodesSpared == lb.Yes:
		return harmless, nil
	case newer == lb.Yes:
		return cutOff, nil
	}
	return harmless, errors.Join(fmt.Errorf("neither the agent's version nor its map is known, and %s is an address of the node", s.ip), mapErr)
}

// takenByCilium holds for LoadBalancer addresses that Cilium takes for its own.
func takenByCilium(s *corev1.Service, ipam string) bool {
	if class := s.Spec.LoadBalancerClass; class != nil {
		return *class == "io.cilium/l2-announcer" || *class == "io.cilium/bgp-control-plane"
	}
	return ipam == "" || ipam == "lbipam"
}
