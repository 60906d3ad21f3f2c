// Package trace follows the connections to one Service on paper: from the
// client over each frontend to the backends, on every node, as the API wants
// it, as the agent believes it and as the BPF maps hold it.
//
// A Target says what is traced: a Service, an address that somebody saw, or a
// pod. A Client says who connects, because that changes the way: a pod's socket
// is translated at connect, a packet from outside at a network device, and a
// Local policy, a non-routable ClusterIP or a switched-off replacement stops
// the one and not the other. Without a Client every kind is looked at.
//
// For every frontend, nodes that hold the same are one Group. A Group has the
// three layers side by side, a State and, where a layer is behind, which one.
// The worst of them make the Verdict: one line in words, with what it means for
// connections and the command to type next. What is meant to be so (a Local
// policy without a local endpoint, a terminating backend that still serves, an
// L7 redirect without backends) is explained and does not count. What was not
// read is Unknown and never OK.
//
// Differences are those of the facts Behind and Unwritten, so that a trace and
// a check never contradict each other.
package trace
