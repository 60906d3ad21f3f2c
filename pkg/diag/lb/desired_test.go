package lb_test

import (
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/yaml"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// show spells a table for comparison: a line for each row with its backends,
// optional things in parentheses, then what is absent.
func show(t lb.Table) []string {
	var lines []string
	for _, r := range t.Rows {
		words := []string{r.Address.String(), r.Type}
		if r.Optional != "" {
			words = append(words, "(optional)")
		}
		if r.Cause != "" {
			words = append(words, "["+string(r.Cause)+"]")
		}
		for _, e := range r.Entries {
			b := strings.TrimSuffix(e.Address.String(), "/TCP")
			if e.State != lb.Active && e.State != "" {
				b += "=" + string(e.State)
			}
			if e.Optional != "" {
				b = "(" + b + ")"
			}
			words = append(words, b)
		}
		lines = append(lines, strings.Join(words, " "))
	}
	for _, a := range t.Absent {
		lines = append(lines, strings.TrimSpace("absent: "+string(a.Cause)+" "+a.Type))
	}
	return lines
}

// objects reads Services, EndpointSlices, Endpoints and Pods, one document each.
func objects(t *testing.T, docs string) lb.Inputs {
	t.Helper()
	var in lb.Inputs
	for _, doc := range strings.Split(docs, "\n---\n") {
		var kind struct{ Kind string }
		read := func(v any) {
			if err := yaml.Unmarshal([]byte(doc), v); err != nil {
				t.Fatalf("%v in\n%s", err, doc)
			}
		}
		read(&kind)
		switch kind.Kind {
		case "EndpointSlice":
			var s discoveryv1.EndpointSlice
			read(&s)
			in.Slices = append(in.Slices, s)
		case "Endpoints":
			var e corev1.Endpoints //nolint:staticcheck // the fallback is tested
			read(&e)
			in.Endpoints = append(in.Endpoints, e)
		case "Pod":
			var p corev1.Pod
			read(&p)
			in.Pods = append(in.Pods, p)
		default:
			var s corev1.Service
			read(&s)
			s.Namespace = "shop"
			if s.Name == "" {
				s.Name = "web"
			}
			in.Services = append(in.Services, s)
		}
	}
	return in
}

// slice is an EndpointSlice of shop/web with one endpoint per word, such as
// "10.1.0.1@n1", "10.1.0.2@n2:draining" or "10.1.0.3@n2:zone-b".
func slice(ports string, endpoints ...string) string {
	s := "kind: EndpointSlice\nmetadata: {namespace: shop, labels: {kubernetes.io/service-name: web}}\n"
	family := "IPv4"
	for _, e := range endpoints {
		if strings.Count(e, ":") > 1 {
			family = "IPv6"
		}
	}
	s += "addressType: " + family + "\nports: [" + ports + "]\nendpoints:"
	if len(endpoints) == 0 {
		return s + " []"
	}
	for _, e := range endpoints {
		ip, rest, _ := strings.Cut(e, "@")
		node, note, _ := strings.Cut(rest, ":")
		s += "\n- {addresses: [\"" + ip + "\"]"
		if node != "" {
			s += ", nodeName: " + node
		}
		switch {
		case note == "draining":
			s += ", conditions: {ready: false, serving: true, terminating: true}"
		case note == "gone":
			s += ", conditions: {ready: false, serving: false, terminating: true}"
		case note == "unready":
			s += ", conditions: {ready: false}"
		case note == "published":
			s += ", conditions: {ready: true, serving: false, terminating: true}"
		case strings.HasPrefix(note, "zone"):
			s += ", hints: {forZones: [{name: " + note + "}]}"
		}
		s += "}"
	}
	return s
}

const http = "{name: http, port: 8080, protocol: TCP}"

// n1 is in zone-a.
func n1() lb.NodeView {
	return lb.NodeView{
		Name: "n1", Zone: "zone-a", Labels: map[string]string{"rack": "one"}, Exact: true,
		Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")},
		NodePort:  lb.Yes, LoadBalancer: lb.Yes, ExternalIPs: lb.Yes, HostPort: lb.Yes, Topology: lb.Yes,
	}
}

func TestDesired(t *testing.T) {
	clusterIP := "spec: {clusterIPs: [10.96.0.1], ports: [{name: http, port: 80}]}"
	two := slice(http, "10.1.0.1@n1", "10.1.0.2@n2")
	withSpec := func(more string) string {
		return "spec: {clusterIPs: [10.96.0.1], ports: [{name: http, port: 80, nodePort: 30080}], " + more + "}"
	}
	annotated := func(a, more string) string { return "metadata: {annotations: {" + a + "}}\n" + withSpec(more) }
	for _, c := range []struct {
		name string
		docs []string
		node func(*lb.NodeView)
		can  func(*lb.Capabilities)
		want []string
	}{
		{name: "ClusterIP", docs: []string{clusterIP, two}, want: []string{"10.96.0.1:80/TCP ClusterIP 10.1.0.1:8080 10.1.0.2:8080"}},
		{
			name: "dual stack, TCP, UDP and SCTP",
			docs: []string{
				"spec: {clusterIPs: [10.96.0.1, 'fd00::1'], ports: [{name: a, port: 53, protocol: UDP}, {name: b, port: 53}, {name: c, port: 54, protocol: SCTP}]}",
				slice("{name: a, port: 53, protocol: UDP}, {name: b, port: 53}, {name: c, port: 54, protocol: SCTP}", "10.1.0.1@n1"),
				slice("{name: a, port: 53, protocol: UDP}, {name: b, port: 53}, {name: c, port: 54, protocol: SCTP}", "fd01::1@n1"),
			},
			want: []string{
				"10.96.0.1:53/TCP ClusterIP 10.1.0.1:53", "10.96.0.1:53/UDP ClusterIP 10.1.0.1:53/UDP", "10.96.0.1:54/SCTP ClusterIP 10.1.0.1:54/SCTP",
				"[fd00::1]:53/TCP ClusterIP [fd01::1]:53", "[fd00::1]:53/UDP ClusterIP [fd01::1]:53/UDP", "[fd00::1]:54/SCTP ClusterIP [fd01::1]:54/SCTP",
			},
		},
		{
			name: "NodePort in both families",
			docs: []string{
				"spec: {type: NodePort, ipFamilies: [IPv4, IPv6], clusterIPs: [10.96.0.1, 'fd00::1'], ports: [{name: http, port: 80, nodePort: 30080}]}",
				slice(http, "10.1.0.1@n1"), slice(http, "fd01::1@n1"),
			},
			want: []string{
				"0.0.0.0:30080/TCP NodePort 10.1.0.1:8080", "10.96.0.1:80/TCP ClusterIP 10.1.0.1:8080", "192.0.2.1:30080/TCP NodePort 10.1.0.1:8080",
				"[::]:30080/TCP NodePort [fd01::1]:8080", "[2001:db8::1]:30080/TCP NodePort [fd01::1]:8080", "[fd00::1]:80/TCP ClusterIP [fd01::1]:8080",
			},
		},
		{
			name: "other node addresses are optional",
			docs: []string{withSpec("type: NodePort"), slice(http, "10.1.0.1@n1")},
			node: func(n *lb.NodeView) { n.Others = append(n.Others, netip.MustParseAddr("192.0.2.9")) },
			want: []string{
				"0.0.0.0:30080/TCP NodePort 10.1.0.1:8080", "10.96.0.1:80/TCP ClusterIP 10.1.0.1:8080",
				"192.0.2.1:30080/TCP NodePort 10.1.0.1:8080", "192.0.2.9:30080/TCP NodePort (optional) 10.1.0.1:8080",
			},
		},
		{
			name: "LoadBalancer, externalTrafficPolicy Local, no local endpoint",
			docs: []string{
				withSpec("type: LoadBalancer, externalTrafficPolicy: Local, externalIPs: [203.0.113.8]") + "\nstatus: {loadBalancer: {ingress: [{ip: 203.0.113.9}]}}",
				slice(http, "10.1.0.2@n2"),
			},
			want: []string{
				"0.0.0.0:30080/TCP NodePort [none-local]", "0.0.0.0:30080/TCP/i NodePort 10.1.0.2:8080", "10.96.0.1:80/TCP ClusterIP 10.1.0.2:8080",
				"192.0.2.1:30080/TCP NodePort [none-local]", "192.0.2.1:30080/TCP/i NodePort 10.1.0.2:8080",
				"203.0.113.8:80/TCP ExternalIPs [none-local]", "203.0.113.8:80/TCP/i ExternalIPs (optional) 10.1.0.2:8080",
				"203.0.113.9:80/TCP LoadBalancer [none-local]", "203.0.113.9:80/TCP/i LoadBalancer 10.1.0.2:8080",
			},
		},
		{
			name: "both policies Local have one scope",
			docs: []string{withSpec("type: NodePort, externalTrafficPolicy: Local, internalTrafficPolicy: Local"), two},
			want: []string{"0.0.0.0:30080/TCP NodePort 10.1.0.1:8080", "10.96.0.1:80/TCP ClusterIP 10.1.0.1:8080", "192.0.2.1:30080/TCP NodePort 10.1.0.1:8080"},
		},
		{
			name: "internalTrafficPolicy Local",
			docs: []string{withSpec("type: NodePort, internalTrafficPolicy: Local"), slice(http, "10.1.0.2@n2")},
			want: []string{
				"0.0.0.0:30080/TCP NodePort 10.1.0.2:8080", "0.0.0.0:30080/TCP/i NodePort [none-local]", "10.96.0.1:80/TCP ClusterIP [none-local]",
				"192.0.2.1:30080/TCP NodePort 10.1.0.2:8080", "192.0.2.1:30080/TCP/i NodePort [none-local]",
			},
		},
		{
			name: "internalTrafficPolicy of a version without it",
			docs: []string{withSpec("internalTrafficPolicy: Local"), slice(http, "10.1.0.2@n2")},
			can:  func(c *lb.Capabilities) { c.InternalPolicy = lb.No },
			want: []string{"10.96.0.1:80/TCP ClusterIP 10.1.0.2:8080"},
		},
		{
			name: "an endpoint without node is local everywhere",
			docs: []string{withSpec("internalTrafficPolicy: Local"), slice(http, "198.51.100.1")},
			want: []string{"10.96.0.1:80/TCP ClusterIP 198.51.100.1:8080"},
		},
		{
			name: "terminating endpoints beside a ready one",
			docs: []string{clusterIP, slice(http, "10.1.0.1@n1", "10.1.0.2@n2:draining", "10.1.0.3@n2:gone", "10.1.0.4@n2:unready")},
			want: []string{"10.96.0.1:80/TCP ClusterIP 10.1.0.1:8080 (10.1.0.2:8080=terminating) (10.1.0.3:8080=terminating-not-serving) (10.1.0.4:8080=maintenance)"},
		},
		{
			name: "terminating endpoints alone",
			docs: []string{clusterIP, slice(http, "10.1.0.2@n2:draining", "10.1.0.3@n2:gone")},
			want: []string{"10.96.0.1:80/TCP ClusterIP [all-draining] 10.1.0.2:8080=terminating (10.1.0.3:8080=terminating-not-serving)"},
		},
		{
			name: "terminating endpoints of a version that drops them",
			docs: []string{clusterIP, slice(http, "10.1.0.2@n2:draining")},
			can:  func(c *lb.Capabilities) { c.Terminating = lb.No },
			want: []string{"10.96.0.1:80/TCP ClusterIP [all-draining] (10.1.0.2:8080=terminating)"},
		},
		{
			name: "none ready",
			docs: []string{clusterIP, slice(http, "10.1.0.3@n2:gone", "10.1.0.4@n2:unready")},
			want: []string{"10.96.0.1:80/TCP ClusterIP [none-ready] (10.1.0.3:8080=terminating-not-serving) (10.1.0.4:8080=maintenance)"},
		},
		{
			name: "publishNotReadyAddresses says ready",
			docs: []string{clusterIP, slice(http, "10.1.0.3@n2:published")},
			want: []string{"10.96.0.1:80/TCP ClusterIP 10.1.0.3:8080"},
		},
		{
			name: "one address in several slices with several ports",
			docs: []string{
				"spec: {clusterIPs: [10.96.0.1], ports: [{name: a, port: 80}, {name: b, port: 81}]}",
				slice("{name: b, port: 9090}", "10.1.0.1@n1"), slice("{name: a, port: 8090}", "10.1.0.1@n1"), slice("{name: a, port: 8090}", "10.1.0.1@n1:gone"),
			},
			want: []string{"10.96.0.1:80/TCP ClusterIP 10.1.0.1:8090", "10.96.0.1:81/TCP ClusterIP 10.1.0.1:9090"},
		},
		{
			name: "unnamed ports join",
			docs: []string{"spec: {clusterIPs: [10.96.0.1], ports: [{port: 80}]}", slice("{name: '', port: 8080}", "10.1.0.1@n1")},
			want: []string{"10.96.0.1:80/TCP ClusterIP 10.1.0.1:8080"},
		},
		{
			name: "port names do not join",
			docs: []string{clusterIP, slice("{name: web, port: 8080}", "10.1.0.1@n1")},
			want: []string{"10.96.0.1:80/TCP ClusterIP [port-names]"},
		},
		{
			name: "an unnamed slice port joins in some versions",
			docs: []string{clusterIP, slice("{port: 8080}", "10.1.0.1@n1")},
			want: []string{"10.96.0.1:80/TCP ClusterIP [port-names] (10.1.0.1:8080)"},
		},
		{
			name: "a protocol that no slice has",
			docs: []string{clusterIP, slice("{name: http, port: 8080, protocol: UDP}", "10.1.0.1@n1")},
			want: []string{"10.96.0.1:80/TCP ClusterIP [port-names]"},
		},
		{
			name: "a family without endpoints",
			docs: []string{"spec: {clusterIPs: [10.96.0.1, 'fd00::1'], ports: [{name: http, port: 80}]}", slice(http, "10.1.0.1@n1")},
			want: []string{"10.96.0.1:80/TCP ClusterIP 10.1.0.1:8080", "[fd00::1]:80/TCP ClusterIP [family-missing]"},
		},
		{name: "no slice", docs: []string{clusterIP}, want: []string{"10.96.0.1:80/TCP ClusterIP [no-slice]"}},
		{name: "an empty slice", docs: []string{clusterIP, slice("")}, want: []string{"10.96.0.1:80/TCP ClusterIP [no-endpoints]"}},
		{
			name: "the placeholder of a gateway",
			docs: []string{clusterIP, slice("{name: http, port: 9999}", "192.192.192.192")},
			want: []string{"10.96.0.1:80/TCP ClusterIP [placeholder]"},
		},
		{
			name: "zone hints",
			docs: []string{annotated("service.kubernetes.io/topology-mode: Auto", "type: ClusterIP"), slice(http, "10.1.0.1@n1:zone-a", "10.1.0.2@n2:zone-b")},
			want: []string{"10.96.0.1:80/TCP ClusterIP [topology] 10.1.0.1:8080 (10.1.0.2:8080)"},
		},
		{
			name: "zone hints for other zones only: all are used",
			docs: []string{annotated("service.kubernetes.io/topology-mode: Auto", "type: ClusterIP"), slice(http, "10.1.0.1@n1:zone-c", "10.1.0.2@n2:zone-b")},
			want: []string{"10.96.0.1:80/TCP ClusterIP [topology-unmet] 10.1.0.1:8080 10.1.0.2:8080"},
		},
		{
			name: "an endpoint without hint: all are used",
			docs: []string{withSpec("trafficDistribution: PreferClose"), slice(http, "10.1.0.1@n1:zone-a", "10.1.0.2@n2")},
			want: []string{"10.96.0.1:80/TCP ClusterIP [topology-unmet] 10.1.0.1:8080 10.1.0.2:8080"},
		},
		{
			name: "zone hints where the agent ignores them",
			docs: []string{withSpec("trafficDistribution: PreferSameZone"), slice(http, "10.1.0.1@n1:zone-a", "10.1.0.2@n2:zone-b")},
			node: func(n *lb.NodeView) { n.Topology = lb.No },
			want: []string{"10.96.0.1:80/TCP ClusterIP 10.1.0.1:8080 10.1.0.2:8080"},
		},
		{
			name: "hints that the Service does not ask for",
			docs: []string{clusterIP, slice(http, "10.1.0.1@n1:zone-a", "10.1.0.2@n2:zone-b")},
			want: []string{"10.96.0.1:80/TCP ClusterIP 10.1.0.1:8080 10.1.0.2:8080"},
		},
		{
			name: "PreferSameNode",
			docs: []string{withSpec("trafficDistribution: PreferSameNode"), two},
			want: []string{"10.96.0.1:80/TCP ClusterIP [topology] 10.1.0.1:8080 (10.1.0.2:8080)"},
		},
		{name: "headless", docs: []string{"spec: {clusterIP: None, ports: [{name: http, port: 80}]}", two}, want: []string{"absent: headless"}},
		{name: "ExternalName", docs: []string{"spec: {type: ExternalName, externalName: example.invalid}"}, want: []string{"absent: external-name"}},
		{
			name: "service-proxy-name",
			docs: []string{"metadata: {labels: {service.kubernetes.io/service-proxy-name: other}}\n" + clusterIP, two},
			want: []string{"absent: other-proxy"},
		},
		{
			name: "service-proxy-name of this agent",
			docs: []string{"metadata: {labels: {service.kubernetes.io/service-proxy-name: other}}\n" + clusterIP, two, "metadata: {name: plain}\nspec: {clusterIPs: [10.96.0.2], ports: [{port: 80}]}"},
			node: func(n *lb.NodeView) { n.ProxyName = "other" },
			want: []string{"10.96.0.1:80/TCP ClusterIP 10.1.0.1:8080 10.1.0.2:8080", "absent: other-proxy"},
		},
		{
			name: "service.cilium.io/type",
			docs: []string{annotated("service.cilium.io/type: LoadBalancer", "type: LoadBalancer") + "\nstatus: {loadBalancer: {ingress: [{ip: 203.0.113.9}]}}", two},
			want: []string{"203.0.113.9:80/TCP LoadBalancer 10.1.0.1:8080 10.1.0.2:8080", "absent: type-annotation ClusterIP", "absent: type-annotation NodePort"},
		},
		{
			name: "service.cilium.io/type where it is not known to be honoured",
			docs: []string{annotated("service.cilium.io/type: NodePort", "type: NodePort"), two},
			can:  func(c *lb.Capabilities) { c.Exposure = lb.Unknown },
			want: []string{
				"0.0.0.0:30080/TCP NodePort 10.1.0.1:8080 10.1.0.2:8080", "10.96.0.1:80/TCP ClusterIP (optional) 10.1.0.1:8080 10.1.0.2:8080",
				"192.0.2.1:30080/TCP NodePort 10.1.0.1:8080 10.1.0.2:8080",
			},
		},
		{
			name: "service.cilium.io/node-selector that fits",
			docs: []string{annotated("service.cilium.io/node-selector: rack in (one)", "type: ClusterIP"), slice(http, "10.1.0.1@n1")},
			want: []string{"10.96.0.1:80/TCP ClusterIP 10.1.0.1:8080"},
		},
		{
			name: "service.cilium.io/node-selector that does not fit",
			docs: []string{annotated("service.cilium.io/node-selector: rack=two", "type: ClusterIP"), two},
			want: []string{"absent: node-annotation"},
		},
		{
			name: "service.cilium.io/node",
			docs: []string{annotated("service.cilium.io/node: edge", "type: ClusterIP"), two},
			want: []string{"absent: node-annotation"},
		},
		{
			name: "loadBalancerClass without an address",
			docs: []string{"spec: {type: LoadBalancer, allocateLoadBalancerNodePorts: false, loadBalancerClass: example.com/x, clusterIPs: [10.96.0.1], ports: [{name: http, port: 80}]}", slice(http, "10.1.0.1@n1")},
			want: []string{"10.96.0.1:80/TCP ClusterIP 10.1.0.1:8080", "absent: no-ingress LoadBalancer"},
		},
		{
			name: "ingress in mode Proxy",
			docs: []string{"spec: {type: LoadBalancer, clusterIPs: [10.96.0.1], ports: [{name: http, port: 80}]}\nstatus: {loadBalancer: {ingress: [{ip: 203.0.113.9, ipMode: Proxy}]}}", slice(http, "10.1.0.1@n1")},
			want: []string{"10.96.0.1:80/TCP ClusterIP 10.1.0.1:8080", "203.0.113.9:80/TCP LoadBalancer (optional) 10.1.0.1:8080"},
		},
		{
			name: "features off",
			docs: []string{withSpec("type: LoadBalancer, externalIPs: [203.0.113.8]") + "\nstatus: {loadBalancer: {ingress: [{ip: 203.0.113.9}]}}", slice(http, "10.1.0.1@n1")},
			node: func(n *lb.NodeView) { n.NodePort, n.LoadBalancer, n.ExternalIPs = lb.No, lb.No, lb.Unknown },
			want: []string{
				"10.96.0.1:80/TCP ClusterIP 10.1.0.1:8080", "203.0.113.8:80/TCP ExternalIPs (optional) 10.1.0.1:8080",
				"203.0.113.9:80/TCP LoadBalancer (optional) 10.1.0.1:8080", "absent: feature-off NodePort",
			},
		},
		{
			name: "a family off",
			docs: []string{"spec: {clusterIPs: [10.96.0.1, 'fd00::1'], ports: [{name: http, port: 80}]}", slice(http, "10.1.0.1@n1"), slice(http, "fd01::1@n1")},
			node: func(n *lb.NodeView) { n.IPv6 = lb.No },
			want: []string{"10.96.0.1:80/TCP ClusterIP 10.1.0.1:8080", "absent: family-off ClusterIP"},
		},
		{
			name: "an address that is none",
			docs: []string{"spec: {clusterIPs: [ten], externalIPs: [eleven], ports: [{name: http, port: 80}]}"},
			want: []string{"absent: unreadable ClusterIP", "absent: unreadable ExternalIPs"},
		},
		{
			name: "two Services, one external address",
			docs: []string{
				"metadata: {name: web}\nspec: {externalIPs: [203.0.113.8], ports: [{name: http, port: 80}]}", slice(http, "10.1.0.1@n1"),
				"metadata: {name: other}\nspec: {externalIPs: [203.0.113.8], ports: [{name: http, port: 80}]}",
			},
			want: []string{"203.0.113.8:80/TCP ExternalIPs [contended] (10.1.0.1:8080)"},
		},
		{
			name: "one Service, one address twice",
			docs: []string{
				"spec: {type: LoadBalancer, externalIPs: [203.0.113.8], ports: [{name: http, port: 80}]}\nstatus: {loadBalancer: {ingress: [{ip: 203.0.113.8}]}}",
				slice(http, "10.1.0.1@n1"),
			},
			want: []string{"203.0.113.8:80/TCP LoadBalancer 10.1.0.1:8080"},
		},
		{
			name: "host ports",
			docs: []string{`kind: Pod
metadata: {namespace: shop, name: p}
spec: {nodeName: n1, containers: [{ports: [{containerPort: 80, hostPort: 8000}, {containerPort: 81, hostPort: 8001, hostIP: 192.0.2.7, protocol: UDP}, {containerPort: 80, hostPort: 31000}, {containerPort: 82, hostPort: 8002, hostIP: 127.0.0.1}]}]}
status: {phase: Running, podIPs: [{ip: 10.1.0.5}, {ip: 'fd01::5'}]}`, `kind: Pod
metadata: {namespace: shop, name: elsewhere}
spec: {nodeName: n2, containers: [{ports: [{containerPort: 80, hostPort: 9000}]}]}
status: {phase: Running, podIPs: [{ip: 10.1.0.6}]}`, `kind: Pod
metadata: {namespace: shop, name: finished}
spec: {nodeName: n1, containers: [{ports: [{containerPort: 80, hostPort: 9001}]}]}
status: {phase: Succeeded, podIPs: [{ip: 10.1.0.7}]}`, `kind: Pod
metadata: {namespace: shop, name: host}
spec: {nodeName: n1, hostNetwork: true, containers: [{ports: [{containerPort: 9002, hostPort: 9002}]}]}
status: {phase: Running, podIPs: [{ip: 192.0.2.1}]}`},
			want: []string{
				"0.0.0.0:8000/TCP HostPort 10.1.0.5:80", "0.0.0.0:8002/TCP HostPort (optional) 10.1.0.5:82",
				"192.0.2.1:8000/TCP HostPort 10.1.0.5:80", "192.0.2.1:8002/TCP HostPort (optional) 10.1.0.5:82", "192.0.2.7:8001/UDP HostPort 10.1.0.5:81/UDP",
				"[::]:8000/TCP HostPort [fd01::5]:80", "[2001:db8::1]:8000/TCP HostPort [fd01::5]:80",
				"absent: port-reserved HostPort",
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, can := n1(), recent
			if c.node != nil {
				c.node(&n)
			}
			if c.can != nil {
				c.can(&can)
			}
			table := lb.NewIndex(objects(t, strings.Join(c.docs, "\n---\n"))).Desired(n, can)
			if diff := cmp.Diff(c.want, show(table)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			for _, r := range table.Rows {
				if !r.Required() && r.Cause == "" || (r.Cause == "") != (r.Reason == "") {
					t.Errorf("row %s: cause %q, reason %q", r.Address, r.Cause, r.Reason)
				}
			}
		})
	}
}

func TestDesiredFlags(t *testing.T) {
	docs := `spec:
  type: LoadBalancer
  clusterIPs: [10.96.0.1]
  sessionAffinity: ClientIP
  sessionAffinityConfig: {clientIP: {timeoutSeconds: 60}}
  externalTrafficPolicy: Local
  loadBalancerSourceRanges: [198.51.100.0/24, "2001:db8::/32", " 192.0.2.0/24 "]
  ports: [{name: http, port: 80, nodePort: 30080}]
status: {loadBalancer: {ingress: [{ip: 203.0.113.9}]}}
---
metadata: {name: plain}
spec: {clusterIPs: [10.96.0.2], ports: [{port: 80}]}`
	table := lb.NewIndex(objects(t, docs)).Desired(n1(), recent)
	ranges := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("198.51.100.0/24")}
	for address, want := range map[string]lb.Flags{
		"203.0.113.9:80/TCP":   {Affinity: lb.Yes, AffinityTimeout: 60, External: lb.Local, Internal: lb.Cluster, SourceCheck: lb.Yes, RangesTold: true, Ranges: ranges},
		"203.0.113.9:80/TCP/i": {Affinity: lb.Yes, AffinityTimeout: 60, External: lb.Local, Internal: lb.Cluster, SourceCheck: lb.Yes, RangesTold: true, Ranges: ranges},
		// Whether the ranges hold for NodePorts is a setting of the agent.
		"192.0.2.1:30080/TCP": {Affinity: lb.Yes, AffinityTimeout: 60, External: lb.Local, Internal: lb.Cluster},
		"10.96.0.1:80/TCP":    {Affinity: lb.Yes, AffinityTimeout: 60, Internal: lb.Cluster},
		"10.96.0.2:80/TCP":    {Affinity: lb.No, Internal: lb.Cluster, SourceCheck: lb.No},
	} {
		a, err := lb.ParseAddress(address)
		if err != nil {
			t.Fatal(err)
		}
		r, ok := table.Find(a)
		if diff := cmp.Diff(want, r.Flags, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); !ok || diff != "" {
			t.Errorf("%s, found %v (-want +got):\n%s", address, ok, diff)
		}
	}
}

func TestEndpointsFallback(t *testing.T) {
	docs := `spec: {clusterIPs: [10.96.0.1, "fd00::1"], ports: [{name: http, port: 80}]}
---
kind: Endpoints
metadata: {namespace: shop, name: web}
subsets:
- addresses: [{ip: 10.1.0.1, nodeName: n1}, {ip: "fd01::1"}]
  notReadyAddresses: [{ip: 10.1.0.2}]
  ports: [{name: http, port: 8080}]`
	in := objects(t, docs)
	want := []string{"10.96.0.1:80/TCP ClusterIP [no-slice]", "[fd00::1]:80/TCP ClusterIP [no-slice]"}
	table := lb.NewIndex(in).Desired(n1(), recent)
	if diff := cmp.Diff(want, show(table)); diff != "" {
		t.Errorf("beside slices (-want +got):\n%s", diff)
	}
	if r := table.Rows[0].Reason; !strings.Contains(r, "2 addresses") {
		t.Errorf("reason %q does not name the addresses", r)
	}
	in.UseEndpoints = true
	want = []string{"10.96.0.1:80/TCP ClusterIP 10.1.0.1:8080 (10.1.0.2:8080=maintenance)", "[fd00::1]:80/TCP ClusterIP [fd01::1]:8080"}
	if diff := cmp.Diff(want, show(lb.NewIndex(in).Desired(n1(), recent))); diff != "" {
		t.Errorf("in place of slices (-want +got):\n%s", diff)
	}
}

func TestWithDevices(t *testing.T) {
	node := corev1.Node{}
	if err := yaml.Unmarshal([]byte(`metadata: {name: n1, labels: {topology.kubernetes.io/zone: zone-a}}
status: {addresses: [{type: InternalIP, address: 192.0.2.1}, {type: ExternalIP, address: 198.51.100.1}, {type: InternalIP, address: "2001:db8::1"}, {type: Hostname, address: n1}]}`), &node); err != nil {
		t.Fatal(err)
	}
	list := func(words ...string) []netip.Addr {
		var as []netip.Addr
		for _, w := range words {
			as = append(as, netip.MustParseAddr(w))
		}
		return as
	}
	same := cmp.Comparer(func(a, b netip.Addr) bool { return a == b })
	v := lb.View(&node)
	if diff := cmp.Diff([][]netip.Addr{list("192.0.2.1", "2001:db8::1"), list("198.51.100.1")}, [][]netip.Addr{v.Addresses, v.Others}, same); diff != "" || v.Exact || v.Zone != "zone-a" {
		t.Errorf("%+v: %s", v, diff)
	}
	v = v.WithDevices(list("192.0.2.1", "192.0.2.2", "fe80::1"), list("203.0.113.1", "127.0.0.1"))
	if diff := cmp.Diff([][]netip.Addr{list("192.0.2.1", "203.0.113.1"), list("192.0.2.2")}, [][]netip.Addr{v.Addresses, v.Others}, same); diff != "" || !v.Exact {
		t.Errorf("with devices %+v: %s", v, diff)
	}
}
