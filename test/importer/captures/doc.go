// Package captures turns recordings of a real cluster into test fixtures.
//
// A recording is a folder of what a lab session wrote down: Kubernetes objects
// as kubectl printed them (k8s-services.json, ds-cilium.yaml, …), one folder
// of command output per node, and netfilter/<node>/ with what was read on the
// node itself. A fixture is a snapshot as the tool records one. Nothing in a
// fixture is typed by hand: Import picks the files that a topic names, copies
// command output byte for byte, and rewrites objects as lists without the
// fields that a snapshot never holds. What a recording lacks becomes a gap in
// the fixture's snapshot.yaml, never a made-up answer.
package captures
