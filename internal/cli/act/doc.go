// Package act holds the commands that may change a cluster, one file each. Like
// the reading commands they turn flags into options, call a library and hand a
// report to the renderer; what they share with those comes from package cli,
// which does not know this one. The front door puts both under one root.
//
// A command here says what it is about to change before it does, and asks,
// unless it was told not to. What it makes it removes, also when it is
// interrupted; what a killed process leaves behind ends by itself, or is found
// by its label and removed by the next run.
package act
