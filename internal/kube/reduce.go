package kube

import (
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// reduce takes from an object what no check reads and what must not leave the
// cluster. The last-applied annotation repeats the whole object, environment
// included.
func reduce(o Object) {
	o.SetManagedFields(nil)
	if a := o.GetAnnotations(); a[lastApplied] != "" {
		delete(a, lastApplied)
		o.SetAnnotations(a)
	}
	if IsVirtualIP(o) {
		switch o := o.(type) {
		case *appsv1.DaemonSet:
			reduceVirtualIP(&o.Spec.Template.Spec)
		case *corev1.Pod:
			reduceVirtualIP(&o.Spec)
		}
		return
	}
	pod, ok := o.(*corev1.Pod)
	if !ok || IsCiliumPod(pod) || IsKubeProxyPod(pod) {
		return
	}
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			c := &containers[i]
			c.Env, c.EnvFrom, c.Args, c.Command = nil, nil, nil, nil
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		c := &pod.Spec.EphemeralContainers[i]
		c.Env, c.EnvFrom, c.Args, c.Command = nil, nil, nil, nil
	}
}

// IsCiliumPod reports whether a pod is Cilium's own: agent, operator, Envoy.
func IsCiliumPod(o Object) bool {
	l := o.GetLabels()
	return l["k8s-app"] == "cilium" || l["app.kubernetes.io/part-of"] == "cilium" || l["app.kubernetes.io/name"] == "cilium-agent" || l["io.cilium/app"] == "operator"
}

// IsKubeProxyPod reports whether a pod is kube-proxy, from a DaemonSet or
// from a static manifest, whose mirror pods are named after their node and
// may carry no label at all.
func IsKubeProxyPod(o Object) bool {
	l := o.GetLabels()
	if l["k8s-app"] == "kube-proxy" || l["component"] == "kube-proxy" {
		return true
	}
	_, mirror := o.GetAnnotations()[corev1.MirrorPodAnnotationKey]
	return mirror && strings.HasPrefix(o.GetName(), "kube-proxy-")
}

// Classify wraps an error of the API so that it carries exactly one of
// source's errors. A forbidden one names verb and resource.
func Classify(verb, resource string, err error) error {
	class := source.ErrUnreachable
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		class = source.ErrForbidden
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		class = source.ErrAbsent
	}
	return fmt.Errorf("%s %s: %w: %w", verb, resource, class, err)
}

func isAbsent(err error) bool { return errors.Is(err, source.ErrAbsent) }
