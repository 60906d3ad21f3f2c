package cilium

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// OperatorContainer is the name of the operator's container in every version,
// for every cloud.
const OperatorContainer = "cilium-operator"

// Operator is a pod of Cilium's operator.
type Operator struct {
	Namespace, Pod, Node string
	Deployment           string // "" where the pod's name does not tell it
	HostNetwork          bool
	// Host and Port are where it is told to find the API server; Host is "" where
	// nothing tells it, so that the kubelet's variables hold: the ClusterIP of
	// default/kubernetes.
	Host, Port string
	Ready      bool
	// Ended is the last line of the run before, as the kubelet kept it, "" for none.
	Ended string
}

// Operators finds the operator's pods among pods, those on their way out left
// out, by namespace and name.
func Operators(pods []corev1.Pod) []Operator {
	var out []Operator
	for i := range pods {
		pod := &pods[i]
		at := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == OperatorContainer })
		if at < 0 || !isOperator(pod.Labels) || pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
			continue
		}
		o := Operator{Namespace: pod.Namespace, Pod: pod.Name, Node: pod.Spec.NodeName, HostNetwork: pod.Spec.HostNetwork, Deployment: deploymentOf(pod)}
		o.Host, o.Port = ServiceHost(pod.Spec.Containers[at])
		for _, s := range pod.Status.ContainerStatuses {
			if s.Name != OperatorContainer {
				continue
			}
			o.Ready = s.Ready
			for _, t := range []*corev1.ContainerStateTerminated{s.State.Terminated, s.LastTerminationState.Terminated} {
				if t != nil && o.Ended == "" {
					lines := strings.Split(strings.TrimSpace(t.Message), "\n")
					o.Ended = PlainLine(lines[len(lines)-1], 400)
				}
			}
		}
		out = append(out, o)
	}
	slices.SortFunc(out, func(a, b Operator) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod))
	})
	return out
}

// isOperator knows the label of the chart and the one of manifests older than
// its app.kubernetes.io labels.
func isOperator(labels map[string]string) bool {
	return labels["io.cilium/app"] == "operator" || labels["app.kubernetes.io/name"] == "cilium-operator" || labels["name"] == "cilium-operator"
}

func deploymentOf(pod *corev1.Pod) string {
	hash := pod.Labels["pod-template-hash"]
	for _, o := range pod.OwnerReferences {
		if name, ok := strings.CutSuffix(o.Name, "-"+hash); ok && o.Kind == "ReplicaSet" && hash != "" {
			return name
		}
	}
	return ""
}

// ServiceHost is where a container is told to find the API server; host is ""
// where nothing in its own environment tells. A value that is kept elsewhere is
// named in parentheses.
func ServiceHost(c corev1.Container) (host, port string) {
	for _, e := range c.Env {
		value := e.Value
		if e.ValueFrom != nil && e.ValueFrom.ConfigMapKeyRef != nil {
			value = cmp.Or(value, "(ConfigMap "+e.ValueFrom.ConfigMapKeyRef.Name+")")
		}
		switch e.Name {
		case "KUBERNETES_SERVICE_HOST":
			host = value
		case "KUBERNETES_SERVICE_PORT":
			port = value
		}
	}
	return host, port
}
