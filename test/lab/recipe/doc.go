// Package recipe makes what the lab runs, once, into the cache: binaries built
// from Go modules, images put together from those and from programs of this
// machine's own Debian packages, and a containerd store that holds the images
// unpacked.
//
// Everything in the cache lies under a key of what it was made from: module
// files with their checksums, flags, stubs, the Go version, package versions.
// The same recipe finds its result; a changed one never meets an old result.
package recipe
