package lint

import (
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/internal/rancher"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
)

// rancherFlags are the flags that concern Services, of both products.
const rancherFlags = `disable disable-kube-proxy kube-proxy-arg flannel-backend flannel-iface disable-network-policy cni cluster-cidr
service-cidr cluster-dns service-node-port-range node-ip node-external-ip tls-san server egress-selector-mode disable-cloud-controller
disable-apiserver-lb lb-server-port kubelet-arg`

// rke2 tells the product: only RKE2 has the flag cni, and their folders differ.
func (l *linter) rke2() bool {
	c := l.in.Rancher
	if _, ok := c.Get("cni"); ok {
		return true
	}
	return slices.ContainsFunc(c.Entries, func(e rancher.Entry) bool { return strings.Contains(path.Clean(e.File), "rke2") })
}

func (l *linter) rancher() {
	c := l.in.Rancher
	l.rancherNames()
	l.disableList()
	off, isBool := c.Bool("disable-kube-proxy")
	e, said := c.Get("disable-kube-proxy")
	if said && !isBool {
		l.find(K3sConfig, diag.Error, place{e.File, e.Line}, e.Key, fmt.Sprintf("disable-kube-proxy: %q is neither true nor false", c.Last(e.Key)))
	}
	if e, ok := c.Get("kube-proxy-arg"); ok && off {
		l.find(K3sConfig, diag.Info, place{e.File, e.Line}, e.Key, "kube-proxy-arg has no effect where disable-kube-proxy is true")
	}
	if l.in.Values == nil && !off && said == isBool && !l.listed() && !l.agentOnly() {
		l.find(K3sConfig, diag.Info, l.firstFlag(), "disable-kube-proxy", "disable-kube-proxy is not true: kube-proxy stays")
	}
	if l.rke2() {
		l.rke2CNI()
		return
	}
	l.k3sParts(off)
}

// rancherNames finds slips of the pen in the flags that concern Services; the
// products have a hundred others, which are not judged. Unknown flags are
// skipped at start with a warning in the log.
func (l *linter) rancherNames() {
	names := strings.Fields(rancherFlags)
	for _, e := range l.in.Rancher.Entries {
		if slices.Contains(names, e.Key) {
			continue
		}
		meant := ""
		for _, n := range names {
			if len(n) > 6 && (bare(n) == bare(e.Key) || slips(e.Key, n, 3) < 3) {
				meant = n
				break
			}
		}
		if e.Key == "disable-kubeproxy" || e.Key == "disable-proxy" || e.Key == "no-kube-proxy" {
			meant = "disable-kube-proxy"
		}
		if meant != "" && !rancherOther(e.Key) {
			l.find(K3sConfig, diag.Error, place{e.File, e.Line}, e.Key, fmt.Sprintf("%s is no flag and is skipped: did you mean %s?", e.Key, meant))
		}
	}
}

// rancherOther are flags that look like one of those above and are their own.
func rancherOther(key string) bool {
	return slices.Contains([]string{"node-id", "node-label", "kubelet-args", "servers"}, key) || strings.HasPrefix(key, "tls-san-")
}

// listed tells that someone meant to turn kube-proxy off.
func (l *linter) listed() bool {
	return slices.ContainsFunc(l.in.Rancher.Strings("disable"), func(v rancher.Value) bool { return kubeProxy(v.Text) })
}

func kubeProxy(word string) bool {
	b := bare(word)
	return b == "kubeproxy" || b == "rke2kubeproxy"
}

func (l *linter) disableList() {
	for _, v := range l.in.Rancher.Strings("disable") {
		if !kubeProxy(v.Text) {
			continue
		}
		then := "kube-proxy runs on; write disable-kube-proxy: true"
		if off, _ := l.in.Rancher.Bool("disable-kube-proxy"); off {
			l.find(K3sDisableList, diag.Warning, place{v.File, v.Line}, "disable", fmt.Sprintf("disable: %s does nothing; disable-kube-proxy does it here", v.Text))
			continue
		}
		l.find(K3sDisableList, diag.Error, place{v.File, v.Line}, "disable", fmt.Sprintf("disable: %s is accepted and does nothing: %s", v.Text, then))
	}
}

func (l *linter) rke2CNI() {
	e, ok := l.in.Rancher.Get("cni")
	if !ok {
		return // in another file of this server, or canal by default
	}
	var names []string
	for _, v := range l.in.Rancher.Strings("cni") {
		names = append(names, v.Text)
	}
	if !slices.Contains(names, "cilium") && !slices.Contains(names, "none") {
		l.find(K3sConfig, diag.Error, place{e.File, e.Line}, e.Key, fmt.Sprintf("cni: %s: Cilium is not among them; it takes cilium, or none where Cilium is installed by other means", strings.Join(names, ", ")))
	}
}

// k3sParts judges what k3s runs beside Cilium unless it is told not to.
func (l *linter) k3sParts(proxyOff bool) {
	c := l.in.Rancher
	kprWanted := proxyOff || l.listed() || l.in.Values != nil && l.kpr()
	if backend, ok := c.Get("flannel-backend"); ok && c.Last("flannel-backend") != "none" {
		l.find(K3sConfig, diag.Error, place{backend.File, backend.Line}, backend.Key, fmt.Sprintf("flannel-backend: %s: flannel and Cilium both configure pods' networks; it takes none", c.Last("flannel-backend")))
	} else if !ok && kprWanted && !l.agentOnly() {
		l.find(K3sConfig, diag.Error, l.firstFlag(), "flannel-backend", "flannel-backend is not set: flannel runs beside Cilium; it takes none")
	}
	if l.agentOnly() {
		return
	}
	off, _ := c.Bool("disable-network-policy")
	if !off && (kprWanted || c.Last("flannel-backend") == "none") {
		p := l.firstFlag()
		if e, ok := c.Get("disable-network-policy"); ok {
			p = place{e.File, e.Line}
		}
		l.find(K3sConfig, diag.Warning, p, "disable-network-policy", "disable-network-policy is not true: k3s' own controller writes iptables rules beside Cilium's policies")
	}
	if kprWanted && !slices.ContainsFunc(c.Strings("disable"), func(v rancher.Value) bool { return v.Text == "servicelb" }) {
		l.find(K3sConfig, diag.Info, l.firstFlag(), "disable", "servicelb stays: it answers LoadBalancer Services by host ports on every node, beside anything else that does")
	}
}

// agentOnly tells that the file is that of an agent: it joins a server and
// has no flag that only servers take.
func (l *linter) agentOnly() bool {
	c := l.in.Rancher
	if c.Last("server") == "" {
		return false
	}
	servers := []string{"disable", "disable-kube-proxy", "flannel-backend", "disable-network-policy", "cluster-cidr", "service-cidr", "tls-san", "cluster-init", "disable-cloud-controller"}
	return !slices.ContainsFunc(c.Entries, func(e rancher.Entry) bool { return slices.Contains(servers, e.Key) })
}

// firstFlag is where something is missing: the first line that says anything.
func (l *linter) firstFlag() place {
	if len(l.in.Rancher.Entries) == 0 {
		return place{l.in.Rancher.First, 1}
	}
	e := l.in.Rancher.Entries[0]
	return place{e.File, e.Line}
}

// together judges the two kinds of files against each other.
func (l *linter) together() {
	if l.in.Values == nil || l.in.Rancher == nil {
		return
	}
	off, _ := l.in.Rancher.Bool("disable-kube-proxy")
	e, said := l.in.Rancher.Get("disable-kube-proxy")
	switch on := l.kpr(); {
	case off && !on:
		l.find(K3sConfig, diag.Error, place{e.File, e.Line}, e.Key, "disable-kube-proxy is true and kubeProxyReplacement is not on: nobody would serve NodePorts, LoadBalancers and Services dialled from hosts")
	case on && !off && !l.agentOnly():
		p := l.firstFlag()
		if said {
			p = place{e.File, e.Line}
		}
		l.find(K3sConfig, diag.Warning, p, "disable-kube-proxy", "kubeProxyReplacement is on and disable-kube-proxy is not true: both would write Service rules; right only as a stage of a migration")
	}
	l.hostAndRanges()
}

// hostAndRanges judges the API server's address by the cluster's own ranges.
func (l *linter) hostAndRanges() {
	host, _ := l.value("k8sServiceHost")
	port, _ := l.value("k8sServicePort")
	addr, err := netip.ParseAddr(host)
	for _, v := range l.in.Rancher.Strings("service-cidr") {
		if r, bad := netip.ParsePrefix(v.Text); bad == nil && err == nil && r.Contains(addr) {
			l.find(ValuesAPIServer, diag.Error, l.at("k8sServiceHost"), "k8sServiceHost", fmt.Sprintf("k8sServiceHost: %s lies in service-cidr %s of %s:%d: it is a ClusterIP, which nobody serves without the agents", host, v.Text, v.File, v.Line))
		}
	}
	local := host == "localhost" || err == nil && addr.IsLoopback()
	if local && port == "6443" && !l.rke2() {
		l.find(ValuesAPIServer, diag.Error, l.at("k8sServicePort"), "k8sServicePort", "k8sServicePort: 6443 of the loopback answers on k3s servers only; 6444 answers on every node")
	}
	if local && port == "6444" && l.rke2() {
		l.find(ValuesAPIServer, diag.Warning, l.at("k8sServicePort"), "k8sServicePort", "k8sServicePort: RKE2 serves the API of every node on 6443 of the loopback; 6444 is k3s'")
	}
}
