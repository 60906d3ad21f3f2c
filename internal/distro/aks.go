package distro

// aks reconciles its kube-proxy.
func aks() known {
	return known{
		Distro: Distro{
			Name: "AKS", Known: Recorded,
			Proxy:   "a managed DaemonSet",
			Stop:    "kubeProxyConfig.enabled=false of the cluster",
			Return:  "Azure puts a DaemonSet that was deleted by hand back",
			Managed: true,
		},
		sign: labelled("kubernetes.azure.com/cluster"),
	}
}
