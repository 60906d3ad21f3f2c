package cilium

import "github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"

// Bugs is the table of known faults that can be recognised in a cluster, as of
// November 2026. It holds what some evidence can show to be possible here, not
// all that is known; what a rule of its own tells, such as the wildcard rows of
// 1.19, is not repeated.
func Bugs() []agent.Bug {
	return []agent.Bug{
		{
			Issue: "cilium/cilium#39358", Since: "1.17.0", Fixed: "1.17.4",
			What: "a row kept without protocol from before 1.17 is not found once the Service gets a row for internal clients",
		},
		{
			Issue: "cilium/cilium#41022", Since: "1.18.0", Fixed: "1.18.1",
			What: "a zone to which no endpoint is hinted gets no backends, where all should be used",
		},
		{
			Issue: "cilium/cilium#44436", Since: "1.19.0", Fixed: "1.19.5",
			What: "NodePorts are put on an IPv6 link-local address of the node and not on its global one",
		},
		{
			Issue: "cilium/cilium#44464", Since: "1.19.0", Before: "1.20.0",
			What: "beside kube-proxy in IPVS mode an agent that starts cannot reach the API server's ClusterIP and hangs in its init container",
		},
		{
			Issue: "cilium/cilium#44730", Since: "1.19.0", Fixed: "1.20.2",
			What: "a host port overwrites the row of a LoadBalancer address that is the node's own, as ServiceLB of k3s and RKE2 hands them out",
		},
		{
			Issue: "cilium/cilium#45198", Since: "1.19.0", Fixed: "1.19.3",
			What: "endpoints that left while the API server could not be reached stay as backends until their slice is written again",
		},
		{
			Issue: "cilium/cilium#45252", Since: "1.19.0", Before: "1.20.0",
			What: "clients inside the cluster cannot reach the balancer's address of a Service with externalTrafficPolicy Local from nodes without an endpoint",
		},
	}
}

// BugsOf are those that a version has; false where the version cannot be read.
func BugsOf(version string) ([]agent.Bug, bool) {
	v, ok := parseRelease(version)
	if !ok {
		return nil, false
	}
	var has []agent.Bug
	for _, b := range Bugs() {
		since, _ := parseRelease(b.Since)
		end := b.Fixed
		if end == "" {
			end = b.Before
		}
		until, bounded := parseRelease(end)
		if !v.before(since) && (!bounded || v.before(until)) {
			has = append(has, b)
		}
	}
	return has, true
}
