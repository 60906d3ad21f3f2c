package service

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// expectedBehaviour is the rule about what works as designed, and otherwise
// than people expect.
var expectedBehaviour = &diag.Rule{
	Name: "expected-behaviour", Severity: diag.Info,
	Title: "works as designed, though users may expect something else",
	Doc: `Nothing is broken in Cilium here, and clients may still be left without an answer:

A ClusterIP is not for clients outside the cluster. Its row is marked non-routable, and packets that come from
outside are dropped, also where BGP announces the address. bpf-lb-external-clusterip changes that.

A NodePort outside the range that the agent knows is not answered from outside: the API server's
--service-node-port-range has to be told to Cilium. A hostPort inside that range is left out.

When all endpoints of a Service terminate, those that still serve go on to get new connections until they are gone.`,
	Proof: []string{
		"kubectl kpr exec NODE -- cilium-dbg bpf lb list",
		"kubectl kpr exec NODE -- cilium-dbg status --verbose",
		"kubectl get configmap -n kube-system cilium-config -o yaml",
	},
	Remedy: `For ClusterIPs from outside: a Service of type LoadBalancer, or bpf-lb-external-clusterip "true" if the network in
front is trusted. For NodePorts: the same range in the API server and in nodePort.range. For hostPorts: a port
outside the range. The rest needs nothing.`,
}

// ExpectedBehaviour tells of what works as designed and may surprise.
func ExpectedBehaviour() *diag.Check {
	return &diag.Check{
		Name: expectedBehaviour.Name, Doc: "what works as designed, and otherwise than users expect",
		Scope: diag.OfNode, Rules: []*diag.Rule{expectedBehaviour},
		Needs:   []fact.Named{fact.Services},
		Wants:   []fact.Named{fact.AgentOf, fact.BGPRoutes, fact.MapRows, fact.Config, fact.Desired, fact.NodeView},
		Applies: noAgentMeant,
		Run: func(p *diag.Pass) error {
			announced(p)
			outOfRange(p)
			byDesign(p)
			return nil
		},
	}
}

func surprise(p *diag.Pass, severity diag.Severity, subject, address, message string, proof ...fact.Named) {
	p.Find(expectedBehaviour, diag.Report{Subject: subject, Address: address, Severity: severity, Message: message, Proof: proof})
}

// announced tells of ClusterIPs that BGP invites outside clients to, and that
// do not take them.
func announced(p *diag.Pass) {
	v := p.View()
	if view, _ := fact.NodeView.From(v); view.NodePort == lb.No {
		return // with the replacement off kube-proxy takes clients from outside
	}
	routes, _ := fact.BGPRoutes.From(v)
	services, _ := fact.Services.From(v)
	barred := nonRoutable(v)
	seen := map[netip.Prefix]bool{}
	for _, r := range routes {
		if seen[r.Prefix] || !ofNodeItself(r, p.Node()) {
			continue
		}
		seen[r.Prefix] = true
		hit := 0
		for i := range services {
			for _, ip := range clusterIPs(&services[i]) {
				why := ""
				if r.Prefix.Contains(ip) {
					why = barred(ip)
				}
				if why == "" {
					continue
				}
				hit++
				if r.Prefix.IsSingleIP() {
					surprise(p, diag.Warning, "service/"+services[i].Namespace+"/"+services[i].Name, ip.String(),
						fmt.Sprintf("BGP announces the ClusterIP %s, and %s: clients outside are led here and get no answer; that needs bpf-lb-external-clusterip true", ip, why),
						fact.BGPRoutes, fact.MapRows)
				}
			}
		}
		if hit > 0 && !r.Prefix.IsSingleIP() {
			surprise(p, diag.Warning, "cluster", r.Prefix.String(),
				fmt.Sprintf("BGP announces %s, and the ClusterIPs in it (%d) are not routable: clients outside are led here and get no answer; that needs bpf-lb-external-clusterip true", r.Prefix, hit),
				fact.BGPRoutes, fact.MapRows)
		}
	}
}

// ofNodeItself: a route that this node has from itself, not from a peer.
func ofNodeItself(r agent.BGPRoute, node string) bool {
	if r.Node != "" && r.Node != node {
		return false
	}
	hop, err := netip.ParseAddr(r.NextHop)
	return err != nil || hop.IsUnspecified() || r.Peer != ""
}

func clusterIPs(s *corev1.Service) []netip.Addr {
	words := s.Spec.ClusterIPs
	if len(words) == 0 {
		words = []string{s.Spec.ClusterIP}
	}
	var ips []netip.Addr
	for _, w := range words {
		if ip, err := netip.ParseAddr(w); err == nil {
			ips = append(ips, ip.Unmap())
		}
	}
	return ips
}

// nonRoutable answers for an address why clients outside are turned away; "" if
// they are not, or if nobody tells. The map is the judge: the setting needs a
// restart to take effect.
func nonRoutable(v *fact.View) func(netip.Addr) string {
	rows, err := fact.MapRows.From(v)
	cfg, cfgErr := fact.Config.From(v)
	return func(ip netip.Addr) string {
		for _, r := range rows {
			if r.Master && r.Frontend.IP == ip && !r.Frontend.Wildcard() {
				if slices.Contains(r.Flags, "non-routable") {
					return "its row " + r.Frontend.String() + " is non-routable"
				}
				return ""
			}
		}
		if err != nil && cfgErr == nil && cfg.Data["bpf-lb-external-clusterip"] != "true" {
			return "bpf-lb-external-clusterip is not true"
		}
		return ""
	}
}

// outOfRange tells of NodePorts that the agent's range leaves out.
func outOfRange(p *diag.Pass) {
	v := p.View()
	view, _ := fact.NodeView.From(v)
	if view.NodePort != lb.Yes || view.NodePortMin == 0 || view.NodePortMax == 0 {
		return
	}
	services, _ := fact.Services.From(v)
	for i := range services {
		s := &services[i]
		if s.Spec.Type != corev1.ServiceTypeNodePort && s.Spec.Type != corev1.ServiceTypeLoadBalancer {
			continue
		}
		for _, port := range s.Spec.Ports {
			if n := port.NodePort; n > 0 && (n < int32(view.NodePortMin) || n > int32(view.NodePortMax)) {
				surprise(p, diag.Warning, "service/"+s.Namespace+"/"+s.Name, fmt.Sprintf("%d/%s", n, port.Protocol),
					fmt.Sprintf("NodePort %d is outside the agent's range %d-%d: clients outside get no answer there; set nodePort.range to the API server's", n, view.NodePortMin, view.NodePortMax),
					fact.Services, fact.NodeView)
			}
		}
	}
}

// byDesign tells of what Desired explains and no other rule does.
func byDesign(p *diag.Pass) {
	v := p.View()
	want, err := fact.Desired.From(v)
	if err != nil {
		return
	}
	view, _ := fact.NodeView.From(v)
	for _, a := range want.Absent {
		if a.Cause == lb.PortReserved && view.HostPort == lb.Yes {
			surprise(p, diag.Warning, "pod/"+a.Service.String(), a.Reason,
				a.Reason+": Cilium leaves it out, and nobody answers on it", fact.Pods, fact.NodeView)
		}
	}
	told := map[lb.Name]bool{}
	for _, r := range want.Rows {
		if r.Cause == lb.AllDraining && r.Service != (lb.Name{}) && !told[r.Service] {
			told[r.Service] = true
			surprise(p, diag.Info, "service/"+r.Service.String(), string(r.Cause),
				r.Reason+": they get new connections until they are gone", fact.Services, fact.EndpointSlices)
		}
	}
}
