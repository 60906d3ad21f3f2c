package redact

import (
	"net/netip"
	"regexp"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// Where names stand in answers that are no objects. Elsewhere a word may be
// anything.
var (
	// Comments of kube-proxy: "shop/web:http cluster IP", in -S and -L alike.
	comment = regexp.MustCompile(`--comment (?:"([^"]*)"|(\S+))|/\* (.*?) \*/`)
	inSlash = regexp.MustCompile(`(?:^|[\s"'(\[{,=])([a-z0-9][a-z0-9-]*)/([a-z0-9][a-z0-9.-]*)(?::([a-z][a-z0-9-]*))?`)
	// Chains, sets and maps of kube-proxy's nftables mode: service-ULMVA6XW-shop/web/tcp/http.
	nftName = regexp.MustCompile(`-[A-Z2-7]{8}-([a-z0-9-]+)/([a-z0-9-]+)/[a-z]+/([a-z0-9-]*)`)
	// Fields of agents' logs, as text and as JSON.
	field = regexp.MustCompile(`\b(k8sNamespace|k8sPodName|ciliumEndpointName|ciliumNetworkPolicyName|k8sSvcName|k8sService|k8sNodeName|k8sEndpointName|endpointSlice|endpointSliceName|serviceName|serviceNamespace|service|svc|frontendService|nodeName|node|node-name|clusterName|cluster|hostname|namespace|podName|pod|owner)["']?[=:]\s*(?:\\?"([^"\\]*)|([^\s",}\]]+))`)
	// Labels of endpoints and identities.
	sourced = regexp.MustCompile(`\b(?:k8s|container|cni):([A-Za-z0-9][A-Za-z0-9./_-]*)(?:=([A-Za-z0-9._-]*))?`)
	owned   = regexp.MustCompile(`owned by (?:another service: )?([a-z0-9-]+)/([a-z0-9.-]+)`)
	// Users, in refusals of the API server: User "system:serviceaccount:ci:kpr".
	user = regexp.MustCompile(`\bUser \\?"([^"\\]+)`)
	// Hosts: of URLs, in errors of the resolver and of TLS.
	urlHost = regexp.MustCompile(`[a-z][a-z0-9+.-]*://(?:[^/\s"'@]*@)?([A-Za-z0-9._-]+)`)
	lookup  = regexp.MustCompile(`\blookup ([A-Za-z0-9._-]+)`)
	valid   = regexp.MustCompile(`valid for ([A-Za-z0-9.:, *-]+?), not ([A-Za-z0-9._-]+)`)
	// Settings that name the cluster or a machine, in files within files.
	setting = regexp.MustCompile(`(?im)\b(cluster-?name|control-?plane-?endpoint|hostname-?override|node-?name|tls-san|k8s-?service-?host|k8s-client-host|kubernetes_service_host|advertise-address|hosted-?zone|current-context|egress-gateway-name)["']?\s*[:=]\s*["']?([^\s"',}]+)`)
	domain  = regexp.MustCompile(`(?:^|[\s"'/@:,=\[(])([A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,})(?:$|[\s"'/:,\])])`)
	// Clusters of a mesh, in the status as text and as JSON.
	remote     = regexp.MustCompile(`(?m)^\s{2,}([a-z0-9-]+): (?:not-)?ready, [0-9]+ nodes`)
	remoteJSON = regexp.MustCompile(`"name":\s*"([^"]+)",\s*"num-`)
	// Pods behind the addresses that an agent has allocated: "10.0.1.5 (shop/web-0)".
	allocated = regexp.MustCompile(`(?m)^\s+[0-9a-f.:]+ \(([a-z0-9-]+)/([a-z0-9.-]+)`)
)

// learnText learns what can be told by form alone.
func (r *Redactor) learnText(t source.Topic, s string) {
	if strings.Contains(s, "://") {
		for _, m := range urlHost.FindAllStringSubmatch(s, -1) {
			r.learnHost(m[1])
		}
	}
	switch {
	case netfilterTopics[t]:
		r.learnComments(s)
		return
	case bulky[t]:
		return
	case t == source.Status:
		for _, m := range allocated.FindAllStringSubmatch(s, -1) {
			r.Learn(m[1])
			r.Learn(m[2])
		}
		for _, m := range remote.FindAllStringSubmatch(s, -1) {
			r.Learn(m[1])
		}
	}
	for _, m := range field.FindAllStringSubmatch(s, -1) {
		r.learnField(m[2] + m[3])
	}
	for _, m := range sourced.FindAllStringSubmatch(s, -1) {
		r.labelValue(r.labelKeyLearnt(m[1]), m[2])
	}
	for _, m := range owned.FindAllStringSubmatch(s, -1) {
		r.Learn(m[1])
		r.Learn(m[2])
	}
	for _, m := range user.FindAllStringSubmatch(s, -1) {
		for name := range strings.FieldsFuncSeq(m[1], func(c rune) bool { return strings.ContainsRune(":/@", c) }) {
			r.Learn(name)
		}
	}
	for _, m := range lookup.FindAllStringSubmatch(s, -1) {
		r.learnHost(m[1])
	}
	for _, m := range valid.FindAllStringSubmatch(s, -1) {
		for h := range strings.SplitSeq(m[1]+", "+m[2], ", ") {
			r.learnHost(strings.TrimPrefix(h, "*."))
		}
	}
	for _, m := range setting.FindAllStringSubmatch(s, -1) {
		r.learnHost(strings.Trim(m[2], "[]"))
	}
	if t == source.RancherConfig || t == source.ConfigMaps {
		for _, m := range domain.FindAllStringSubmatch(s, -1) {
			r.learnHost(m[1])
		}
	}
}

func (r *Redactor) learnComments(s string) {
	for _, m := range comment.FindAllStringSubmatch(s, -1) {
		for _, n := range inSlash.FindAllStringSubmatch(m[1]+m[2]+m[3], -1) {
			r.Learn(n[1])
			r.Learn(n[2])
			r.learnPort(n[3])
		}
	}
	for _, m := range nftName.FindAllStringSubmatch(s, -1) {
		r.Learn(m[1])
		r.Learn(m[2])
		r.learnPort(m[3])
	}
}

// learnField takes names apart: "shop/web:http", "[shop/web shop/db]".
func (r *Redactor) learnField(value string) {
	for name := range strings.FieldsFuncSeq(value, func(c rune) bool { return strings.ContainsRune("/ ,[]{}()", c) }) {
		name, port, _ := strings.Cut(name, ":")
		r.Learn(name)
		r.learnPort(port)
	}
}

// learnHost takes HOST or HOST:PORT, unless everybody has that host.
func (r *Redactor) learnHost(host string) {
	host, _, _ = strings.Cut(host, ":")
	host = strings.Trim(host, ".")
	if _, err := netip.ParseAddr(host); err == nil || knownHost(host) {
		return
	}
	// The names of files look like hosts.
	if i := strings.LastIndexByte(host, '.'); i >= 0 && fileEnds[host[i+1:]] {
		return
	}
	r.Learn(host)
}

var fileEnds = map[string]bool{"conf": true, "crt": true, "key": true, "yaml": true, "yml": true, "json": true, "log": true, "sock": true, "pem": true, "kubeconfig": true, "go": true, "c": true, "h": true}

// everybodys are domains of software and of clouds, not of a user.
var everybodys = []string{
	"k8s.io", "kubernetes.io", "cilium.io", "helm.sh", "k3s.io", "rke2.io", "cattle.io", "metallb.io", "metallb.universe.tf", "kube-vip.io", "openshift.io", "coreos.com", "istio.io", "linkerd.io", "microk8s.io",
	"kubevirt.io", "argoproj.io", "fluxcd.io", "projectcalico.org", "docker.io", "docker.com", "quay.io", "ghcr.io", "gcr.io", "pkg.dev", "github.com", "gitlab.com", "googleapis.com", "google.com", "azure.com", "amazonaws.com",
	"x-k8s.io", "sigs.k8s.io", "nvidia.com", "feature.node.kubernetes.io", "cluster.local", "talos.dev", "prometheus.io", "cert-manager.io", "velero.io", "external-secrets.io",
}

// knownHost holds for domains of everybodys; below a cloud's domain only for
// names that stand in its documentation, which here is none.
func knownHost(host string) bool {
	low := strings.ToLower(host)
	if low == "localhost" || low == "docker" {
		return true
	}
	for _, d := range everybodys {
		if low == d || strings.HasSuffix(low, "."+d) && !strings.HasSuffix(low, ".amazonaws.com") && !strings.HasSuffix(low, ".azure.com") && !strings.HasSuffix(low, ".cluster.local") && !strings.HasSuffix(low, ".pkg.dev") {
			return true
		}
	}
	return false
}

var netfilterTopics = map[source.Topic]bool{
	source.NFTSave: true, source.LegacySave: true, source.NFTSave6: true, source.LegacySave6: true, source.IPTablesNAT: true, source.IPTablesMangle: true, source.IPTablesFilter: true,
	source.IPTablesNAT6: true, source.IPTablesMangle6: true, source.IPTablesFilter6: true, source.IPTablesRows: true, source.NFTRuleset: true,
}

// bulky are answers that can have millions of rows and hold neither logs nor
// secrets.
var bulky = map[source.Topic]bool{
	source.ServiceList: true, source.MapList: true, source.MapBackends: true, source.MapFrontends: true, source.MapRanges: true, source.MapRevNAT: true, source.FrontendsTable: true, source.MapsDump: true,
	source.Conntrack: true, source.HostConntrack: true, source.IPVS: true, source.Listeners: true,
}
