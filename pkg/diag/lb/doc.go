// Package lb holds the vocabulary of service load balancing: addresses,
// frontends, backends and the rows of an agent's maps and tables, as plain
// values without I/O.
//
// Three layers speak of the same frontend: what the API wants (desired), what
// an agent believes (agent) and what the node's BPF maps hold (kernel). All
// three are told in these types, so that any two can be compared. Numeric ids
// and the order of rows are local to one node and carry no meaning; nothing
// here compares them.
package lb
