// Package residue removes from nodes what kube-proxy has left there, and puts
// it back.
//
// A node is looked at and changed through a pod in the host's namespaces, with
// the agent's iptables: it is the newest one on the node, and understands the
// rows of all others. nftables tables are listed and deleted by the host's own
// nft, as no image of Cilium has one.
//
// What goes is what netfilter.Removable proves to be kube-proxy's, nothing
// else; how it goes is an input of iptables-restore --noflush that names each
// jump and each chain, so that what anybody writes meanwhile stays. Where a
// table has changed so that the input does not fit any more, the kernel refuses
// all of it, and the node is looked at again.
//
// Before anything goes, all that the tools show is in a file on the node that
// only root reads, and in a copy beside the operator; the journal knows where,
// and the file's digest. A backup is data: of it come back kube-proxy's chains,
// its jumps and its tables, and nothing else that may be written there.
package residue
