package lint

import (
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/internal/cilium"
)

// topKeys are the names at the top of Cilium's chart from 1.12 to 1.20.
const topKeys = `MTU affinity agent agentNotReadyTaintKey aksbyocni alibabacloud annotateK8sNode annotations apiRateLimit
authentication autoDirectNodeRoutes azure bandwidthManager bgp bgpControlPlane bpf bpfClockProbe certgen cgroup ciliumEndpointSlice
cleanBpfState cleanState cluster clustermesh cni commonLabels configDriftDetection connectivityProbeFrequencyRatio conntrackGCInterval
conntrackGCMaxInterval containerRuntime crdWaitTimeout customCalls daemon dashboards datapathMode datapathPlugins debug
defaultLBServiceIPAM devices directRoutingSkipUnreachable disableEndpointCRD disableEnvoyVersionCheck dnsPolicy dnsProxy egressGateway
egressMasqueradeInterfaces enableCiliumEndpointSlice enableCnpStatusUpdates enableCriticalPriorityClass enableIPv4BIGTCP
enableIPv4Masquerade enableIPv6BIGTCP enableIPv6Masquerade enableInternalTrafficPolicy enableK8sEndpointSlice enableK8sEventHandover
enableK8sTerminatingEndpoint enableLBIPAM enableMasqueradeRouteSource enableNoServiceEndpointsRoutable enableNonDefaultDenyPolicies
enableRuntimeDeviceDetection enableXTSocketFallback encryption endpointHealthChecking endpointLockdownOnMapOverflow
endpointPolicyUpdateTimeoutDuration endpointRoutes endpointStatus eni envoy envoyConfig etcd externalIPs externalWorkloads extraArgs
extraConfig extraContainers extraEnv extraHostPathMounts extraInitContainers extraVolumeMounts extraVolumes forceDeviceDetection
fragmentTracking gatewayAPI gke global healthCheckICMPFailureThreshold healthChecking healthPort highScaleIPcache hostAliases
hostFirewall hostPort hostServices hubble identityAllocationMode identityChangeGracePeriod identityManagementMode image
imagePullSecrets ingressController initResources installIptablesRules installNoConntrackIptablesRules ipMasqAgent ipam
iptablesRandomFully ipv4 ipv4NativeRoutingCIDR ipv6 ipv6NativeRoutingCIDR k8s k8sClientExponentialBackoff k8sClientRateLimit
k8sClusterNetworkPolicy k8sNetworkPolicy k8sServiceHost k8sServiceHostRef k8sServiceLookupConfigMapName k8sServiceLookupNamespace
k8sServicePort keepDeprecatedLabels keepDeprecatedProbes kubeConfigPath kubeProxyReplacement kubeProxyReplacementHealthzBindAddr
l2NeighDiscovery l2announcements l2podAnnouncements l7Proxy livenessProbe loadBalancer localRedirectPolicies localRedirectPolicy
logSystemLoad maglev minReadySeconds monitor name namespaceOverride nat nat46x64Gateway nativeRoutingCIDR
nativeRoutingCIDRFromClusterPool nodeIPAM nodePort nodeSelector nodeSelectorLabels nodeinit operator pmtuDiscovery podAnnotations
podDisruptionBudget podLabels podSecurityContext policyAuditMode policyCIDRMatchMode policyDenyResponse policyEnforcementMode
portmapPlugin pprof preferIpv6 preflight priorityClassName prometheus proxy rbac readinessProbe remoteNodeIdentity resourceQuotas
resources rollOutCiliumPods routingMode scheduling sctp secretsNamespaceAnnotations secretsNamespaceLabels securityContext
serviceAccounts serviceNoBackendResponse sessionAffinity sleepAfterInit socketLB standaloneDnsProxy startupProbe svcSourceRangeCheck
synchronizeK8sNodes sysctlfix terminationGracePeriodSeconds tls tmpVolume tolerations tunnel tunnelPort tunnelProtocol
tunnelSourcePortRange underlayProtocol updateStrategy upgradeCompatibility vtep waitForKubeProxy wellKnownIdentities wireguard`

// sectionKeys are all names below the objects that decide about Services.
func sectionKeys() map[string]string {
	return map[string]string{
		"bpf": `authMapMax autoMount clockProbe ctAccounting ctAnyMax ctTcpMax datapathMode disableExternalIPMitigation distributedLRU
enableTCX events hostBoot hostLegacyRouting lbAffinityMapMax lbAlgorithmAnnotation lbBypassFIBLookup lbExternalClusterIP lbMapMax
lbModeAnnotation lbRevNatMapMax lbServiceBackendMapMax lbServiceMapMax lbSourceRangeAllTypes lbSourceRangeMapMax mapDynamicSizeRatio
masquerade monitorAggregation monitorFlags monitorInterval monitorTraceIPOption natMax neighMax nodeMapMax policyMapMax
policyMapPressureMetricsThreshold policyStatsMapMax preallocateMaps root tproxy vlanBypass waitForMount`,
		"loadBalancer":      `acceleration algorithm dsrDispatch dsrL4Translate experimental l7 mode reflectorWaitTime serviceTopology standalone`,
		"nodePort":          `acceleration addresses algorithm autoProtectPortRange bindProtection directRoutingDevice enableDynamicSourceLookup enableHealthCheck enableHealthCheckLoadBalancerIP enabled mode range`,
		"socketLB":          `enabled hostNamespaceOnly terminatePodConnections tracing`,
		"hostPort":          `enabled`,
		"externalIPs":       `enabled`,
		"ipMasqAgent":       `config enabled`,
		"k8s":               `apiServerURLs requireIPv4PodCIDR requireIPv6PodCIDR serviceProxyName`,
		"k8sServiceHostRef": `key name`,
		"maglev":            `hashSeed tableSize`,
	}
}

// refused are values that the chart fails on, with the first version that does.
//
// Source: templates/validate.yaml of 1.15 to 1.20.
func refused() map[string]string {
	return map[string]string{
		"tunnel": "1.15", "enableK8sEventHandover": "1.15", "enableCnpStatusUpdates": "1.15",
		"encryption.keyFile": "1.16", "encryption.mountPath": "1.16", "encryption.secretName": "1.16", "encryption.interface": "1.16",
		"proxy.prometheus.enabled": "1.16", "proxy.prometheus.port": "1.16", "endpointStatus": "1.16", "remoteNodeIdentity": "1.16",
		"containerRuntime.integration": "1.16", "etcd.managed": "1.16",
		"enableCiliumEndpointSlice": "1.18", "ciliumEndpointSlice.sliceMode": "1.18",
	}
}

// nearest finds the name that was meant: equal but for case and separators, or
// no more than two slips away.
func nearest(word string, names []string) string {
	best, distance := "", 3
	if len(word) < 6 {
		distance = 2
	}
	for _, n := range names {
		if bare(n) == bare(word) {
			return n
		}
		if d := slips(strings.ToLower(word), strings.ToLower(n), distance); d < distance {
			best, distance = n, d
		}
	}
	return best
}

func bare(s string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "", ".", "").Replace(s))
}

// slips counts letters to add, drop or change, and neighbours to swap; limit is
// an answer too where there are more.
func slips(a, b string, limit int) int {
	if len(a) > len(b)+limit || len(b) > len(a)+limit || len(a) > 64 {
		return limit
	}
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		older := before
		before, row = row, make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(before[j]+1, row[j-1]+1, before[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], older[j-2]+1)
			}
		}
	}
	return min(row[len(b)], limit)
}

// atLeast tells whether the version judged for is one or later.
func (l *linter) atLeast(version string) bool {
	return cilium.Setting{Since: version}.In(l.caps) == cilium.Present
}

// known tells whether a path is a name of the chart, and if not what may have
// been meant. Below objects that have nothing to do with Services all is known.
func known(path string) (ok bool, meant string) {
	section, key, deep := strings.Cut(path, ".")
	if !deep {
		names := strings.Fields(topKeys)
		return slices.Contains(names, path), nearest(path, names)
	}
	list, ours := sectionKeys()[section]
	if !ours || strings.Contains(key, ".") {
		return true, ""
	}
	names := strings.Fields(list)
	if slices.Contains(names, key) {
		return true, ""
	}
	if meant = nearest(key, names); meant != "" {
		meant = section + "." + meant
	}
	return false, meant
}
