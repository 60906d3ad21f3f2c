// Package migrate holds the real steps of the move from kube-proxy to Cilium's
// replacement, for the engine of internal/plan.
//
// A Plan is made from Inputs, and from nothing else, so that it is the same plan
// when a later process makes it again. Stage 1 changes the release of Cilium in
// sub-steps (address of the API server, replacement, masquerade, host routing),
// through a Driver, and rolls the agents exactly once for each. Stage 2 takes
// kube-proxy away, where it is a DaemonSet one node at a time; elsewhere it says
// what to do by hand, or has a command of the operator's do it, and waits. Stage
// 3 closes the plan. Every stage begins and ends with the checkpoint that verify
// shows.
//
// Steps look at the cluster through three small interfaces: Agents changes the
// agents' DaemonSet, Proxies that of kube-proxy, and Eyes says what each node's
// agent says of itself.
package migrate
