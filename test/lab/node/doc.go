// Package node is one machine of the lab: a set of namespaces with its own
// root, control groups and process 1, which keeps containerd and the kubelet
// running and, on the control plane, etcd and the Kubernetes servers.
//
// A node is two processes of this program. The outer one stays in the host's
// process namespace, joins the node's control groups and waits; the inner one
// is the node's process 1. When the outer one dies so does the inner one, and
// with it everything on the node.
package node
