package sysdump

import (
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// prefixes are what the agent's command line is called: cilium-dbg since 1.15.
var prefixes = []string{"cilium-dbg-", "cilium-"}

// clusterFiles are the files at the top that answer a topic.
var clusterFiles = map[source.Topic]struct {
	stem  string
	since string // first cilium-cli that writes it, "" for all
}{
	source.Services:          {"k8s-services", ""},
	source.EndpointSlices:    {"k8s-endpointslices", "v0.16.20"},
	source.Endpoints:         {"k8s-endpoints", "v0.11.1"},
	source.Nodes:             {"k8s-nodes", ""},
	source.Pods:              {"k8s-pods", ""},
	source.DaemonSets:        {"cilium-daemonset", ""},
	source.CiliumConfig:      {"cilium-configmap", "v0.9.1"},
	source.CiliumNodeConfigs: {"ciliumnodeconfigs", "v0.12.13"},
	source.LocalRedirects:    {"ciliumlocalredirectpolicies", "v0.9.1"},
}

// nodeFile is one file that answers a topic.
type nodeFile struct {
	name   string // without the prefix
	plain  bool   // a program of its own, without the prefix
	glob   bool   // name is the beginning
	format source.Format
	stem   string // the form of a snapshot that it is
	part   string // the part of a larger JSON object that is meant
}

// nodeFiles are the files below cmd that answer a topic, best first.
func nodeFiles(t source.Topic) []nodeFile {
	agent := func(name, stem string) nodeFile { return nodeFile{name: name, format: source.Text, stem: stem} }
	object := func(name, stem string) nodeFile { return nodeFile{name: name, format: source.JSON, stem: stem} }
	tool := func(name, stem string) nodeFile {
		return nodeFile{name: name, format: source.Text, stem: stem, plain: true}
	}
	same := string(t)
	switch t {
	case source.Status:
		return []nodeFile{object("status--o-json", "status"), agent("status---verbose", "status-verbose"),
			{name: "debuginfo-", glob: true, format: source.JSON, stem: "status", part: "cilium-status"}}
	case source.Config:
		return []nodeFile{agent("config--a", same), agent("config", same)}
	case source.ServiceList:
		return []nodeFile{object("service-list--o-json", same), agent("service-list", same),
			{name: "debuginfo-", glob: true, format: source.JSON, stem: same, part: "service-list"}}
	case source.MapList:
		return []nodeFile{object("bpf-lb-list--o-json", same), agent("bpf-lb-list", same)}
	case source.MapFrontends:
		return []nodeFile{agent("bpf-lb-list---frontends", same)}
	case source.MapBackends:
		return []nodeFile{agent("bpf-lb-list---backends", same)}
	case source.MapRanges:
		return []nodeFile{agent("bpf-lb-list---source-ranges", same)}
	case source.MapRevNAT:
		return []nodeFile{agent("bpf-lb-list---revnat", same)}
	case source.FrontendsTable:
		return []nodeFile{{name: "statedb-dump", format: source.JSON, stem: same, part: "frontends"}}
	case source.RedirectList:
		return []nodeFile{agent("lrp-list", same)}
	case source.Conntrack:
		return []nodeFile{agent("bpf-ct-list-global", "bpf-ct-list")}
	}
	return toolFiles(t, tool, same)
}

// toolFiles are those of programs other than the agent's.
func toolFiles(t source.Topic, tool func(name, stem string) nodeFile, same string) []nodeFile {
	switch t {
	case source.Listeners:
		f := tool("ss--t--p--a--i--s", "ss")
		f.glob = true
		return []nodeFile{f}
	case source.NFTSave:
		// The plain name is of whichever back end the container has chosen; it
		// repeats one of the others where those are there.
		return []nodeFile{tool("iptables-nft-save--c", same), tool("iptables-save--c", "iptables-save")}
	case source.LegacySave:
		return []nodeFile{tool("iptables-legacy-save--c", same)}
	case source.NFTSave6:
		return []nodeFile{tool("ip6tables-nft-save--c", same), tool("ip6tables-save--c", "ip6tables-save")}
	case source.LegacySave6:
		return []nodeFile{tool("ip6tables-legacy-save--c", same)}
	case source.IPAddr:
		return []nodeFile{tool("ip-a", "ip-a")}
	case source.IPSets:
		return []nodeFile{tool("ipset-list", "ipset")}
	case source.Cgroup:
		f := tool("bpftool-cgroup-tree-", "bpftool-cgroup-tree")
		f.glob = true
		return []nodeFile{f}
	}
	return nil
}

// never says why a topic is in no dump, "" for topics that can be.
func never(t source.Topic) string {
	switch t {
	case source.ConfigMaps:
		return "a sysdump holds no ConfigMap but Cilium's"
	case source.PersistentVolumes:
		return "a sysdump holds no PersistentVolumes"
	case source.ServicesAfter, source.EndpointSlicesAfter:
		return "a sysdump is one look"
	case source.ProxyMode, source.ProxyHealth:
		return "a sysdump asks no port of the node"
	case source.NFTRuleset:
		return "a sysdump holds no nftables ruleset"
	case source.IPVS:
		return "a sysdump does not list IPVS"
	case source.HostConntrack, source.RancherConfig:
		return "a sysdump holds nothing of the host"
	case source.APIProbe:
		return "a sysdump asks no API server"
	}
	return ""
}
