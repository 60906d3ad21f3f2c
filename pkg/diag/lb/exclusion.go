package lb

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// admit tells whether a Service has frontends at all, and what makes all of
// them optional.
func (w *writer) admit(s *service) (maybe string, ok bool) {
	proxy, named := s.labels["service.kubernetes.io/service-proxy-name"]
	_, marked := s.labels[corev1.IsHeadlessService]
	switch {
	case s.spec.Type == corev1.ServiceTypeExternalName:
		w.absent(s.name, "", ExternalName, "type ExternalName is an alias in DNS and has no frontend")
	case marked || s.spec.ClusterIP == corev1.ClusterIPNone || slices.Contains(s.spec.ClusterIPs, corev1.ClusterIPNone):
		w.absent(s.name, "", Headless, "a headless Service has no frontend; DNS gives its endpoints")
	case named && proxy != w.node.ProxyName:
		w.absent(s.name, "", OtherProxy, "label service-proxy-name is %q: not for Cilium", proxy)
	case !named && w.node.ProxyName != "":
		w.absent(s.name, "", OtherProxy, "no label service-proxy-name; the agent serves those of %q only", w.node.ProxyName)
	default:
		return w.here(s)
	}
	return "", false
}

// here reads the annotations that keep a Service off nodes. The selector wins
// over the plain name.
func (w *writer) here(s *service) (maybe string, ok bool) {
	what, fits := "", true
	if v, ok := s.annotations["service.cilium.io/node-selector"]; ok {
		// A selector that cannot be read is ignored by agents.
		if sel, err := labels.Parse(v); err == nil {
			what, fits = "annotation service.cilium.io/node-selector "+v, sel.Matches(labels.Set(w.node.Labels))
		}
	} else if v, ok := s.annotations["service.cilium.io/node"]; ok {
		what, fits = "annotation service.cilium.io/node "+v, w.node.Labels["service.cilium.io/node"] == v
	}
	if fits || w.can.Exposure == No {
		return "", true
	}
	if w.can.Exposure == Unknown {
		return what + " does not fit the node", true
	}
	w.absent(s.name, "", NodeAnnotation, "%s does not fit the node", what)
	return "", false
}
