package distro

// gke has either a static pod or Dataplane V2, whose agent (anetd) is a Cilium
// that Google manages.
func gke() known {
	return known{
		Distro: Distro{
			Name: "GKE", Known: Read,
			Proxy:   "a static pod, or Dataplane V2 in its place",
			Stop:    "not by the user: Google manages it",
			Return:  "Google",
			Managed: true,
		},
		sign: anyOf(version("-gke."), labelled("cloud.google.com/gke-nodepool")),
	}
}
