package write

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	core "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/kubectl-kpr/kubectl-kpr/internal/kube"
)

// Pods changes pods. It is safe for concurrent use.
type Pods struct{ client *core.CoreV1Client }

// NewPods makes Pods for the cluster of config, which is copied.
func NewPods(config *rest.Config) (*Pods, error) {
	client, err := core.NewForConfig(rest.CopyConfig(config))
	if err != nil {
		return nil, fmt.Errorf("client for core/v1: %w", err)
	}
	return &Pods{client}, nil
}

// AddEphemeral adds an ephemeral container to a pod. It can never be taken out
// of the pod again. Errors wrap one of source's.
func (p *Pods) AddEphemeral(ctx context.Context, namespace, pod string, c corev1.EphemeralContainer) error {
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"ephemeralContainers": []corev1.EphemeralContainer{c}}})
	if err != nil {
		return fmt.Errorf("ephemeral container of pod %s/%s: %w", namespace, pod, err)
	}
	_, err = p.client.Pods(namespace).Patch(ctx, pod, types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: "kubectl-kpr"}, "ephemeralcontainers")
	if err != nil {
		return kube.Classify("patch", "pods/ephemeralcontainers of "+namespace+"/"+pod, err)
	}
	return nil
}
