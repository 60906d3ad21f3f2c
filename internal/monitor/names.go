package monitor

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// Names say whose an address is.
type Names struct {
	services  map[netip.AddrPort]string   // frontends
	backends  map[netip.AddrPort][]string // Services behind a socket
	addresses map[netip.Addr]string       // nodes, and pods as they become known
	// Find looks up the pod of an address, "" if none has it. It is asked once
	// for each address, a bounded number of times.
	Find  func(ctx context.Context, ip netip.Addr) string
	mu    sync.Mutex
	asked int
}

// maxAsked bounds look-ups of pods: a world of clients may come by.
const maxAsked = 200

// NewNames joins what the API tells of addresses.
func NewNames(services []corev1.Service, slicesOf []discoveryv1.EndpointSlice, nodes []corev1.Node) *Names {
	n := &Names{services: map[netip.AddrPort]string{}, backends: map[netip.AddrPort][]string{}, addresses: map[netip.Addr]string{}}
	for i := range nodes {
		for _, a := range nodes[i].Status.Addresses {
			if ip, err := netip.ParseAddr(a.Address); err == nil {
				n.addresses[ip.Unmap()] = "node/" + nodes[i].Name
			}
		}
	}
	for i := range services {
		n.service(&services[i])
	}
	for i := range slicesOf {
		n.slice(&slicesOf[i])
	}
	return n
}

func (n *Names) service(s *corev1.Service) {
	ips := slices.Concat(s.Spec.ClusterIPs, s.Spec.ExternalIPs)
	for _, in := range s.Status.LoadBalancer.Ingress {
		ips = append(ips, in.IP)
	}
	for _, text := range ips {
		ip, err := netip.ParseAddr(text)
		if err != nil {
			continue
		}
		for _, p := range s.Spec.Ports {
			n.services[netip.AddrPortFrom(ip.Unmap(), uint16(p.Port))] = "svc/" + s.Namespace + "/" + s.Name
		}
	}
}

func (n *Names) slice(s *discoveryv1.EndpointSlice) {
	name := s.Namespace + "/" + s.Labels[discoveryv1.LabelServiceName]
	for _, e := range s.Endpoints {
		for _, text := range e.Addresses {
			ip, err := netip.ParseAddr(text)
			if err != nil {
				continue
			}
			if e.TargetRef != nil && e.TargetRef.Kind == "Pod" {
				n.addresses[ip.Unmap()] = "pod/" + e.TargetRef.Namespace + "/" + e.TargetRef.Name
			}
			for _, p := range s.Ports {
				if p.Port == nil || s.Labels[discoveryv1.LabelServiceName] == "" {
					continue
				}
				at := netip.AddrPortFrom(ip.Unmap(), uint16(*p.Port))
				if !slices.Contains(n.backends[at], name) {
					n.backends[at] = append(n.backends[at], name)
				}
			}
		}
	}
}

// Add tells the name of an address.
func (n *Names) Add(ip netip.Addr, name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.addresses[ip] = name
}

// Of is whose an address is: "pod/NAMESPACE/NAME", "node/NAME", "svc/NAMESPACE/NAME",
// "" if nobody's that is known.
func (n *Names) Of(ctx context.Context, at netip.AddrPort) string {
	if s := n.services[at]; s != "" {
		return s
	}
	n.mu.Lock()
	name, known := n.addresses[at.Addr()]
	ask := !known && n.Find != nil && n.asked < maxAsked && at.Addr().IsPrivate()
	if ask {
		n.asked++
		n.addresses[at.Addr()] = ""
	}
	n.mu.Unlock()
	if ask {
		if name = n.Find(ctx, at.Addr()); name != "" {
			n.Add(at.Addr(), name)
		}
	}
	return name
}

// Behind are the Services that have the socket as a backend, "NAMESPACE/NAME".
func (n *Names) Behind(at netip.AddrPort) []string { return n.backends[at] }

// peer is an identity that says who it is; a bare number says nothing.
func peer(identity string) string {
	if strings.Trim(identity, "0123456789") == "" {
		return ""
	}
	return identity
}
