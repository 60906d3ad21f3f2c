package source

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Topic names one kind of evidence. Its forms say under which file names and
// in which formats a snapshot may hold it.
type Topic string

// Cluster-wide topics: lists of Kubernetes objects.
const (
	Services            Topic = "services"
	ServicesAfter       Topic = "services-after"
	EndpointSlices      Topic = "endpointslices"
	EndpointSlicesAfter Topic = "endpointslices-after"
	Endpoints           Topic = "endpoints"
	Nodes               Topic = "nodes"
	Pods                Topic = "pods" // Cilium's and kube-proxy's own pods, and others' as far as needed
	DaemonSets          Topic = "daemonsets"
	CiliumConfig        Topic = "cilium-config"
	CiliumNodeConfigs   Topic = "ciliumnodeconfigs"
	LocalRedirects      Topic = "ciliumlocalredirectpolicies"
	PersistentVolumes   Topic = "persistentvolumes"
	ConfigMaps          Topic = "configmaps"
)

// Topics of a node, read through its agent.
const (
	Status         Topic = "status"
	Version        Topic = "version"
	Config         Topic = "config"
	ServiceList    Topic = "service-list"
	MapList        Topic = "bpf-lb-list"
	MapBackends    Topic = "bpf-lb-list-backends"
	MapFrontends   Topic = "bpf-lb-list-frontends"
	MapRanges      Topic = "bpf-lb-list-source-ranges"
	MapRevNAT      Topic = "bpf-lb-list-revnat"
	FrontendsTable Topic = "shell-db-show-frontends"
	MapsDump       Topic = "shell-lb-maps-dump"
	LBDigest       Topic = "lb-digest" // see Spec.Summary
	Listeners      Topic = "ss"
	ProxyMode      Topic = "kube-proxy-mode"
	ProxyHealth    Topic = "kube-proxy-healthz"
	HealthChecks   Topic = "healthcheck"
	Cgroup         Topic = "bpftool-cgroup-show"
	NFTSave        Topic = "iptables-nft-save"
	LegacySave     Topic = "iptables-legacy-save"
	NFTSave6       Topic = "ip6tables-nft-save"
	LegacySave6    Topic = "ip6tables-legacy-save"
	RedirectList   Topic = "lrp-list"
	Conntrack      Topic = "bpf-ct-list-global"
	Drops          Topic = "monitor-drop"
	MapCounts      Topic = "bpf-counts"
	BGPRoutes      Topic = "bgp-routes"
	AgentLog       Topic = "agent-log"
	InitLog        Topic = "init-log" // Arg is the init container's name
)

// Topics of a node about netfilter and IPVS. Those named by a table are
// listings of it alone, as people paste them.
const (
	IPAddr          Topic = "ip-addr"
	IPVS            Topic = "ip-vs"
	IPSets          Topic = "ipset-list"
	IPTablesVersion Topic = "iptables-version"
	IPTablesNAT     Topic = "iptables-nat"
	IPTablesMangle  Topic = "iptables-mangle"
	IPTablesFilter  Topic = "iptables-filter"
	IPTablesRows    Topic = "iptables-counters"
	IPTablesNAT6    Topic = "ip6tables-nat"
	IPTablesMangle6 Topic = "ip6tables-mangle"
	IPTablesFilter6 Topic = "ip6tables-filter"
)

// Topics of a node that only its host can tell, see Spec.Host.
const (
	NFTRuleset    Topic = "nft-list-ruleset"
	HostConntrack Topic = "conntrack"
	RancherConfig Topic = "rancher-config"
)

// APIProbe is what became of a request to the API server from a node, see
// Spec.Probe.
const APIProbe Topic = "api-probe"

// Form is one shape in which a topic may be held: a file of that stem and
// format. The stem is the command line in words.
type Form struct {
	Stem   string
	Format Format
	Ext    string // with the dot
}

// Spec describes a topic. Forms are in order of preference: JSON before text.
type Spec struct {
	Topic Topic
	Node  bool // read per node
	Forms []Form
	Doc   string
	// Recorded: no running cluster is asked for it, for what it would cost or
	// because no one command tells it. Snapshots may hold it.
	Recorded bool
	// Host: the agent's pod does not reach it. A running cluster is asked for
	// it only where the user allows a pod on each host.
	Host bool
	// Probe: it is found out by sending something, which is done only where the
	// user asks for it.
	Probe bool
	// Summary: it stands in for larger topics on a running cluster. Recordings
	// hold those and not it.
	Summary bool
	// Arg is the one argument that a run asks for, of topics that take one.
	Arg string
	// Part is a file that holds a part of the topic, %s in its stem being the
	// part's name; zero for topics without parts. Where no form is there as a
	// whole a snapshot answers with all parts, each below a line "# file: NAME".
	Part Form
}

// TakesArg reports whether a query of the topic needs an Arg.
func (s Spec) TakesArg() bool { return strings.Contains(s.Forms[0].Stem, "%s") }

func list(t Topic, doc string) Spec {
	return Spec{Topic: t, Doc: doc, Forms: []Form{{string(t), YAML, ".yaml"}, {string(t), JSON, ".json"}}}
}

func both(t Topic, doc string) Spec {
	return Spec{Topic: t, Node: true, Doc: doc, Forms: []Form{{string(t), JSON, ".json"}, {string(t), Text, ".txt"}}}
}

func text(t Topic, doc string, more ...string) Spec {
	s := Spec{Topic: t, Node: true, Doc: doc}
	for _, stem := range append([]string{string(t)}, more...) {
		s.Forms = append(s.Forms, Form{stem, Text, ".txt"})
	}
	return s
}

// listing is one table as -S or -L lists it, of whichever back end.
func listing(t Topic, tool, table string) Spec {
	more := []string{tool + "-" + table + "-S", tool + "-" + table + "-L", tool + "-t-" + table + "-S", tool + "-t-" + table + "-L"}
	if table == "filter" { // the table that is listed when none is named
		more = append(more, tool+"-S", tool+"-L")
	}
	return text(t, tool+" rules of the table "+table+", listed", more...)
}

func parts(s Spec, stem string) Spec {
	s.Part = Form{stem, Text, ".txt"}
	return s
}

func recorded(s Spec) Spec {
	s.Recorded = true
	return s
}

func host(s Spec) Spec {
	s.Host = true
	return s
}

// specs is the one table of topics, sorted by Topics.
func specs() []Spec {
	status := both(Status, "the agent's own account of itself, KubeProxyReplacement included")
	status.Forms = []Form{{"status", JSON, ".json"}, {"status-verbose", Text, ".txt"}, {"status", Text, ".txt"}}
	agentLog := Spec{Topic: AgentLog, Node: true, Doc: "the last lines of the agent's log", Forms: []Form{{"agent", Text, ".log"}}}
	mapCounts := Spec{Topic: MapCounts, Node: true, Doc: "rows of BPF maps, counted where the rows were not kept", Forms: []Form{{string(MapCounts), YAML, ".yaml"}}}
	initLog := Spec{Topic: InitLog, Node: true, Arg: "config", Doc: "the last lines of an init container of the agent", Forms: []Form{{"%s-init", Text, ".log"}}}
	return []Spec{
		list(Services, "Services of all namespaces"),
		list(ServicesAfter, "Services as they were after the agents had answered"),
		list(EndpointSlices, "EndpointSlices of all namespaces"),
		list(EndpointSlicesAfter, "EndpointSlices as they were after the agents had answered"),
		recorded(list(Endpoints, "Endpoints, for evidence recorded before EndpointSlices")),
		list(Nodes, "Nodes"),
		list(Pods, "Cilium's and kube-proxy's pods, static ones of kube-vip"),
		list(DaemonSets, "DaemonSets of Cilium, kube-proxy and kube-vip"),
		list(CiliumConfig, "the ConfigMap cilium-config"),
		list(CiliumNodeConfigs, "CiliumNodeConfigs: settings of single nodes"),
		list(LocalRedirects, "CiliumLocalRedirectPolicies"),
		list(ConfigMaps, "the ConfigMaps kubeadm-config and kube-proxy of kube-system"),
		list(PersistentVolumes, "PersistentVolumes that name a server"),
		status,
		both(Version, "versions of the agent and its command line"),
		both(Config, "settings of the running agent"),
		both(ServiceList, "frontends and backends as the agent believes them"),
		both(MapList, "frontends and backends in the node's BPF maps"),
		both(MapBackends, "the BPF backend map by id"),
		both(MapFrontends, "the BPF service map by id, with backend counts"),
		both(MapRanges, "the BPF source range map"),
		both(MapRevNAT, "the BPF reverse NAT map"),
		both(FrontendsTable, "the agent's frontends table with the outcome of each write (1.18 and later)"),
		text(MapsDump, "all load-balancing maps with backend states (1.18 and later)"),
		{Topic: LBDigest, Node: true, Summary: true, Doc: "sums of the agent's list and of its maps, and what healthy nodes differ in (1.18 and later)", Forms: []Form{{string(LBDigest), Text, ".txt"}}},
		recorded(text(RedirectList, "local redirect policies as the agent resolved them")),
		recorded(text(Conntrack, "the BPF connection tracking map, which can be huge", "bpf-ct-list")),
		text(Drops, "drops that `monitor` saw"),
		text(Listeners, "listening sockets of the node", "ss-lntup"),
		text(ProxyMode, "what answers on 127.0.0.1:10249/proxyMode"),
		text(ProxyHealth, "what answers on 127.0.0.1:10256/healthz"),
		recorded(parts(text(HealthChecks, "what answers on the health check ports of Services with a Local policy"), "healthcheck-%s")),
		text(Cgroup, "socket LB programs on the root of the node's control groups, as the kernel has them", "bpftool-cgroup-tree"),
		text(NFTSave, "iptables rules of the nft back end", "iptables-save"),
		text(LegacySave, "iptables rules of the legacy back end"),
		text(NFTSave6, "ip6tables rules of the nft back end", "ip6tables-save"),
		text(LegacySave6, "ip6tables rules of the legacy back end"),
		text(IPAddr, "network devices and their addresses", "ip-br-addr", "ip-a"),
		text(IPVS, "virtual servers of IPVS", "ipvsadm", "ipvsadm-Ln"),
		recorded(text(IPSets, "names of IP sets", "ipset", "ipset-list-n")),
		recorded(text(IPTablesVersion, "versions of the host's and the agent's iptables", "iptables-V")),
		recorded(listing(IPTablesNAT, "iptables", "nat")),
		recorded(listing(IPTablesMangle, "iptables", "mangle")),
		recorded(listing(IPTablesFilter, "iptables", "filter")),
		recorded(text(IPTablesRows, "rows of kube-proxy with their counters")),
		recorded(listing(IPTablesNAT6, "ip6tables", "nat")),
		recorded(listing(IPTablesMangle6, "ip6tables", "mangle")),
		recorded(listing(IPTablesFilter6, "ip6tables", "filter")),
		recorded(mapCounts),
		recorded(text(BGPRoutes, "routes of the node's BGP speaker")),
		agentLog,
		initLog,
		{Topic: APIProbe, Node: true, Probe: true, Doc: "a request to the API server from the node, at the addresses its agent and operator dial", Forms: []Form{{string(APIProbe), JSON, ".json"}}},
		host(text(NFTRuleset, "nftables: the names of all tables, and kube-proxy's own", "nft-ruleset", "nft-list-tables")),
		host(text(HostConntrack, "UDP flows that netfilter tracks", "conntrack-L")),
		host(text(RancherConfig, "configuration files of k3s or RKE2, reduced to what concerns Services")),
	}
}

// Topics lists every topic, cluster-wide ones first, then by name.
func Topics() []Spec {
	all := specs()
	slices.SortStableFunc(all, func(a, b Spec) int {
		if a.Node != b.Node {
			if a.Node {
				return 1
			}
			return -1
		}
		return cmp.Compare(a.Topic, b.Topic)
	})
	return all
}

// SpecOf finds a topic's description.
func SpecOf(t Topic) (Spec, bool) {
	all := specs()
	i := slices.IndexFunc(all, func(s Spec) bool { return s.Topic == t })
	if i < 0 {
		return Spec{}, false
	}
	return all[i], true
}

// File is the path of one form of a query inside a snapshot. It fails where a
// node's name or the argument could not be a file name.
func (f Form) File(q Query) (string, error) {
	stem := f.Stem
	if strings.Contains(stem, "%s") {
		if !plainName(q.Arg) {
			return "", fmt.Errorf("%s: argument %q is not a plain name", q.Topic, q.Arg)
		}
		stem = strings.ReplaceAll(stem, "%s", q.Arg)
	}
	if q.Node == "" {
		return stem + f.Ext, nil
	}
	if !plainName(q.Node) {
		return "", fmt.Errorf("node name %q is not a plain name", q.Node)
	}
	return "nodes/" + q.Node + "/" + stem + f.Ext, nil
}

// plainName holds for the names that Kubernetes allows for nodes and
// containers: DNS-1123 subdomains, which also are safe as file names.
func plainName(s string) bool {
	if s == "" || len(s) > 253 || s[0] == '.' || s[0] == '-' {
		return false
	}
	for _, r := range s {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '.' {
			return false
		}
	}
	return !strings.Contains(s, "..")
}
