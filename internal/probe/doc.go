// Package probe makes real requests to Services and tells what became of them:
// which backend answered, what translated the address, what was dropped on the
// way and by which policy, and whether that is what a trace of the same path
// says.
//
// A request begins where its client is. A node's begins in the host's network,
// through its agent. A pod's begins in the pod's own network namespace, which
// the agent can enter where Cilium's chart mounts the namespaces (every release
// since 1.14 does); nothing is left behind then. Where it cannot, a program of the pod
// does it by exec, and where the pod has none, an ephemeral container, which
// stays in the pod's description until the pod goes. A pod with the client's
// labels is never made: it would become a backend of whatever selects them.
//
// The way of a request, its Path, comes from a trace: the addresses that this
// client can dial, and what is to become of each. Run fills in what did.
// Everything is bounded: requests by a timeout, a place's requests by a time to
// live that holds on the node, whether or not the client is still there.
//
// This package only reads, as far as the API server is concerned, and execs;
// what would write is given to it as an interface.
package probe
