// Package residue holds the checks of what kube-proxy keeps or left in a
// node's kernel: iptables chains, IPVS, nftables tables, and rules that lost
// what made them harmless.
//
// "Is kube-proxy running" and "what is left" are two questions. Rules outlive
// the process that wrote them, and a process that keeps its rules up to date
// leaves nothing over. A check here tells what is there, then whose it is now.
package residue
