// Package netfilter reads what a node's kernel does to packets besides Cilium:
// iptables rules of both back ends, nftables tables, IPVS virtual servers, IP
// sets and the addresses of network devices, as their own tools print them.
//
// A save or listing is decoded into a Ruleset, row by row, and then reduced to
// a Part: how many chains belong to whom, which Services kube-proxy's rows
// name, where they send packets, which packets they refuse, and which rows
// have lost the match that made them harmless. A Part is small and holds on to
// no raw output, as a cluster has a thousand nodes and each of them may have
// fifty thousand rows.
//
// Two owners share the prefix KUBE-: kube-proxy and the kubelet. So do other
// programs. OwnerOf goes by exact names and by the shape of kube-proxy's
// hashed names, never by the prefix alone.
//
// All decoders are pure. They give what could be read together with an error
// that names the lines which could not.
package netfilter
