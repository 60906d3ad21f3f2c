package lb

// Digest is what a node tells of its lists without sending them. Nodes with
// equal sums hold the same frontends with the same backends, flags, counts and
// states, whatever their ids, the order of slots and their own addresses.
type Digest struct {
	Agent, Kernel string // SHA-256, in hex, of all that is not below
	// Frontends and Dump hold what healthy nodes differ in: frontends with a
	// Local policy, host ports and local redirects.
	Frontends []Frontend
	Dump      Dump
	// Unwritten counts the frontends that the agent does not call Done.
	Unwritten int
}
