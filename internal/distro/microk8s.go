package distro

// microk8s has kube-proxy in one process with the kubelet.
func microk8s() known {
	return known{
		Distro: Distro{
			Name: "microk8s", Known: Read,
			Proxy:  "inside the kubelite process, without a pod",
			Inside: true,
			Stop:   "the argument file of kube-proxy in /var/snap/microk8s/current/args, and a restart of the snap",
			Return: "a reboot or a refresh of the snap starts it as its argument files say",
		},
		sign: labelled("microk8s.io/cluster"),
	}
}
