// Package e2e runs the built plugin against real Cilium agents: the lab of
// test/lab, brought into each of its states. It needs root, the lab's cache
// and the build tag e2e; what is untagged runs anywhere.
//
// A state whose rule is not built yet stands in pending.yaml. Such a state is
// raised and recorded all the same, and must not raise a false alarm.
package e2e
