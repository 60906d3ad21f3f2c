// Scale simulates a cluster of any size and measures the plugin against it.
//
//	go run ./test/scale serve -nodes 1000 -services 10000   a cluster to point any command at
//	go run ./test/scale table -o docs/performance.md        the table of docs/performance.md
//
// Nodes, Services and EndpointSlices are listed, and pods/exec is spoken, as by
// an API server. An agent runs the plugin's own script with this machine's
// shell over stand-ins for the agent's commands; nodes that hold the same are
// run once and the answer is kept, with each node's own address put in. What a
// real agent would need is slept, by what was measured on a cluster of three
// nodes, so that a thousand nodes fit on a small machine.
package main
