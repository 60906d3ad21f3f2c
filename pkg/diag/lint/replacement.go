package lint

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/internal/cilium"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
)

const (
	kprKey     = "kube-proxy-replacement"
	kprPath    = "kubeProxyReplacement"
	masquerade = "enable-bpf-masquerade"
	healthz    = "kube-proxy-replacement-healthz-bind-address"
)

// kpr tells whether the values turn the replacement on. Other words than true
// and false have been judged as such; strict means on.
func (l *linter) kpr() bool {
	s, _ := cilium.SettingOf(kprKey)
	n, ok := s.Normal(l.setting(kprKey))
	return ok && n == "true"
}

// apiServer judges the address that agents will dial.
func (l *linter) apiServer() {
	host, hostSet := l.value("k8sServiceHost")
	port, portSet := l.value("k8sServicePort")
	host, port = strings.TrimSpace(host), strings.TrimSpace(port)
	ref, _ := l.value("k8sServiceHostRef.name")
	refKey, _ := l.value("k8sServiceHostRef.key")
	urls := l.setting("k8s-api-server-urls")
	kubeconfig, _ := l.value("kubeConfigPath")
	fault := func(path, message string) { l.find(ValuesAPIServer, diag.Error, l.at(path), path, message) }

	if l.places["k8sServiceHostRef"] != (place{}) && (ref == "") != (refKey == "") {
		fault("k8sServiceHostRef", "k8sServiceHostRef names a ConfigMap and a key; one of them is empty")
	}
	switch {
	case host != "" && ref != "":
		fault("k8sServiceHost", "k8sServiceHost and k8sServiceHostRef are both set: the chart takes one of them and fails")
	case host != "":
		l.host(host, port)
	case ref != "" && refKey != "", urls != "", kubeconfig != "":
	case hostSet && l.kpr():
		fault("k8sServiceHost", "k8sServiceHost is empty: agents that replace kube-proxy dial the ClusterIP of default/kubernetes, which nobody serves without them")
	case l.kpr():
		path, _ := l.pathOf(kprKey)
		fault(path, "kubeProxyReplacement is on without k8sServiceHost and k8sServicePort (or k8s.apiServerURLs): agents dial the ClusterIP of default/kubernetes, which nobody serves once kube-proxy is gone")
	case portSet && port != "":
		fault("k8sServicePort", "k8sServicePort is set and k8sServiceHost is not: the port alone does nothing")
	}
	if urls != "" && !strings.ContainsAny(strings.TrimSpace(urls), " ,") {
		path, _ := l.pathOf("k8s-api-server-urls")
		l.find(ValuesAPIServer, diag.Info, l.at(path), path, "k8s.apiServerURLs names one server: agents fail over between several only")
	}
}

// host judges an address that is not empty.
func (l *linter) host(host, port string) {
	fault := func(s diag.Severity, path, message string) { l.find(ValuesAPIServer, s, l.at(path), path, message) }
	if host == "auto" {
		if !l.atLeast("1.16") {
			fault(diag.Error, "k8sServiceHost", "k8sServiceHost: auto comes with 1.16; the chart of "+l.version+" writes the word itself as the host")
		}
		return
	}
	if port == "" || port == "0" {
		path := "k8sServicePort"
		if _, ok := l.places[path]; !ok {
			path = "k8sServiceHost"
		}
		fault(diag.Error, path, "k8sServiceHost is set and k8sServicePort is empty: the chart writes an empty port and agents cannot dial it")
	}
	name := strings.Trim(host, "[]")
	addr, err := netip.ParseAddr(name)
	switch {
	case strings.Contains(host, "://"):
		fault(diag.Error, "k8sServiceHost", fmt.Sprintf("k8sServiceHost: %s is a URL; it takes a name or an address, and k8sServicePort the port", host))
	case err != nil && strings.Contains(host, ":"):
		fault(diag.Error, "k8sServiceHost", fmt.Sprintf("k8sServiceHost: %s holds a port; it belongs into k8sServicePort", host))
	case err == nil && name != host:
		fault(diag.Error, "k8sServiceHost", fmt.Sprintf("k8sServiceHost: %s: an IPv6 address goes without brackets", host))
	case host == "kubernetes" || strings.HasPrefix(host, "kubernetes.default"):
		fault(diag.Error, "k8sServiceHost", fmt.Sprintf("k8sServiceHost: %s is the Service that only a working replacement or kube-proxy serves, found through a DNS that needs them too", host))
	case err == nil && slices.Contains(firstServiceAddresses(), addr.String()):
		fault(diag.Warning, "k8sServiceHost", fmt.Sprintf("k8sServiceHost: %s is the usual ClusterIP of default/kubernetes: if it is, nobody serves it without the agents", host))
	case err == nil && addr.IsLoopback() || host == "localhost":
		if !slices.Contains([]string{"6443", "6444", "7445", "16443", ""}, port) {
			fault(diag.Warning, "k8sServicePort", fmt.Sprintf("k8sServicePort: nothing is known to serve the API on %s:%s of every node (k3s 6444, RKE2 6443, Talos 7445)", host, port))
		}
	}
}

// firstServiceAddresses are the first addresses of the Service ranges that
// kubeadm, k3s, EKS and kOps choose by themselves: those of default/kubernetes.
func firstServiceAddresses() []string {
	return []string{"10.96.0.1", "10.43.0.1", "10.100.0.1", "172.20.0.1", "100.64.0.1"}
}

// replacement judges what goes with kubeProxyReplacement or does not.
func (l *linter) replacement() {
	on := l.kpr()
	bpf := l.on(masquerade)
	masqueraded := l.on("enable-ipv4-masquerade") || l.on("enable-ipv6-masquerade")
	report := func(s diag.Severity, key, message string) {
		path, _ := l.pathOf(key)
		l.find(ValuesKPR, s, l.at(path), path, message)
	}
	if bpf && !on && !l.on("enable-node-port") && !l.refusesMasquerade() {
		effect := "it runs without the rest of the replacement, and host traffic to ClusterIPs breaks"
		if !l.atLeast("1.15") {
			effect = "the agent warns and masquerades with iptables"
		}
		report(diag.Error, masquerade, "bpf.masquerade is on and kubeProxyReplacement is not: "+effect)
	}
	if v := l.setting("enable-host-legacy-routing"); v == "false" {
		var missing []string
		if !on {
			missing = append(missing, "kubeProxyReplacement: true")
		}
		if masqueraded && !bpf {
			missing = append(missing, "bpf.masquerade: true")
		}
		if len(missing) > 0 {
			report(diag.Warning, "enable-host-legacy-routing", "bpf.hostLegacyRouting: false has no effect without "+strings.Join(missing, " and ")+": the agent falls back to legacy routing and says so only in its log")
		}
	}
	if v := l.setting("bpf-lb-sock"); v == "false" && on {
		report(diag.Info, "bpf-lb-sock", "socketLB.enabled: false has no effect: kubeProxyReplacement turns socket LB on")
	}
	l.healthz(on, report)
	if v, _ := l.value("waitForKubeProxy"); v == "true" && on {
		l.find(ValuesKPR, diag.Info, l.at("waitForKubeProxy"), "waitForKubeProxy", "waitForKubeProxy has no effect where kubeProxyReplacement is on")
	}
	for _, d := range strings.FieldsFunc(l.setting("devices"), func(r rune) bool { return strings.ContainsRune(" ,", r) }) {
		if strings.HasPrefix(d, "cilium_") || strings.HasPrefix(d, "lxc") || d == "lo" {
			report(diag.Error, "devices", fmt.Sprintf("devices: %s is a device of Cilium's own or of pods; name those that carry the nodes' addresses", d))
		}
	}
}

// refusesMasquerade tells that the agent exits, which has been said.
func (l *linter) refusesMasquerade() bool {
	for _, f := range cilium.StartFaults(l.setting, l.caps) {
		if f.Keys[0] == masquerade && slices.Contains(f.Keys, kprKey) {
			return true
		}
	}
	return false
}

func (l *linter) healthz(on bool, report func(diag.Severity, string, string)) {
	bind := l.setting(healthz)
	if bind == "" {
		return
	}
	port := bind[strings.LastIndexByte(bind, ':')+1:]
	switch {
	case !strings.Contains(bind, ":") || port == "" || strings.Trim(port, "0123456789") != "":
		report(diag.Error, healthz, fmt.Sprintf("kubeProxyReplacementHealthzBindAddr: %q is no address and port; it takes 0.0.0.0:10256 or [::]:10256", bind))
	case !on && l.atLeast("1.17"):
		report(diag.Warning, healthz, "kubeProxyReplacementHealthzBindAddr has no effect without kubeProxyReplacement")
	case !on && port == "10256":
		report(diag.Error, healthz, "kubeProxyReplacementHealthzBindAddr takes port 10256, which the kube-proxy that stays holds: agents of "+l.version+" exit because of it")
	case port == "10256" && !l.proxyGone():
		effect := "agents log an error and do not answer there"
		if !l.atLeast("1.18") {
			effect = "agents of " + l.version + " exit because of it"
		}
		report(diag.Info, healthz, "kubeProxyReplacementHealthzBindAddr takes port 10256: set it only once kube-proxy is gone from every node; beside it "+effect)
	}
}

// proxyGone tells that the other files turn kube-proxy off.
func (l *linter) proxyGone() bool {
	if l.in.Rancher == nil {
		return false
	}
	off, _ := l.in.Rancher.Bool("disable-kube-proxy")
	return off
}
