package distro

// talos applies kube-proxy from the machine configuration; its hosts have
// neither a shell nor iptables.
func talos() known {
	return known{
		Distro: Distro{
			Name: "Talos", Known: Recorded,
			Proxy:  "a DaemonSet that the machine configuration applies",
			Stop:   "cluster.proxy.disabled: true in the machine configuration of the control plane",
			Return: "an upgrade with a machine configuration that lacks the switch",
			API:    "localhost:7445",
		},
		sign: image("Talos"),
	}
}
