package evidence

import "slices"

// ForPlans is what a command that runs a plan over a journal takes beyond All:
// the journal, the lease, and a pod on each node that it changes. Which objects
// the plan itself changes comes on top.
func ForPlans() []Access {
	plans := append(hostAccess(),
		Access{Verb: "get", Resource: "namespaces", Name: "kube-system"},
		Access{Verb: "get", Resource: "configmaps", InCilium: true},
		Access{Verb: "list", Resource: "configmaps", InCilium: true},
		Access{Verb: "create", Resource: "configmaps", InCilium: true},
		Access{Verb: "update", Resource: "configmaps", InCilium: true},
		Access{Verb: "get", Group: "coordination.k8s.io", Resource: "leases", InCilium: true},
		Access{Verb: "create", Group: "coordination.k8s.io", Resource: "leases", InCilium: true},
		Access{Verb: "update", Group: "coordination.k8s.io", Resource: "leases", InCilium: true},
		Access{Verb: "deletecollection", Group: "batch", Resource: "jobs", InCilium: true},
	)
	all := All()
	return slices.DeleteFunc(plans, func(a Access) bool { return slices.Contains(all, a) })
}
