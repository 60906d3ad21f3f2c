package distro

// rke2 has kube-proxy as a static pod: the server or agent process writes its
// manifest at every start, or removes it (rancher/rke2, pkg/executor/staticpod).
func rke2() known {
	return known{
		Distro: Distro{
			Name: "RKE2", Known: Recorded,
			Proxy:  "a static pod kube-proxy-NODE",
			Stop:   "disable-kube-proxy: true in the configuration of every server, then a restart of rke2-server and of rke2-agent on each node, one at a time",
			Return: "a restart of the node's process writes the manifest again while any server it asks still has the flag off",
			API:    "127.0.0.1:6443",
			Files:  "/etc/rancher/rke2/",
		},
		sign: anyOf(annotated("rke2.io/node-args"), version("+rke2")),
	}
}
