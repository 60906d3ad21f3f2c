package fact

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/internal/netfilter"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// Facts about a node's network beside Cilium.
var (
	// Links are the network devices of a node with their addresses.
	Links = Read(source.IPAddr, func(a source.Artifact) ([]netfilter.Link, error) { return netfilter.DecodeLinks(a.Data) })
	// VirtualServers are those of IPVS.
	VirtualServers = Read(source.IPVS, func(a source.Artifact) ([]netfilter.VirtualServer, error) { return netfilter.DecodeIPVS(a.Data) })
	// IPSets are the names of the node's IP sets.
	IPSets = Read(source.IPSets, func(a source.Artifact) ([]string, error) { return netfilter.DecodeSets(a.Data) })
	// IPTablesVersions are those of the host's iptables and the agent's.
	IPTablesVersions = Read(source.IPTablesVersion, func(a source.Artifact) (netfilter.Versions, error) { return netfilter.DecodeVersions(a.Data) })
	// NFTables are kube-proxy's tables of nftables.
	NFTables = Read(source.NFTRuleset, func(a source.Artifact) (netfilter.NFTables, error) { return netfilter.DecodeNFT(a.Data) })
	// IPVS is what kube-proxy's IPVS mode has on a node.
	IPVS = Define("ipvs", true, []Named{Links, VirtualServers, IPSets, Netfilter, Services}, ipvs)
)

// IPVSOf is what a node has of kube-proxy's IPVS mode. Virtual servers alone
// can be anybody's; Found says that something is kube-proxy's.
type IPVSOf struct {
	Found   bool
	Device  bool         // kube-ipvs0 is there
	Held    []netip.Addr // addresses that it holds, sorted
	Servers int          // virtual servers, all of them where one is kube-proxy's
	Sets    []string     // IP sets of kube-proxy
	Chains  bool         // iptables chains that only this mode makes
	// Unlooked names what could not be looked at, in words; "" if all was.
	Unlooked string
}

func ipvs(v *View) (IPVSOf, error) {
	var out IPVSOf
	links, linkErr := Links.From(v)
	servers, serverErr := VirtualServers.From(v)
	sets, _ := IPSets.From(v)
	rules, ruleErr := Netfilter.From(v)
	for _, l := range links {
		if l.Name != netfilter.IPVSDevice {
			continue
		}
		out.Device = true
		for _, p := range l.Addrs {
			if !p.Addr().IsLinkLocalUnicast() {
				out.Held = append(out.Held, p.Addr())
			}
		}
	}
	slices.SortFunc(out.Held, netip.Addr.Compare)
	for _, s := range sets {
		if netfilter.ProxySet(s) {
			out.Sets = append(out.Sets, s)
		}
	}
	slices.Sort(out.Sets)
	out.Chains = slices.ContainsFunc(rules.Parts, func(p *netfilter.Part) bool { return p.IPVS })
	ours := serviceAddresses(v)
	out.Found = out.Device || out.Chains || len(out.Sets) > 0 ||
		slices.ContainsFunc(servers, func(s netfilter.VirtualServer) bool { return ours[s.Address.Addr()] })
	if out.Found {
		out.Servers = len(servers)
	}
	var unlooked []string
	if linkErr != nil {
		unlooked = append(unlooked, "the device kube-ipvs0")
	}
	if serverErr != nil {
		unlooked = append(unlooked, "IPVS's virtual servers")
	}
	out.Unlooked = strings.Join(unlooked, " and ")
	// The mode always makes chains in iptables too, so rules that were read as
	// a whole tell that it never ran, or was cleaned up after.
	if linkErr != nil && !out.Found && (ruleErr != nil || len(rules.Unread) > 0) {
		return out, linkErr
	}
	return out, nil
}

func serviceAddresses(v *View) map[netip.Addr]bool {
	out := map[netip.Addr]bool{}
	services, _ := Services.From(v)
	for i := range services {
		for _, s := range append(slices.Clone(services[i].Spec.ClusterIPs), services[i].Spec.ClusterIP) {
			if a, err := netip.ParseAddr(s); err == nil {
				out[a.Unmap()] = true
			}
		}
	}
	return out
}
