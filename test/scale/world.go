package main

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// world is what a simulated cluster is made of. Of a hundred Services five are
// NodePorts and five have an affinity, one more is a NodePort with Local
// policies and one has a Local policy inside. What is Local has its backends on the first nodes only,
// as where some nodes take the traffic of all: so most nodes hold the same.
type world struct {
	nodes, services, backends int
	// ingress is how many nodes hold backends of Local Services.
	ingress int
}

// service is one Service of the world.
type service struct {
	number      int
	namespace   string
	name        string
	clusterIP   netip.Addr
	nodePort    int
	local       bool // internal policy; external as well for a NodePort
	affinity    bool
	backends    []backend
	frontendIDs [3]int // ClusterIP, surrogate, node address
}

type backend struct {
	id   int
	ip   netip.Addr
	node int
}

const (
	affinitySeconds = 10800
	namespaces      = 50
)

func (w world) all() []service {
	list := make([]service, w.services)
	id := 10
	for i := range list {
		s := service{number: i, namespace: fmt.Sprintf("shop-%d", i%namespaces), name: fmt.Sprintf("svc-%d", i),
			clusterIP: netip.AddrFrom4([4]byte{10, 96 + byte(i>>16), byte(i >> 8), byte(i)}).Next()}
		s.local, s.affinity = i%100 == 1 || i%100 == 2, i%20 == 3
		switch {
		case i%20 == 0:
			s.nodePort = 30000 + i/20
		case i%100 == 1:
			s.nodePort = 31500 + i/100
		}
		for k := range w.backends {
			n := i*w.backends + k
			node := (i*7 + k*13) % w.nodes
			if s.local {
				node = n % min(w.ingress, w.nodes)
			}
			s.backends = append(s.backends, backend{id: 100 + n, node: node,
				ip: netip.AddrFrom4([4]byte{100, 64 + byte(n>>16), byte(n >> 8), byte(n)}).Next()})
		}
		for k := range s.frontendIDs {
			id++
			s.frontendIDs[k] = id
		}
		list[i] = s
	}
	return list
}

func nodeName(i int) string { return fmt.Sprintf("node-%04d", i) }

// nodeIP is a node's one address, always of fourteen bytes so that answers of
// all nodes have one length.
func nodeIP(i int) string { return fmt.Sprintf("172.20.%d.%d", 100+i/100, 100+i%100) }

func nodeObject(i int) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: nodeName(i), Labels: map[string]string{"kubernetes.io/hostname": nodeName(i), "kubernetes.io/os": "linux"}},
		Status: corev1.NodeStatus{
			Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: nodeIP(i)}, {Type: corev1.NodeHostName, Address: nodeName(i)}},
			NodeInfo:   corev1.NodeSystemInfo{KubeletVersion: "v1.34.3", KernelVersion: "6.12.0", OSImage: "Debian GNU/Linux 12"},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}, {Type: corev1.NodeNetworkUnavailable, Status: corev1.ConditionFalse}},
		},
	}
}

func (s service) object() *corev1.Service {
	o := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.name}}
	cluster, local := corev1.ServiceInternalTrafficPolicyCluster, corev1.ServiceInternalTrafficPolicyLocal
	single := corev1.IPFamilyPolicySingleStack
	o.Spec = corev1.ServiceSpec{
		Type: corev1.ServiceTypeClusterIP, ClusterIP: s.clusterIP.String(), ClusterIPs: []string{s.clusterIP.String()},
		IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}, IPFamilyPolicy: &single, Selector: map[string]string{"app": s.name},
		SessionAffinity: corev1.ServiceAffinityNone, InternalTrafficPolicy: &cluster,
		Ports: []corev1.ServicePort{{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(8080)}},
	}
	if s.local {
		o.Spec.InternalTrafficPolicy = &local
	}
	if s.nodePort > 0 {
		o.Spec.Type, o.Spec.Ports[0].NodePort = corev1.ServiceTypeNodePort, int32(s.nodePort)
		o.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster
		if s.local {
			o.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		}
	}
	if s.affinity {
		seconds := int32(affinitySeconds)
		o.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
		o.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: &seconds}}
	}
	return o
}

func (s service) slice() *discoveryv1.EndpointSlice {
	name, port, tcp, yes, no := "http", int32(8080), corev1.ProtocolTCP, true, false
	e := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.name + "-x7k2p",
			Labels: map[string]string{discoveryv1.LabelServiceName: s.name, discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io"}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: &name, Port: &port, Protocol: &tcp}},
	}
	for k, b := range s.backends {
		node := nodeName(b.node)
		e.Endpoints = append(e.Endpoints, discoveryv1.Endpoint{Addresses: []string{b.ip.String()}, NodeName: &node,
			Conditions: discoveryv1.EndpointConditions{Ready: &yes, Serving: &yes, Terminating: &no},
			TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: s.namespace, Name: fmt.Sprintf("%s-%d", s.name, k)}})
	}
	return e
}
