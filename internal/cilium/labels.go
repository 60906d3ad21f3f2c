package cilium

// IsAgent tells whether a pod or a pod template with these labels may be an
// agent. Charts set both labels in every version from 1.14 on; older ones only
// k8s-app.
func IsAgent(labels map[string]string) bool {
	return labels["k8s-app"] == "cilium" || labels["app.kubernetes.io/name"] == "cilium-agent"
}
