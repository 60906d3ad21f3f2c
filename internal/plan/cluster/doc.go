// Package cluster keeps a plan's journal in the cluster that the plan changes,
// so that it outlives the process and the machine of who runs it.
//
// A journal is ConfigMaps in one namespace: an index, kpr-journal-ID, and its
// entries in chunks, kpr-journal-ID-0000 and on, an entry a line as JSON. A
// chunk is small, because every entry sends the last one anew, and far from the
// megabyte that an object may have.
//
// The chunk is written first and the index last: an entry is there once the
// index counts it. What a chunk holds beyond that was cut off by a crash, and
// the next entry takes its place.
//
// Whoever writes the first time after having read claims the index: it is
// written as it is, which changes its version, and the chunk is read again. From
// then on a writer from before can write a chunk at most, but not the index, so
// that of two operators only the later one gets entries in. A Lease keeps that
// from happening in the first place; the index holds where the lease was lost.
package cluster
