package evidence

import (
	"strings"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/internal/cilium"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// The programs below run in a pod that shares the host's network and process
// namespaces: its own root has sh and bash, the host's is /proc/1/root, and
// the host's programs run in the host's mount namespace. Each is constant, and
// nothing of the cluster goes into it.
const (
	// nftTables lists the names of all tables, then kube-proxy's alone: the
	// whole rule set of a node with iptables-nft can be a hundred times that.
	nftTables = `h='nsenter -t 1 -m -n --'
$h nft list tables || exit
for f in ip ip6; do $h nft list table $f kube-proxy 2>/dev/null; done
exit 0`

	// udpFlows lists UDP flows only: TCP ends by itself when its backend does.
	// Not every host has the tool and not every kernel has the file. That no row
	// is of UDP is an answer.
	udpFlows = `for f in ipv4 ipv6; do nsenter -t 1 -m -n -- conntrack -L -f $f -p udp 2>/dev/null && continue
grep -w udp /proc/net/nf_conntrack
[ $? -lt 2 ]; exit
done
exit 0`

	// rancherConfig prints the files that k3s and RKE2 read, in their order,
	// reduced to top-level keys that concern Services and the network: what
	// else is in them, tokens among it, does not leave the node.
	rancherConfig = `keys=" $1 " r=/proc/1/root
shopt -s nullglob
for d in k3s rke2; do
for f in $r/etc/rancher/$d/config.yaml $r/etc/rancher/$d/config.yaml.d/*.yaml $r/etc/rancher/$d/config.yaml.d/*.yml; do
[ -f "$f" ] || continue
printf '# file: %s\n' "${f#"$r"}"
keep=
while IFS= read -r l || [ -n "$l" ]; do
l=${l%% #*}
case ${l#"${l%%[![:space:]]*}"} in
''|'#'*) continue;;
esac
case $l in
[!-[:space:]#]*) k=${l%%:*} k=${k//[\"\'+ ]/}
case $keys in
*" $k "*) keep=1;;
*) keep=;;
esac;;
esac
[ "$keep" ] && printf '%s\n' "$l"
done <"$f"
done
done
exit 0`
)

// RancherKeys are the settings of k3s and RKE2 that are read from their files,
// the k3s documentation's names.
func RancherKeys() []string {
	return []string{
		"disable", "disable-kube-proxy", "kube-proxy-arg", "flannel-backend", "flannel-iface", "disable-network-policy", "cni",
		"cluster-cidr", "service-cidr", "cluster-dns", "service-node-port-range", "node-ip", "node-external-ip", "tls-san",
		"server", "egress-selector-mode", "disable-cloud-controller", "kubelet-arg",
	}
}

// HostAsk is the way in which a node's host is asked for a topic that only it
// can tell; false for all other topics.
func HostAsk(t source.Topic) (cilium.Ask, bool) {
	spec, ok := source.SpecOf(t)
	if !ok || !spec.Host {
		return cilium.Ask{}, false
	}
	ask := cilium.Ask{Topic: t, Form: spec.Forms[0], MayBeEmpty: true}
	switch t {
	case source.NFTRuleset:
		return ask.By("nft list tables; nft list table ip|ip6 kube-proxy", "sh", "-c", nftTables), true
	case source.HostConntrack:
		return ask.By("conntrack -L -p udp, else /proc/net/nf_conntrack", "sh", "-c", udpFlows), true
	case source.RancherConfig:
		return ask.By("/etc/rancher/{k3s,rke2}/config.yaml and config.yaml.d, reduced on the node", "bash", "-c", rancherConfig, "kpr", strings.Join(RancherKeys(), " ")), true
	}
	return cilium.Ask{}, false
}

// hostAccess is what a pod on a host takes.
func hostAccess() []Access {
	return []Access{
		{Verb: "create", Group: "batch", Resource: "jobs", InCilium: true},
		{Verb: "delete", Group: "batch", Resource: "jobs", InCilium: true},
		{Verb: "list", Resource: "events", InCilium: true},
		{Verb: "create", Resource: "pods", Subresource: "exec", InCilium: true},
		{Verb: "get", Resource: "pods", Subresource: "exec", InCilium: true},
	}
}

// hostBounds are the size and time of an answer of a host.
func hostBounds() (limit int, timeout time.Duration) { return mid, 5 * time.Second }
