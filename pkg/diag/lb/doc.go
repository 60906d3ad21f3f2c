// Package lb holds the vocabulary of service load balancing: addresses,
// frontends, backends and the rows of an agent's maps and tables, as plain
// values without I/O.
//
// Three layers speak of the same frontend: what the API wants (desired), what
// an agent believes (agent) and what the node's BPF maps hold (kernel). All
// three are told in these types, so that any two can be compared. Numeric ids
// and the order of rows are local to one node and carry no meaning; nothing
// here compares them.
//
// The three layers become Tables: Index.Desired makes one of the API's objects
// for one node, FromAgent of `service list`, FromKernel of the maps. Diff
// compares any two. A Table tells more than addresses: which backends must be
// there and which may be, and why a row is empty, optional, or absent by
// design. So what is meant to be so comes out of Diff explained
// (Delta.Expected), and only the rest is a fault.
//
// Versions differ in what their rows say. This package compares none: the
// caller answers what an agent can do (Capabilities) and what it serves on the
// node (NodeView), and Unknown makes what depends on it optional.
//
// Equal tables have equal sums, whichever node they are of. A Pool keeps one
// of each.
package lb
