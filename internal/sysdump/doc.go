// Package sysdump is the Source of a cilium sysdump: the archive that
// cilium-cli collects from a cluster, or the one that cilium-bugtool makes of
// one node.
//
// A dump is files named after what was read: lists of the API at the top
// (k8s-services-TIME.yaml), and for each agent pod a folder with the output of
// one command a file (cilium-bugtool-POD-TIME/cmd/cilium-dbg-service-list.md).
// The package finds the top by what lies in it (layout.go), ties each folder to
// its node (nodes.go), knows which file answers which topic (files.go), and
// brings each answer into the form of a snapshot (answer.go): standard output
// and standard error stand in one file there, and a command that failed tells
// so in words.
//
// What a dump does not hold is an error with the reason: many files came only
// with later versions of the collector, and some things are never collected.
// What changed while the dump was made is told by Moving: there is no second
// look at a dump.
package sysdump
