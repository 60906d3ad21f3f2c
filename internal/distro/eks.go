package distro

// eks has kube-proxy as an add-on, managed or not.
func eks() known {
	return known{
		Distro: Distro{
			Name: "EKS", Known: Recorded,
			Proxy:   "the add-on kube-proxy, a DaemonSet",
			Stop:    "delete the add-on kube-proxy",
			Return:  "the add-on manager, as long as the add-on is installed",
			Managed: true,
		},
		sign: anyOf(version("-eks-"), labelled("eks.amazonaws.com/nodegroup")),
	}
}
