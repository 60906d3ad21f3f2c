package lb

import "net/netip"

// RedirectRow is one local redirect policy as an agent resolved it (`lrp list`).
type RedirectRow struct {
	Policy   Name
	Kind     string // how the policy names its frontends: "IP + port", "clusterIP + all svc ports", …
	Service  Name   // the Service it matches, zero where it matches addresses
	Mappings []RedirectMapping
}

// RedirectMapping is one frontend of a policy with the pods on the node that
// take its traffic. IP is invalid where the agent printed none: 1.18 and 1.19
// do so for policies that match a Service.
type RedirectMapping struct {
	Frontend Address
	Targets  []RedirectTarget
}

// RedirectTarget is a pod that a frontend is redirected to.
type RedirectTarget struct {
	Address netip.AddrPort
	Pod     Name
}
