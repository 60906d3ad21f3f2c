// Package stage knows the points of the move from kube-proxy to Cilium's
// replacement, as seen from outside: what has to hold at each of them.
//
// A cluster stands at stage 0 while kube-proxy translates Services, at stage 1
// when Cilium does it too, at stage 2 when kube-proxy is gone, and at stage 3
// after it has soaked so. Each node stands somewhere for itself (Stand), and
// the cluster stands where its last node does. A Stage weighs what the checks
// find: a kube-proxy that runs is right at stage 1 and an error at stage 2. Its
// own check, the checkpoint, finds the nodes that are not where the stage wants
// them. Nothing here changes a cluster.
package stage
