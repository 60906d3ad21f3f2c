package netfilter

import (
	"slices"
	"strings"
)

// Owner is the program that makes a chain.
type Owner uint8

// The owners. Other is anybody else: a program of that name, a person, or one
// whose chains merely look like kube-proxy's.
const (
	Other Owner = iota
	KubeProxy
	// Shared are chains that kube-proxy makes, and kubelets before 1.27 as well.
	Shared
	Kubelet
	Cilium
)

// OwnerOf classifies a chain by its exact name or by the shape of its name,
// for kube-proxy up to 1.37 in iptables and IPVS mode and back to the chains
// of the userspace mode.
func OwnerOf(c Chain) Owner {
	name := c.Name
	switch {
	case strings.HasPrefix(name, "CILIUM_"), strings.HasPrefix(name, "OLD_CILIUM_"):
		return Cilium
	case !strings.HasPrefix(name, "KUBE-"):
		return Other
	case hashed(name), slices.Contains(proxyChains, name):
		return KubeProxy
	case slices.Contains(sharedChains, name):
		return Shared
	// In nat it was part of the IPVS mode; in filter it is the kubelet's, and
	// kube-proxy, which makes it too, never cleans it.
	case name == "KUBE-FIREWALL" && c.Table == "nat":
		return Shared
	case name == "KUBE-FIREWALL", name == "KUBE-KUBELET-CANARY", name == "KUBE-IPTABLES-HINT":
		return Kubelet
	}
	return Other
}

// proxyChains are the names that kube-proxy alone uses.
var proxyChains = []string{
	"KUBE-SERVICES", "KUBE-EXTERNAL-SERVICES", "KUBE-NODEPORTS", "KUBE-FORWARD", "KUBE-PROXY-FIREWALL", "KUBE-PROXY-CANARY",
	// IPVS mode.
	"KUBE-NODE-PORT", "KUBE-LOAD-BALANCER", "KUBE-SOURCE-RANGES-FIREWALL", "KUBE-IPVS-FILTER", "KUBE-IPVS-OUT-FILTER",
	// Userspace mode, gone since 1.26.
	"KUBE-PORTALS-CONTAINER", "KUBE-PORTALS-HOST", "KUBE-NODEPORT-CONTAINER", "KUBE-NODEPORT-HOST", "KUBE-NODEPORT-NON-LOCAL",
}

var sharedChains = []string{"KUBE-MARK-MASQ", "KUBE-MARK-DROP", "KUBE-POSTROUTING"}

// IPVSChain holds for names that only the IPVS mode uses.
func IPVSChain(name string) bool {
	return slices.Contains([]string{"KUBE-NODE-PORT", "KUBE-LOAD-BALANCER", "KUBE-SOURCE-RANGES-FIREWALL", "KUBE-IPVS-FILTER", "KUBE-IPVS-OUT-FILTER"}, name)
}

// hashed holds for kube-proxy's chains of one Service port or endpoint: a
// prefix and 16 characters of a hash.
func hashed(name string) bool {
	for _, prefix := range []string{"KUBE-SVC-", "KUBE-SVL-", "KUBE-SEP-", "KUBE-FW-", "KUBE-EXT-", "KUBE-XLB-"} {
		rest, ok := strings.CutPrefix(name, prefix)
		if ok && len(rest) == 16 && strings.Trim(rest, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == "" {
			return true
		}
	}
	return false
}
