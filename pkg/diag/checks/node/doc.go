// Package node holds the checks of nodes and the agents on them, one check a
// file.
package node
