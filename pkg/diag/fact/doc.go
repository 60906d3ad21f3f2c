// Package fact turns evidence into typed, version-free knowledge.
//
// A Key names one fact and knows how to derive it. Some keys read one topic of
// evidence (Status, Services); others are derived from those (KubeProxy,
// Agent). A Store holds the facts of one run: artifacts are decoded as they
// arrive and their bytes are dropped at once, what remains is the value and a
// Ref that tells where it came from. A View looks at a Store from one node or
// from the cluster. Every derived fact is worked out once for each node and
// remembered with its error, so that a check may ask as often as it likes.
//
// What could not be read is a fact as well: From returns the error of the
// source, and no zero value may be taken for an answer.
package fact
