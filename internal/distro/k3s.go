package distro

// k3s runs kube-proxy as a goroutine of its own process. Agents ask a server
// once, at their start, whether to (k3s-io/k3s, pkg/agent/config).
func k3s() known {
	return known{
		Distro: Distro{
			Name: "k3s", Known: Recorded,
			Proxy:  "inside the k3s process, without a pod",
			Inside: true,
			Stop:   "disable-kube-proxy: true in the configuration of every server (a flag of its own, no item of disable), then a restart of k3s on the servers and of k3s-agent on each node",
			Return: "an agent that starts while one of the servers still has the flag off",
			API:    "127.0.0.1:6444",
			Files:  "/etc/rancher/k3s/",
		},
		sign: anyOf(annotated("k3s.io/node-args"), version("+k3s")),
	}
}
