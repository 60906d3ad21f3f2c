// Package datapath holds the checks of an agent's kube-proxy replacement and
// its parts, one check a file.
package datapath
