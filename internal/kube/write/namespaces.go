package write

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	core "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/kubectl-kpr/kubectl-kpr/internal/kube"
)

// Namespaces makes namespaces with what is in them, and removes them. It is safe
// for concurrent use.
type Namespaces struct{ client *core.CoreV1Client }

// NewNamespaces makes Namespaces for the cluster of config, which is copied.
func NewNamespaces(config *rest.Config) (*Namespaces, error) {
	client, err := core.NewForConfig(rest.CopyConfig(config))
	if err != nil {
		return nil, fmt.Errorf("client for core/v1: %w", err)
	}
	return &Namespaces{client}, nil
}

func created(err error, what string) error {
	if err != nil {
		return kube.Classify("create", what, err)
	}
	return nil
}

// Create creates a namespace. Errors wrap one of source's.
func (n *Namespaces) Create(ctx context.Context, ns *corev1.Namespace) error {
	_, err := n.client.Namespaces().Create(ctx, ns, metav1.CreateOptions{FieldManager: "kubectl-kpr"})
	return created(err, "namespaces")
}

// CreatePod creates a pod.
func (n *Namespaces) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	_, err := n.client.Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{FieldManager: "kubectl-kpr"})
	return created(err, "pods in "+pod.Namespace)
}

// CreateService creates a Service.
func (n *Namespaces) CreateService(ctx context.Context, s *corev1.Service) error {
	_, err := n.client.Services(s.Namespace).Create(ctx, s, metav1.CreateOptions{FieldManager: "kubectl-kpr"})
	return created(err, "services in "+s.Namespace)
}

// With lists the namespaces with labels.
func (n *Namespaces) With(ctx context.Context, labels string) ([]corev1.Namespace, error) {
	list, err := n.client.Namespaces().List(ctx, metav1.ListOptions{LabelSelector: labels})
	if err != nil {
		return nil, kube.Classify("list", "namespaces", err)
	}
	return list.Items, nil
}

// Delete deletes a namespace and, in the background, all that is in it. One that
// is gone is no error.
func (n *Namespaces) Delete(ctx context.Context, name string) error {
	if err := n.client.Namespaces().Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return kube.Classify("delete", "namespace "+name, err)
	}
	return nil
}

// Ready counts the pods of a namespace that are ready, and says why the first
// other one is not.
func (n *Namespaces) Ready(ctx context.Context, namespace string) (ready int, why string, err error) {
	pods, err := n.client.Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, "", kube.Classify("list", "pods in "+namespace, err)
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		ok := false
		for _, c := range p.Status.Conditions {
			ok = ok || c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		}
		switch {
		case ok:
			ready++
		case why == "":
			why = "pod " + p.Name + " on " + p.Spec.NodeName + " is " + string(p.Status.Phase)
			for _, s := range p.Status.ContainerStatuses {
				if s.State.Waiting != nil {
					why += ", " + s.State.Waiting.Reason
				}
			}
		}
	}
	return ready, why, nil
}
