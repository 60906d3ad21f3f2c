package kube

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// IsVirtualIP reports whether an object is kube-vip, which keeps a virtual
// address of the API servers: its DaemonSet, or the mirror pod of a static
// manifest. Pods of the DaemonSet say no more than it does.
func IsVirtualIP(o Object) bool {
	switch o := o.(type) {
	case *appsv1.DaemonSet:
		return strings.HasPrefix(o.Name, "kube-vip") || strings.HasPrefix(o.Spec.Template.Labels["app.kubernetes.io/name"], "kube-vip")
	case *corev1.Pod:
		_, mirror := o.Annotations[corev1.MirrorPodAnnotationKey]
		return mirror && strings.HasPrefix(o.Name, "kube-vip")
	}
	return false
}

// reduceVirtualIP leaves of kube-vip's environment and arguments what tells its
// address and how it finds the API server: passwords of BGP peers are there too.
func reduceVirtualIP(spec *corev1.PodSpec) {
	keep := []string{"address", "vip_address", "port", "cp_enable", "k8s_config_file", "kubernetes_addr", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			c := &containers[i]
			c.Env = slices.DeleteFunc(slices.Clone(c.Env), func(e corev1.EnvVar) bool { return !slices.Contains(keep, e.Name) })
			c.Args = slices.DeleteFunc(slices.Clone(c.Args), func(a string) bool { return !strings.HasPrefix(strings.TrimLeft(a, "-"), "leaderElectionType=") })
			c.EnvFrom, c.Command = nil, nil
		}
	}
}
