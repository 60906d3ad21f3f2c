package lb

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// slicesOf reads Endpoints as the slices that they would be mirrored into.
// They know neither serving nor terminating.
func slicesOf(e *corev1.Endpoints) []discoveryv1.EndpointSlice { //nolint:staticcheck // old evidence holds nothing else
	var all []discoveryv1.EndpointSlice
	for _, sub := range e.Subsets {
		var ports []discoveryv1.EndpointPort
		for i := range sub.Ports {
			p := sub.Ports[i]
			ports = append(ports, discoveryv1.EndpointPort{Name: &p.Name, Port: &p.Port, Protocol: &p.Protocol})
			if p.Protocol == "" {
				ports[i].Protocol = nil
			}
		}
		bare := [2]discoveryv1.EndpointSlice{
			{AddressType: discoveryv1.AddressTypeIPv4, Ports: ports},
			{AddressType: discoveryv1.AddressTypeIPv6, Ports: ports},
		}
		add := func(as []corev1.EndpointAddress, ready bool) { //nolint:staticcheck // see above
			for _, a := range as {
				ip, err := netip.ParseAddr(a.IP)
				if err != nil {
					continue
				}
				s := &bare[familyOf(ip)]
				s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
					Addresses: []string{a.IP}, NodeName: a.NodeName, Conditions: discoveryv1.EndpointConditions{Ready: &ready},
				})
			}
		}
		add(sub.Addresses, true)
		add(sub.NotReadyAddresses, false)
		for _, s := range bare {
			if len(s.Endpoints) > 0 {
				all = append(all, s)
			}
		}
	}
	return all
}
