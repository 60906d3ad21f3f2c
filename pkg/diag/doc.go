// Package diag is the frame in which checks run.
//
// A Check is a value: a name, the rules it may find broken, the facts it needs
// and wants, and a function. Run asks a Source for everything that the chosen
// checks declare, lets the facts be derived as answers arrive, and runs each
// check over them, once for the cluster or once for each node.
//
// A check ends in one of four outcomes: ok, found, not applicable or unknown.
// A needed fact that could not be had makes it unknown, with the reason kept
// as a Gap; unknown is never ok. A wanted fact only sharpens the answer, its
// absence is told as a note. One bad node never ends a run: it becomes a gap,
// the other nodes are still judged.
package diag
