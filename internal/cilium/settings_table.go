package cilium

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
)

const kprKey = "kube-proxy-replacement"

// Settings is the table of settings, those that decide most first. Versions are
// those of the agents' flags and the chart from 1.14 to 1.20; the names under
// Runtime are the fields of the agents' configuration, which lost those of load
// balancing in 1.18.
func Settings() []Setting {
	return slices.Concat(kprSettings(), lbSettings(), masqueradeSettings(), routingSettings(), otherSettings(), removedSettings())
}

func kprSettings() []Setting {
	return []Setting{
		{Key: kprKey, Helm: "kubeProxyReplacement", Values: []string{"true", "false", "strict", "partial", "probe", "disabled"}, Default: "false", Runtime: []string{"KubeProxyReplacement"}, status: func(s *agent.Status) string {
			return strings.ToLower(string(s.Mode))
		}},
		{Key: "kube-proxy-replacement-healthz-bind-address", Helm: "kubeProxyReplacementHealthzBindAddr", Kind: Text, Runtime: []string{"KubeProxyReplacementHealthzBindAddr"}},
		{Key: "bpf-lb-sock", Helm: "socketLB.enabled", Since: "1.12", Default: "false", Forced: "true", Runtime: []string{"EnableSocketLB"}, status: onOff(func(s *agent.Status) agent.Switch { return s.SocketLB })},
		{Key: "bpf-lb-sock-hostns-only", Helm: "socketLB.hostNamespaceOnly", Default: "false", Runtime: []string{"UnsafeDaemonConfigOption.BPFSocketLBHostnsOnly", "BPFSocketLBHostnsOnly"}, status: onOff(func(s *agent.Status) agent.Switch { return s.SocketLBHostOnly })},
		{Key: "trace-sock", Helm: "socketLB.tracing", Since: "1.13", Default: "true", Runtime: []string{"UnsafeDaemonConfigOption.EnableSocketLBTracing", "EnableSocketLBTracing"}, status: onOff(func(s *agent.Status) agent.Switch { return s.SocketLBTracing })},
		{Key: "bpf-lb-sock-terminate-pod-connections", Helm: "socketLB.terminatePodConnections", Since: "1.16", Runtime: []string{"UnsafeDaemonConfigOption.EnableSocketLBPodConnectionTermination"}},
		{Helm: "k8sServiceHost", Kind: Text},
		{Helm: "k8sServicePort", Kind: Number},
		{Helm: "k8sServiceHostRef.name", Kind: Text, Since: "1.18"},
		{Helm: "k8sServiceHostRef.key", Kind: Text, Since: "1.18"},
		{Key: "k8s-api-server-urls", Helm: "k8s.apiServerURLs", Kind: List, Since: "1.18"},
	}
}

func lbSettings() []Setting {
	return []Setting{
		{Key: "bpf-lb-mode", Helm: "loadBalancer.mode", Kind: Word, Values: []string{"snat", "dsr", "hybrid"}, Default: "snat", Runtime: []string{"NodePortMode"}, status: func(s *agent.Status) string {
			return strings.ToLower(s.LBMode)
		}},
		{Key: "bpf-lb-algorithm", Helm: "loadBalancer.algorithm", Kind: Word, Values: []string{"random", "maglev"}, Default: "random", Runtime: []string{"NodePortAlg"}, status: func(s *agent.Status) string {
			return strings.ToLower(s.Algorithm)
		}},
		{Key: "bpf-lb-acceleration", Helm: "loadBalancer.acceleration", Kind: Word, Values: []string{"disabled", "native", "best-effort", "testing-only"}, Default: "disabled", Runtime: []string{"NodePortAcceleration"}, status: func(s *agent.Status) string {
			return synonym("bpf-lb-acceleration", strings.ToLower(s.XDP))
		}},
		{Key: "bpf-lb-dsr-dispatch", Helm: "loadBalancer.dsrDispatch", Kind: Word, Values: []string{"opt", "ipip", "geneve"}, Default: "opt", Runtime: []string{"LoadBalancerDSRDispatch"}, status: func(s *agent.Status) string {
			return synonym("bpf-lb-dsr-dispatch", strings.ToLower(s.DSRDispatch))
		}},
		{Key: "bpf-lb-map-max", Helm: "bpf.lbMapMax", Kind: Number, Default: "65536", Runtime: []string{"LBMapEntries"}},
		{Key: "bpf-lb-external-clusterip", Helm: "bpf.lbExternalClusterIP", Default: "false", Runtime: []string{"ExternalClusterIP"}},
		{Key: "bpf-lb-source-range-all-types", Helm: "bpf.lbSourceRangeAllTypes", Since: "1.17", Default: "false"},
		{Key: "bpf-lb-algorithm-annotation", Helm: "bpf.lbAlgorithmAnnotation", Since: "1.17", Default: "false"},
		{Key: "bpf-lb-mode-annotation", Helm: "bpf.lbModeAnnotation", Since: "1.17", Default: "false"},
		{Key: "bpf-lb-proto-diff", Since: "1.17", Gone: "1.18", Kind: Bool},
		{Key: "bpf-lb-maglev-table-size", Helm: "maglev.tableSize", Kind: Number, Runtime: []string{"MaglevTableSize"}, status: func(s *agent.Status) string {
			if s.MaglevSize == 0 {
				return ""
			}
			return strconv.Itoa(s.MaglevSize)
		}},
		{Key: "node-port-range", Helm: "nodePort.range", Kind: Range, Default: "30000-32767", Auto: true, status: func(s *agent.Status) string {
			if s.NodePortMax == 0 {
				return ""
			}
			return fmt.Sprintf("%d-%d", s.NodePortMin, s.NodePortMax)
		}},
		{Key: "nodeport-addresses", Helm: "nodePort.addresses", Kind: List, Since: "1.16", Auto: true},
		{Key: "node-port-bind-protection", Helm: "nodePort.bindProtection", Default: "true", Runtime: []string{"NodePortBindProtection"}},
		{Key: "enable-auto-protect-node-port-range", Helm: "nodePort.autoProtectPortRange", Default: "true", Runtime: []string{"EnableAutoProtectNodePortRange"}},
		{Key: "enable-health-check-nodeport", Helm: "nodePort.enableHealthCheck", Default: "true", Runtime: []string{"EnableHealthCheckNodePort"}},
		{Key: "enable-health-check-loadbalancer-ip", Helm: "nodePort.enableHealthCheckLoadBalancerIP", Since: "1.16", Default: "false", Runtime: []string{"EnableHealthCheckLoadBalancerIP"}},
		{Key: "enable-service-topology", Helm: "loadBalancer.serviceTopology", Default: "false", Runtime: []string{"EnableServiceTopology"}},
		{Key: "service-no-backend-response", Helm: "serviceNoBackendResponse", Kind: Word, Values: []string{"reject", "drop"}, Since: "1.16", Default: "reject", Runtime: []string{"ServiceNoBackendResponse"}},
		{Key: "enable-local-redirect-policy", Helm: "localRedirectPolicies.enabled", Default: "false", Runtime: []string{"EnableLocalRedirectPolicy"}},
		{Key: "enable-l2-announcements", Helm: "l2announcements.enabled", Default: "false", Runtime: []string{"EnableL2Announcements"}},
		{Key: "enable-bgp-control-plane", Helm: "bgpControlPlane.enabled", Default: "false", Runtime: []string{"EnableBGPControlPlane"}},
		{Key: "default-lb-service-ipam", Helm: "defaultLBServiceIPAM", Kind: Word, Since: "1.17", Values: []string{"lbipam", "nodeipam", "none"}, Default: "lbipam"},
		{Key: "enable-nat46x64-gateway", Helm: "nat46x64Gateway.enabled", Default: "false", Runtime: []string{"EnableNat46X64Gateway"}},
		{Key: "enable-sctp", Helm: "sctp.enabled", Default: "false", Runtime: []string{"EnableSCTP"}},
	}
}

func masqueradeSettings() []Setting {
	return []Setting{
		{Key: "enable-bpf-masquerade", Helm: "bpf.masquerade", Default: "false", Runtime: []string{"EnableBPFMasquerade"}, status: func(s *agent.Status) string {
			switch strings.ToLower(s.Masquerade.Mode) {
			case "bpf":
				return "true"
			case "iptables":
				return "false"
			}
			return ""
		}},
		{Key: "enable-ipv4-masquerade", Helm: "enableIPv4Masquerade", Default: "true", Runtime: []string{"EnableIPv4Masquerade"}, status: onOff(func(s *agent.Status) agent.Switch { return s.Masquerade.IPv4 })},
		{Key: "enable-ipv6-masquerade", Helm: "enableIPv6Masquerade", Default: "true", Runtime: []string{"EnableIPv6Masquerade"}, status: onOff(func(s *agent.Status) agent.Switch { return s.Masquerade.IPv6 })},
		{Key: "enable-ip-masq-agent", Helm: "ipMasqAgent.enabled", Default: "false", Runtime: []string{"EnableIPMasqAgent"}, status: onOff(func(s *agent.Status) agent.Switch { return s.Masquerade.Agent })},
		{Key: "enable-masquerade-to-route-source", Helm: "enableMasqueradeRouteSource", Default: "false", Runtime: []string{"EnableMasqueradeRouteSource"}},
		{Key: "egress-masquerade-interfaces", Helm: "egressMasqueradeInterfaces", Kind: List, Runtime: []string{"MasqueradeInterfaces", "EgressMasqueradeInterfaces"}},
	}
}

func routingSettings() []Setting {
	return []Setting{
		{Key: "enable-host-legacy-routing", Helm: "bpf.hostLegacyRouting", Default: "false", Runtime: []string{"UnsafeDaemonConfigOption.EnableHostLegacyRouting", "EnableHostLegacyRouting"}, status: func(s *agent.Status) string {
			switch s.HostRouting {
			case "Legacy":
				return "true"
			case "BPF":
				return "false"
			}
			return ""
		}},
		{Key: "routing-mode", Helm: "routingMode", Kind: Word, Values: []string{"tunnel", "native"}, Since: "1.14", Default: "tunnel", Runtime: []string{"RoutingMode"}, status: func(s *agent.Status) string {
			return strings.ToLower(s.NetworkRouting)
		}},
		{Key: "tunnel-protocol", Helm: "tunnelProtocol", Kind: Word, Values: []string{"vxlan", "geneve"}, Since: "1.14", Default: "vxlan", Auto: true, Runtime: []string{"TunnelProtocol"}, status: func(s *agent.Status) string {
			return strings.ToLower(s.TunnelProtocol)
		}},
		{Key: "underlay-protocol", Helm: "underlayProtocol", Kind: Word, Values: []string{"ipv4", "ipv6", "auto"}, Since: "1.18", Auto: true},
		{Key: "auto-direct-node-routes", Helm: "autoDirectNodeRoutes", Default: "false", Runtime: []string{"EnableAutoDirectRouting"}},
		{Key: "direct-routing-skip-unreachable", Helm: "directRoutingSkipUnreachable", Since: "1.15", Default: "false", Runtime: []string{"DirectRoutingSkipUnreachable"}},
		{Key: "ipv4-native-routing-cidr", Helm: "ipv4NativeRoutingCIDR", Kind: Text},
		{Key: "ipv6-native-routing-cidr", Helm: "ipv6NativeRoutingCIDR", Kind: Text},
		{Key: "devices", Helm: "devices", Kind: Globs, Auto: true, Runtime: []string{"Devices"}, status: func(s *agent.Status) string {
			names := make([]string, len(s.Devices))
			for i, d := range s.Devices {
				names[i] = d.Name
			}
			return strings.Join(names, " ")
		}},
		{Key: "direct-routing-device", Helm: "nodePort.directRoutingDevice", Kind: Globs, Auto: true, Runtime: []string{"DirectRoutingDevice"}, status: func(s *agent.Status) string { return s.DirectRouting }},
		{Key: "force-device-detection", Helm: "forceDeviceDetection", Since: "1.16", Default: "false", Runtime: []string{"ForceDeviceRequired"}},
		{Key: "enable-l2-neigh-discovery", Helm: "l2NeighDiscovery.enabled"},
		{Key: "enable-endpoint-routes", Helm: "endpointRoutes.enabled", Default: "false", Runtime: []string{"EnableEndpointRoutes"}},
	}
}

func otherSettings() []Setting {
	return []Setting{
		{Key: "enable-ipv4", Helm: "ipv4.enabled", Default: "true", Runtime: []string{"EnableIPv4"}},
		{Key: "enable-ipv6", Helm: "ipv6.enabled", Runtime: []string{"EnableIPv6"}},
		{Key: "install-iptables-rules", Helm: "installIptablesRules", Default: "true", Runtime: []string{"InstallIptRules"}},
		{Key: "install-no-conntrack-iptables-rules", Helm: "installNoConntrackIptablesRules", Default: "false", Runtime: []string{"InstallNoConntrackIptRules"}},
		{Key: "enable-l7-proxy", Helm: "l7Proxy", Default: "true", Runtime: []string{"EnableL7Proxy"}},
		{Key: "enable-envoy-config", Helm: "envoyConfig.enabled", Default: "false", Runtime: []string{"EnableEnvoyConfig"}},
		{Key: "enable-ipsec", Default: "false", Runtime: []string{"EnableIPSec"}},
		{Key: "enable-wireguard", Default: "false", Runtime: []string{"EnableWireguard"}},
		{Key: "enable-host-firewall", Helm: "hostFirewall.enabled", Default: "false", Runtime: []string{"EnableHostFirewall"}},
		{Key: "enable-tcx", Helm: "bpf.enableTCX", Since: "1.16", Default: "true", Runtime: []string{"EnableTCX"}},
		{Key: "datapath-mode", Helm: "bpf.datapathMode", Kind: Word, Values: []string{"veth", "netkit", "netkit-l2", "auto"}, Default: "veth", Auto: true, Runtime: []string{"DatapathMode"}, status: func(s *agent.Status) string {
			return strings.ToLower(s.DatapathMode)
		}},
	}
}

// removedSettings are keys that newer agents do not know. They are accepted in
// the ConfigMap and do nothing.
func removedSettings() []Setting {
	always := "nothing: it is on wherever kube-proxy is replaced"
	return []Setting{
		{Key: "enable-node-port", Helm: "nodePort.enabled", Gone: "1.19", Instead: always, Forced: "true", Runtime: []string{"EnableNodePort"}, status: onOff(func(s *agent.Status) agent.Switch { return s.NodePort })},
		{Key: "enable-host-port", Helm: "hostPort.enabled", Gone: "1.19", Instead: always, Forced: "true", Runtime: []string{"EnableHostPort"}, status: onOff(func(s *agent.Status) agent.Switch { return s.HostPort })},
		{Key: "enable-external-ips", Helm: "externalIPs.enabled", Gone: "1.19", Instead: always, Forced: "true", Runtime: []string{"EnableExternalIPs"}, status: onOff(func(s *agent.Status) agent.Switch { return s.ExternalIPs })},
		{Key: "enable-session-affinity", Helm: "sessionAffinity", Gone: "1.19", Instead: always, Forced: "true", Runtime: []string{"EnableSessionAffinity"}, status: onOff(func(s *agent.Status) agent.Switch { return s.Affinity })},
		{Key: "enable-svc-source-range-check", Helm: "svcSourceRangeCheck", Gone: "1.19", Instead: "nothing: it is always on", Runtime: []string{"EnableSVCSourceRangeCheck"}},
		{Key: "enable-host-reachable-services", Helm: "hostServices.enabled", Gone: "1.14", Instead: "socketLB.enabled", Runtime: []string{"EnableHostReachableServices"}},
		{Key: "tunnel", Helm: "tunnel", Kind: Word, Values: []string{"vxlan", "geneve", "disabled"}, Gone: "1.15", Instead: "routingMode and tunnelProtocol", Runtime: []string{"Tunnel"}},
		{Key: "node-port-mode", Helm: "nodePort.mode", Kind: Word, Gone: "1.20", Instead: "loadBalancer.mode"},
		{Key: "node-port-algorithm", Helm: "nodePort.algorithm", Kind: Word, Gone: "1.20", Instead: "loadBalancer.algorithm"},
		{Key: "node-port-acceleration", Helm: "nodePort.acceleration", Kind: Word, Gone: "1.20", Instead: "loadBalancer.acceleration"},
		{Key: "k8s-api-server", Kind: Text, Gone: "1.20", Instead: "k8s.apiServerURLs"},
	}
}

func onOff(of func(*agent.Status) agent.Switch) func(*agent.Status) string {
	return func(s *agent.Status) string {
		switch of(s) {
		case agent.On:
			return "true"
		case agent.Off:
			return "false"
		}
		return ""
	}
}
