package distro

// kind is kubeadm in containers.
func kind() known {
	return known{
		Distro: Distro{
			Name: "kind", Known: Recorded,
			Proxy:  "a DaemonSet",
			Stop:   "networking.kubeProxyMode: none at creation, else delete the DaemonSet and its ConfigMap",
			Return: "nothing: clusters are not upgraded",
		},
		sign: provider("kind://"),
	}
}
