package distro

// kubeadm, and kubespray on top of it, install kube-proxy as an add-on. An
// upgrade leaves it out only where its ConfigMap is gone too (kubernetes,
// cmd/kubeadm/app/phases/upgrade/postupgrade.go).
func kubeadm() known {
	return known{
		Distro: Distro{
			Name: "kubeadm", Known: Run,
			Proxy:  "a DaemonSet",
			Stop:   "delete the DaemonSet and the ConfigMap kube-proxy; upgrade with --skip-phases=addon/kube-proxy",
			Return: "kubeadm upgrade as long as the ConfigMap kube-proxy is there; kubespray as long as its variables ask for it",
		},
		sign: annotated("kubeadm.alpha.kubernetes.io/cri-socket"),
	}
}
