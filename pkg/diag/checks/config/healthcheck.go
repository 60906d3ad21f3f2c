package config

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// placeholder is the one endpoint of Services that Cilium makes for Gateways
// and Ingresses.
const placeholder = "192.192.192.192"

// HealthCheckPorts checks what balancers are told about Services with
// externalTrafficPolicy Local. It stands apart from Healthz, which is asked
// without the maps.
func HealthCheckPorts() *diag.Check {
	return &diag.Check{
		Name:  "health-check-ports",
		Doc:   "what healthCheckNodePort answers, against the endpoints and Envoys of the node",
		Scope: diag.OfCluster,
		Rules: []*diag.Rule{healthz},
		Wants: []fact.Named{fact.HealthChecks, fact.Services, fact.EndpointSlices, fact.CiliumConfig, fact.KernelTable, fact.AgentTable},
		Run:   judgePorts,
	}
}

func judgePorts(p *diag.Pass) error {
	services, serviceErr := fact.Services.From(p.View())
	ends, endErr := fact.EndpointSlices.From(p.View())
	for node, r := range fact.HealthChecks.Each(p.View()) {
		q := p.On(node)
		if r.Err != nil && !errors.Is(r.Err, source.ErrAbsent) {
			q.Unknown(fact.HealthChecks.ID(), r.Err)
		}
		if len(r.Value) > 0 && (serviceErr != nil || endErr != nil) {
			if serviceErr != nil {
				p.Unknown(fact.Services.ID(), serviceErr)
			}
			if endErr != nil {
				p.Unknown(fact.EndpointSlices.ID(), endErr)
			}
			return nil
		}
		for _, h := range r.Value {
			i := slices.IndexFunc(services, func(s corev1.Service) bool { return int(s.Spec.HealthCheckNodePort) == h.Port })
			if i < 0 || h.Service != (lb.Name{}) && h.Service != (lb.Name{Namespace: services[i].Namespace, Name: services[i].Name}) {
				continue // of another time than the Services
			}
			onePort(q, h, &services[i], residents(&services[i], ends, node))
		}
	}
	return nil
}

func onePort(p *diag.Pass, h fact.HealthCheck, s *corev1.Service, local resident) {
	r := diag.Report{
		Subject: "service/" + s.Namespace + "/" + s.Name, Address: fmt.Sprintf("port %d", h.Port), Severity: diag.Error,
		Proof: []fact.Named{fact.HealthChecks, fact.Services, fact.EndpointSlices},
	}
	answer := fmt.Sprintf("the health check port %d answers %d", h.Port, h.Code)
	switch {
	case h.Refused:
		answer = fmt.Sprintf("nobody listens on the health check port %d", h.Port)
		if config, _ := fact.CiliumConfig.From(p.View()); config["enable-health-check-nodeport"] == "false" {
			answer += " (enable-health-check-nodeport is false)"
		}
	case h.Code == 0:
		answer = fmt.Sprintf("the health check port %d answers", h.Port)
	}
	if h.Counted {
		answer += fmt.Sprintf(" with %s", endpoints(h.Local, "local"))
	}
	proxied := local.placeholder || redirected(p.View(), s)
	switch {
	case h.Healthy() && !proxied && local.known && local.any == 0:
		r.Severity = diag.Warning
		r.Message = answer + ", and no endpoint is on the node: the cloud load balancer sends traffic here that the Local policy drops"
	case h.Healthy():
		return
	case proxied:
		r.Message = answer + ", so the cloud load balancer sends nothing, though the local Envoy takes the traffic"
		if local.placeholder && !h.Refused {
			r.Message += ": the endpoint that was counted is a placeholder (fixed in Cilium 1.16.0, cilium/cilium#33600)"
		}
	case local.ready > 0:
		r.Message = fmt.Sprintf("%s, so the cloud load balancer sends nothing, though the node has %s", answer, endpoints(local.ready, "ready"))
	default:
		return // an empty node is to be left out
	}
	p.Find(healthz, r)
}

func endpoints(n int, kind string) string {
	if n == 1 {
		return "1 " + kind + " endpoint"
	}
	return fmt.Sprintf("%d %s endpoints", n, kind)
}

// resident counts the endpoints of a Service on one node.
type resident struct {
	ready, any  int
	known       bool // every endpoint names its node
	placeholder bool // there is no endpoint but Cilium's own
}

func residents(s *corev1.Service, slicesOf []discoveryv1.EndpointSlice, node string) resident {
	out := resident{known: true}
	all, dummies := 0, 0
	for i := range slicesOf {
		if slicesOf[i].Namespace != s.Namespace || slicesOf[i].Labels[discoveryv1.LabelServiceName] != s.Name {
			continue
		}
		for _, e := range slicesOf[i].Endpoints {
			all++
			switch {
			case slices.Contains(e.Addresses, placeholder):
				dummies++
			case e.NodeName == nil || *e.NodeName == "":
				out.known = false
			case *e.NodeName == node:
				out.any++
				if e.Conditions.Ready == nil || *e.Conditions.Ready {
					out.ready++
				}
			}
		}
	}
	out.placeholder = all > 0 && all == dummies
	return out
}

// redirected holds where the node's maps send the Service to Envoy.
func redirected(v *fact.View, s *corev1.Service) bool {
	table, _ := fact.KernelTable.From(v)
	if len(table.Rows) == 0 {
		table, _ = fact.AgentTable.From(v)
	}
	ips := slices.Concat(s.Spec.ClusterIPs, s.Spec.ExternalIPs, []string{s.Spec.ClusterIP})
	for _, in := range s.Status.LoadBalancer.Ingress {
		ips = append(ips, in.IP)
	}
	return slices.ContainsFunc(table.Rows, func(r lb.Row) bool {
		if r.Redirect != lb.L7Redirect || r.Wildcard {
			return false
		}
		at := slices.ContainsFunc(ips, func(text string) bool {
			ip, err := netip.ParseAddr(strings.TrimSpace(text))
			return err == nil && ip.Unmap() == r.Address.IP
		})
		return slices.ContainsFunc(s.Spec.Ports, func(port corev1.ServicePort) bool {
			return at && int(r.Address.Port) == int(port.Port) || port.NodePort > 0 && int(r.Address.Port) == int(port.NodePort)
		})
	})
}
