package agent

// Bug is a fault of some versions of Cilium that is known in public.
type Bug struct {
	Issue string // "cilium/cilium#41022"
	// Since is the first version that has it, Fixed the first that has it no
	// more. Without Fixed, Before bounds what is known: the version from which
	// on nobody has looked.
	Since, Fixed, Before string
	What                 string // what goes wrong, without a full stop
}
