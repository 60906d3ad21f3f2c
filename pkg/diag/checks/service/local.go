package service

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// noLocal is the rule about nodes that a Local policy leaves empty.
var noLocal = &diag.Rule{
	Name: "local-no-local-backend", Severity: diag.Info,
	Title: "a Local traffic policy leaves a Service's frontends empty on nodes without an endpoint",
	Doc: `With externalTrafficPolicy Local a node sends clients from outside to endpoints on the node itself and to no
others; with internalTrafficPolicy Local it does so for clients on the node. Without a local endpoint the
frontend is empty there, and its clients are dropped ("Service backend not found"). That is by design and no
fault of the node: a balancer is to ask healthCheckNodePort and to send nothing to such nodes.

It is a warning where clients surely lose: a balancer's address that is the address of such a node, so that no
health check stands before it.

Services that only have a ClusterIP are not told here.`,
	Proof: []string{
		"kubectl get service -n NAMESPACE NAME -o yaml",
		"kubectl get endpointslices -n NAMESPACE -l kubernetes.io/service-name=NAME -o wide",
		"kubectl kpr exec NODE -- cilium-dbg service list",
	},
	Remedy: `None, if the balancer asks healthCheckNodePort. Else point it there, run an endpoint on every node that takes
traffic (a DaemonSet), or use the policy Cluster, which serves from every node and hides the client's address.`,
}

// NoLocal tells of nodes that a Local policy leaves without backends.
func NoLocal() *diag.Check {
	return &diag.Check{
		Name: noLocal.Name, Doc: "nodes without an endpoint of Services with a Local policy",
		Scope: diag.OfCluster, Rules: []*diag.Rule{noLocal},
		Needs: []fact.Named{fact.Index},
		Wants: []fact.Named{fact.Desired, fact.NodeView, fact.AgentOf, fact.Services},
		Run:   judgeLocal,
	}
}

// vacancy is a Service with the nodes that hold none of its endpoints.
type vacancy struct {
	service  lb.Name
	external []string // nodes where clients from outside find nobody
	internal []string // nodes whose own clients find nobody
	rows     []lb.Row
	owned    []string // nodes whose address is the balancer's
}

func judgeLocal(p *diag.Pass) error {
	services, err := fact.Services.From(p.View())
	if err != nil {
		return err
	}
	objects := map[lb.Name]*corev1.Service{}
	for i := range services {
		objects[lb.Name{Namespace: services[i].Namespace, Name: services[i].Name}] = &services[i]
	}
	all := map[lb.Name]*vacancy{}
	nodes := 0
	for node, t := range fact.Desired.Each(p.View()) {
		v := p.View().On(node)
		if noAgentMeant(v) != "" {
			continue
		}
		if t.Err != nil {
			p.On(node).Unknown(fact.Desired.ID(), t.Err)
			continue
		}
		nodes++
		view, _ := fact.NodeView.From(v)
		for _, r := range t.Value.Rows {
			if vacant(r, objects[r.Service], view) {
				if all[r.Service] == nil {
					all[r.Service] = &vacancy{service: r.Service}
				}
				all[r.Service].add(node, view, r)
			}
		}
	}
	for _, name := range sortedNames(all) {
		r := all[name].report(objects[name], nodes)
		p.Find(noLocal, r)
	}
	return nil
}

// vacant holds for a frontend that a Local policy keeps empty on a node whose
// agent serves it, of a Service with a way in from outside.
func vacant(r lb.Row, s *corev1.Service, n lb.NodeView) bool {
	if r.Cause != lb.NoneLocal || r.Expansion || s == nil {
		return false
	}
	if s.Spec.Type != corev1.ServiceTypeNodePort && s.Spec.Type != corev1.ServiceTypeLoadBalancer && len(s.Spec.ExternalIPs) == 0 {
		return false
	}
	switch r.Type {
	case "NodePort":
		return n.NodePort != lb.No
	case "LoadBalancer":
		return n.LoadBalancer != lb.No
	case "ExternalIPs":
		return n.ExternalIPs != lb.No
	}
	return true
}

func (c *vacancy) add(node string, n lb.NodeView, r lb.Row) {
	side := &c.external
	if r.Type == "ClusterIP" || r.Address.Scope == lb.Internal {
		side = &c.internal
	}
	if len(*side) == 0 || (*side)[len(*side)-1] != node {
		*side = append(*side, node)
	}
	if !slices.ContainsFunc(c.rows, func(o lb.Row) bool { return o.Address == r.Address }) {
		c.rows = append(c.rows, r)
	}
	if side == &c.external && r.Type == "LoadBalancer" && ownsAddress(n, r.Address.IP) && !slices.Contains(c.owned, node) {
		c.owned = append(c.owned, node)
	}
}

func ownsAddress(n lb.NodeView, a netip.Addr) bool {
	return slices.Contains(n.Addresses, a) || slices.Contains(n.Others, a)
}

func (c *vacancy) report(s *corev1.Service, nodes int) diag.Report {
	var parts []string
	if len(c.external) > 0 {
		parts = append(parts, fmt.Sprintf("externalTrafficPolicy is Local and %s no endpoint: %s empty there by design, for clients from outside",
			have(c.external, nodes), c.frontends(lb.External)))
	}
	if len(c.internal) > 0 {
		parts = append(parts, fmt.Sprintf("internalTrafficPolicy is Local and %s no endpoint: %s empty there by design, for clients on the node",
			have(c.internal, nodes), c.frontends(lb.Internal)))
	}
	severity, message := diag.Info, strings.Join(parts, "; ")
	if len(c.owned) > 0 {
		severity = diag.Warning
		message += fmt.Sprintf(". The balancer's address is that of %s, so its clients are dropped", listed(c.owned))
	}
	if n := s.Spec.HealthCheckNodePort; n > 0 {
		message += fmt.Sprintf(". A balancer is to ask healthCheckNodePort %d which nodes serve", n)
	}
	return diag.Report{
		Subject: "service/" + c.service.String(), Severity: severity, Message: message,
		Proof: []fact.Named{fact.Services},
		Next:  []string{"kubectl", "kpr", "trace", "svc/" + c.service.Name, "-n", c.service.Namespace, "--from", "outside"},
	}
}

// have counts and names nodes: "2 of 3 nodes (n1, n2) have".
func have(nodes []string, of int) string {
	verb := "have"
	if len(nodes) == 1 {
		verb = "has"
	}
	return fmt.Sprintf("%d of %d nodes (%s) %s", len(nodes), of, listed(nodes), verb)
}

// frontends names the frontends of one side: internal rows and ClusterIPs, or
// the others.
func (c *vacancy) frontends(side lb.Scope) string {
	var names []string
	for _, r := range c.rows {
		internal := r.Type == "ClusterIP" || r.Address.Scope == lb.Internal
		if s := dialled(r.Address); internal == (side == lb.Internal) && !slices.Contains(names, s) {
			names = append(names, s)
		}
	}
	if len(names) == 1 {
		return names[0] + " is"
	}
	return listed(names) + " are"
}

func sortedNames[T any](m map[lb.Name]T) []lb.Name {
	names := make([]lb.Name, 0, len(m))
	for n := range m {
		names = append(names, n)
	}
	slices.SortFunc(names, func(a, b lb.Name) int { return cmp.Compare(a.String(), b.String()) })
	return names
}
