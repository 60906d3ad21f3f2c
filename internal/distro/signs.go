package distro

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Signs by which distributions are told apart. Each gives what it saw, "" where
// it saw nothing.

func anyOf(signs ...func(*corev1.Node) string) func(*corev1.Node) string {
	return func(n *corev1.Node) string {
		for _, sign := range signs {
			if because := sign(n); because != "" {
				return because
			}
		}
		return ""
	}
}

func annotated(key string) func(*corev1.Node) string {
	return func(n *corev1.Node) string {
		if _, ok := n.Annotations[key]; ok {
			return "annotation " + key
		}
		return ""
	}
}

func labelled(key string) func(*corev1.Node) string {
	return func(n *corev1.Node) string {
		if _, ok := n.Labels[key]; ok {
			return "label " + key
		}
		return ""
	}
}

func version(part string) func(*corev1.Node) string {
	return func(n *corev1.Node) string {
		if v := n.Status.NodeInfo.KubeletVersion; strings.Contains(v, part) {
			return "kubelet " + v
		}
		return ""
	}
}

func image(prefix string) func(*corev1.Node) string {
	return func(n *corev1.Node) string {
		if i := n.Status.NodeInfo.OSImage; strings.HasPrefix(i, prefix) {
			return "operating system " + i
		}
		return ""
	}
}

func provider(prefix string) func(*corev1.Node) string {
	return func(n *corev1.Node) string {
		if strings.HasPrefix(n.Spec.ProviderID, prefix) {
			return "providerID " + n.Spec.ProviderID
		}
		return ""
	}
}
