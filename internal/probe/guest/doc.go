// Package guest makes what a probe leaves on a cluster for a while, and takes it
// away again: an ephemeral container in a pod that has no program to connect
// with, and a small workload of its own for a matrix. It is the writing side of
// probe, which knows it only by its interfaces.
//
// An ephemeral container cannot be taken out of a pod's description; it ends by
// itself, and the next probe uses the one that still runs.
package guest
