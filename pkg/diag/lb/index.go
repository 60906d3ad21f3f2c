package lb

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// Inputs are the objects that say what load balancing a cluster wants.
type Inputs struct {
	Services []corev1.Service
	Slices   []discoveryv1.EndpointSlice
	// Endpoints are read in place of slices where UseEndpoints is set, that is
	// for evidence recorded without slices. Otherwise they only help to say
	// why a Service has no slice: Cilium reads slices.
	Endpoints    []corev1.Endpoints //nolint:staticcheck // old evidence holds nothing else
	UseEndpoints bool
	Nodes        []corev1.Node
	// Pods are looked at for host ports. AllPods says that none is left out,
	// so that a host port without a pod is a leftover.
	Pods    []corev1.Pod
	AllPods bool
}

// Index is Inputs made ready for Desired. It is built once, never changes and
// serves any number of nodes at a time.
type Index struct {
	services  []*service
	hostPorts map[string][]hostPort // by node
	prefixes  []netip.Prefix        // pod ranges of this cluster's nodes
	allPods   bool
}

// service is a Service with its endpoints joined to its ports.
type service struct {
	name        Name
	spec        *corev1.ServiceSpec
	annotations map[string]string
	labels      map[string]string
	ingress     []corev1.LoadBalancerIngress
	clusterIPs  []netip.Addr
	unreadable  []string // clusterIPs that are no addresses
	families    []family
	ports       []port
	external    Policy
	internal    Policy
	ranges      []netip.Prefix
	affinity    int // seconds, 0 without
	global      bool
	spread      spread
}

// port is one port of a service with the endpoints behind it, by family.
type port struct {
	name     string
	number   uint16
	nodePort uint16
	protocol Protocol
	behind   [2]endpoints
}

// NewIndex reads the objects. What is unusable in one, such as an address that
// is none, is passed over or reported by Desired; it never fails.
func NewIndex(in Inputs) *Index {
	x := &Index{hostPorts: map[string][]hostPort{}, allPods: in.AllPods}
	all := map[Name][]discoveryv1.EndpointSlice{}
	if in.UseEndpoints {
		for i := range in.Endpoints {
			e := &in.Endpoints[i]
			name := Name{e.Namespace, e.Name}
			all[name] = append(all[name], slicesOf(e)...)
		}
	} else {
		for _, s := range in.Slices {
			if owner := s.Labels[discoveryv1.LabelServiceName]; owner != "" {
				name := Name{s.Namespace, owner}
				all[name] = append(all[name], s)
			}
		}
	}
	unmirrored := map[Name]int{}
	for i := range in.Endpoints {
		for _, sub := range in.Endpoints[i].Subsets {
			unmirrored[Name{in.Endpoints[i].Namespace, in.Endpoints[i].Name}] += len(sub.Addresses)
		}
	}
	for i := range in.Services {
		name := Name{in.Services[i].Namespace, in.Services[i].Name}
		x.services = append(x.services, newService(&in.Services[i], all[name], unmirrored[name]))
	}
	sortServices(x.services, in.Services)
	for i := range in.Pods {
		x.addHostPorts(&in.Pods[i])
	}
	for _, hs := range x.hostPorts {
		slices.SortFunc(hs, hostPort.compare)
	}
	for i := range in.Nodes {
		for _, cidr := range append([]string{in.Nodes[i].Spec.PodCIDR}, in.Nodes[i].Spec.PodCIDRs...) {
			if p, err := netip.ParsePrefix(cidr); err == nil {
				x.prefixes = append(x.prefixes, p.Masked())
			}
		}
	}
	slices.SortFunc(x.prefixes, comparePrefixes)
	x.prefixes = slices.Compact(x.prefixes)
	return x
}

func comparePrefixes(a, b netip.Prefix) int {
	return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
}

// sortServices puts the oldest first, so that of several owners of a frontend
// the likeliest one gives the row its name.
func sortServices(ss []*service, objects []corev1.Service) {
	born := make(map[Name]int64, len(objects))
	for i := range objects {
		born[Name{objects[i].Namespace, objects[i].Name}] = objects[i].CreationTimestamp.Unix()
	}
	slices.SortStableFunc(ss, func(a, b *service) int {
		return cmp.Or(cmp.Compare(born[a.name], born[b.name]),
			strings.Compare(a.name.Namespace, b.name.Namespace), strings.Compare(a.name.Name, b.name.Name))
	})
}

func newService(o *corev1.Service, all []discoveryv1.EndpointSlice, unmirrored int) *service {
	s := &service{
		name: Name{o.Namespace, o.Name}, spec: &o.Spec, annotations: o.Annotations, labels: o.Labels,
		ingress: o.Status.LoadBalancer.Ingress, external: Cluster, internal: Cluster, spread: spreadOf(o),
	}
	ips := o.Spec.ClusterIPs
	if len(ips) == 0 && o.Spec.ClusterIP != "" {
		ips = []string{o.Spec.ClusterIP}
	}
	for _, ip := range ips {
		if ip == corev1.ClusterIPNone {
			continue
		}
		a, err := netip.ParseAddr(ip)
		if err != nil {
			s.unreadable = append(s.unreadable, ip)
			continue
		}
		s.clusterIPs = append(s.clusterIPs, a.Unmap())
	}
	s.families = familiesOf(o, s.clusterIPs)
	if o.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal {
		s.external = Local
	}
	if p := o.Spec.InternalTrafficPolicy; p != nil && *p == corev1.ServiceInternalTrafficPolicyLocal {
		s.internal = Local
	}
	s.affinity = affinityOf(&o.Spec)
	for _, r := range o.Spec.LoadBalancerSourceRanges {
		if p, err := netip.ParsePrefix(strings.TrimSpace(r)); err == nil {
			s.ranges = append(s.ranges, p.Masked())
		}
	}
	slices.SortFunc(s.ranges, comparePrefixes)
	s.ranges = slices.Compact(s.ranges)
	s.global = isTrue(o.Annotations, "service.cilium.io/global", "io.cilium/global-service")

	j := joiner{slices: all, unmirrored: unmirrored, selector: o.Spec.Selector}
	for _, p := range o.Spec.Ports {
		protocol, err := ParseProtocol(cmp.Or(string(p.Protocol), "TCP"))
		if err != nil || p.Port <= 0 || p.Port > 65535 {
			continue
		}
		one := port{name: p.Name, number: uint16(p.Port), protocol: protocol}
		if p.NodePort > 0 && p.NodePort <= 65535 {
			one.nodePort = uint16(p.NodePort)
		}
		one.behind = [2]endpoints{j.join(one, v4), j.join(one, v6)}
		s.ports = append(s.ports, one)
	}
	return s
}

// familiesOf says in which families a Service has NodePorts. Objects written
// before Kubernetes 1.20 have no ipFamilies.
func familiesOf(o *corev1.Service, clusterIPs []netip.Addr) []family {
	var fs []family
	for _, f := range o.Spec.IPFamilies {
		switch f {
		case corev1.IPv4Protocol:
			fs = append(fs, v4)
		case corev1.IPv6Protocol:
			fs = append(fs, v6)
		}
	}
	if len(fs) > 0 {
		return fs
	}
	for _, a := range clusterIPs {
		if f := familyOf(a); !slices.Contains(fs, f) {
			fs = append(fs, f)
		}
	}
	return fs
}

func affinityOf(s *corev1.ServiceSpec) int {
	if s.SessionAffinity != corev1.ServiceAffinityClientIP {
		return 0
	}
	if c := s.SessionAffinityConfig; c != nil && c.ClientIP != nil && c.ClientIP.TimeoutSeconds != nil && *c.ClientIP.TimeoutSeconds > 0 {
		return int(*c.ClientIP.TimeoutSeconds)
	}
	return int(corev1.DefaultClientIPServiceAffinitySeconds)
}

func isTrue(annotations map[string]string, keys ...string) bool {
	for _, k := range keys {
		if strings.EqualFold(annotations[k], "true") {
			return true
		}
	}
	return false
}

// spread is how a Service prefers some endpoints to others.
type spread uint8

const (
	everywhere spread = iota
	sameZone
	sameNode
)

// spreadOf: a Local internal policy leaves nothing to prefer.
func spreadOf(o *corev1.Service) spread {
	if p := o.Spec.InternalTrafficPolicy; p != nil && *p == corev1.ServiceInternalTrafficPolicyLocal {
		return everywhere
	}
	if d := o.Spec.TrafficDistribution; d != nil {
		switch *d {
		case corev1.ServiceTrafficDistributionPreferSameZone, corev1.ServiceTrafficDistributionPreferClose:
			return sameZone
		case corev1.ServiceTrafficDistributionPreferSameNode:
			return sameNode
		}
	}
	mode, ok := o.Annotations[corev1.DeprecatedAnnotationTopologyAwareHints]
	if !ok {
		mode = o.Annotations[corev1.AnnotationTopologyMode]
	}
	if mode == "" || strings.EqualFold(mode, "disabled") {
		return everywhere
	}
	return sameZone
}
