package write

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubectl-kpr/kubectl-kpr/internal/kube"
)

// Workloads changes DaemonSets, the labels of nodes and, with kube-proxy's
// DaemonSet, its ConfigMap.
type Workloads struct{ client kubernetes.Interface }

// NewWorkloads makes Workloads for the cluster of config.
func NewWorkloads(config *rest.Config) (*Workloads, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client for apps/v1: %w", err)
	}
	return &Workloads{client}, nil
}

// WorkloadsOf is for tests.
func WorkloadsOf(client kubernetes.Interface) *Workloads { return &Workloads{client} }

// DaemonSet reads one; source.ErrAbsent where there is none.
func (w *Workloads) DaemonSet(ctx context.Context, namespace, name string) (*appsv1.DaemonSet, error) {
	ds, err := w.client.AppsV1().DaemonSets(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, kube.Classify("get", "daemonset "+namespace+"/"+name, err)
	}
	return ds, nil
}

// PatchDaemonSet applies a JSON merge patch, which does nothing where it
// changes nothing.
func (w *Workloads) PatchDaemonSet(ctx context.Context, namespace, name string, patch any) error {
	raw, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	_, err = w.client.AppsV1().DaemonSets(namespace).Patch(ctx, name, types.MergePatchType, raw, metav1.PatchOptions{FieldManager: manager})
	if err != nil {
		return kube.Classify("patch", "daemonset "+namespace+"/"+name, err)
	}
	return nil
}

// Label sets a label on a node, or with "" removes it.
func (w *Workloads) Label(ctx context.Context, node, key, value string) error {
	var v any
	if value != "" {
		v = value
	}
	raw, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{key: v}}})
	if err != nil {
		return err
	}
	if _, err = w.client.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, raw, metav1.PatchOptions{FieldManager: manager}); err != nil {
		return kube.Classify("patch", "node "+node, err)
	}
	return nil
}

// ConfigMap reads one; source.ErrAbsent where there is none.
func (w *Workloads) ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	cm, err := w.client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, kube.Classify("get", "configmap "+namespace+"/"+name, err)
	}
	return cm, nil
}

// Delete deletes a DaemonSet and a ConfigMap; what is gone already is no error.
func (w *Workloads) Delete(ctx context.Context, namespace, daemonSet, configMap string) error {
	policy := metav1.DeletePropagationForeground
	var errs []error
	if err := w.client.AppsV1().DaemonSets(namespace).Delete(ctx, daemonSet, metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil && !apierrors.IsNotFound(err) {
		errs = append(errs, kube.Classify("delete", "daemonset "+namespace+"/"+daemonSet, err))
	}
	if configMap != "" {
		if err := w.client.CoreV1().ConfigMaps(namespace).Delete(ctx, configMap, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, kube.Classify("delete", "configmap "+namespace+"/"+configMap, err))
		}
	}
	return errors.Join(errs...)
}

// Create creates a DaemonSet and a ConfigMap as they were captured, the
// ConfigMap first; what is there already stays.
func (w *Workloads) Create(ctx context.Context, ds *appsv1.DaemonSet, cm *corev1.ConfigMap) error {
	if cm != nil {
		if _, err := w.client.CoreV1().ConfigMaps(cm.Namespace).Create(ctx, cm, metav1.CreateOptions{FieldManager: manager}); err != nil && !apierrors.IsAlreadyExists(err) {
			return kube.Classify("create", "configmap "+cm.Namespace+"/"+cm.Name, err)
		}
	}
	if _, err := w.client.AppsV1().DaemonSets(ds.Namespace).Create(ctx, ds, metav1.CreateOptions{FieldManager: manager}); err != nil && !apierrors.IsAlreadyExists(err) {
		return kube.Classify("create", "daemonset "+ds.Namespace+"/"+ds.Name, err)
	}
	return nil
}
