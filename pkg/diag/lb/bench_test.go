package lb_test

import (
	"fmt"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// large is 10 000 Services with 10 endpoints each; every tenth is a NodePort,
// every tenth prefers its zone, every tenth has a Local policy.
func large() lb.Inputs {
	var in lb.Inputs
	local := corev1.ServiceInternalTrafficPolicyLocal
	for i := range 10_000 {
		s := corev1.Service{}
		s.Namespace, s.Name = "shop", fmt.Sprintf("service-%d", i)
		s.Spec.ClusterIPs = []string{netip.AddrFrom4([4]byte{10, 96, byte(i >> 8), byte(i)}).String()}
		s.Spec.Ports = []corev1.ServicePort{{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP}}
		switch i % 10 {
		case 0:
			s.Spec.Type, s.Spec.Ports[0].NodePort = corev1.ServiceTypeNodePort, int32(20000+i)
		case 1:
			s.Annotations = map[string]string{corev1.AnnotationTopologyMode: "Auto"}
		case 2:
			s.Spec.InternalTrafficPolicy = &local
		}
		in.Services = append(in.Services, s)
		name, port, tcp := "http", int32(8080), corev1.ProtocolTCP
		e := discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: &name, Port: &port, Protocol: &tcp}}}
		e.Namespace, e.Labels = s.Namespace, map[string]string{discoveryv1.LabelServiceName: s.Name}
		for k := range 10 {
			node := fmt.Sprintf("n%d", k)
			e.Endpoints = append(e.Endpoints, discoveryv1.Endpoint{
				Addresses: []string{netip.AddrFrom4([4]byte{100, byte(64 + k), byte(i >> 8), byte(i)}).String()}, NodeName: &node,
				Hints: &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: []string{"zone-a", "zone-b"}[k%2]}}},
			})
		}
		in.Slices = append(in.Slices, e)
	}
	return in
}

// asKernel are the rows, slots and states of a map that holds the table, in
// the order of the decoders.
func asKernel(t lb.Table) ([]lb.MapRow, []lb.SlotRow, *lb.Dump) {
	var rows []lb.MapRow
	var slots []lb.SlotRow
	dump := &lb.Dump{}
	ids := map[lb.Address]int{}
	for i, r := range t.Rows {
		rows = append(rows, lb.MapRow{Frontend: r.Address, Master: true, RevNAT: i + 1, Flags: []string{r.Type}})
		slots = append(slots, lb.SlotRow{Frontend: r.Address, Count: len(r.Entries), RevNAT: i + 1})
		for k, e := range r.Entries {
			id, ok := ids[e.Address]
			if !ok {
				id = len(ids) + 1
				ids[e.Address] = id
				dump.Backends = append(dump.Backends, lb.MapBackend{ID: id, Address: e.Address, State: lb.Active})
			}
			rows = append(rows, lb.MapRow{Frontend: r.Address, Slot: k + 1, Backend: e.Address, RevNAT: i + 1})
			slots = append(slots, lb.SlotRow{Frontend: r.Address, Slot: k + 1, Value: id, RevNAT: i + 1})
		}
	}
	return rows, slots, dump
}

func BenchmarkLarge(b *testing.B) {
	in, n := large(), n1()
	index := lb.NewIndex(in)
	desired := index.Desired(n, recent)
	rows, slots, dump := asKernel(desired)
	kernel := lb.FromKernel(rows, slots, dump, nil, n1(), recent)
	if ds := lb.Unexpected(lb.Diff(desired, kernel, lb.DiffOptions{OmitFlags: true})); len(ds) > 0 {
		b.Fatalf("%d differences, the first is %s", len(ds), ds[0])
	}
	for name, run := range map[string]func(){
		"NewIndex":   func() { lb.NewIndex(in) },
		"Desired":    func() { index.Desired(n, recent) },
		"FromKernel": func() { lb.FromKernel(rows, slots, dump, nil, n1(), recent) },
		"Diff":       func() { lb.Diff(desired, kernel, lb.DiffOptions{OmitFlags: true}) },
		"Sum":        func() { kernel.Sum() },
		"Intern":     func() { new(lb.Pool).Intern(kernel) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				run()
			}
		})
	}
}
