// Package lint judges files before they reach a cluster: the values of
// Cilium's chart and the configuration of k3s and RKE2. It reads no cluster, so
// it speaks of what the files say alone: what the chart or the agent will
// refuse, what will do nothing, and what will leave Services without anyone to
// serve them. Every finding names a file and a line.
package lint
