package distro

// kops writes static pods on every node.
func kops() known {
	return known{
		Distro: Distro{
			Name: "kOps", Known: Recorded,
			Proxy:  "a static pod",
			Stop:   "spec.kubeProxy.enabled: false in the cluster spec, then a rolling update",
			Return: "a node that is made from a cluster spec without the switch",
		},
		sign: labelled("kops.k8s.io/instancegroup"),
	}
}
