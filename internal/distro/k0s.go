package distro

// k0s keeps kube-proxy in a folder of manifests that its controller applies
// (k0sproject/k0s, pkg/component/controller/kubeproxy.go).
func k0s() known {
	return known{
		Distro: Distro{
			Name: "k0s", Known: Read,
			Proxy:  "a DaemonSet that k0s applies again",
			Stop:   "spec.network.kubeProxy.disabled: true in the k0s configuration, then a restart of the controllers",
			Return: "a controller whose configuration lacks the switch applies it again",
		},
		sign: version("+k0s"),
	}
}
