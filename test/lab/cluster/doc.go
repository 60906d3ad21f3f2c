// Package cluster raises Kubernetes and Cilium on the lab's nodes and changes
// them: certificates, the port on loopback, what Helm installs, and kube-proxy
// in each of the ways in which a cluster may have it.
package cluster
