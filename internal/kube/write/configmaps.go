package write

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	core "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/kubectl-kpr/kubectl-kpr/internal/kube"
)

// Errors of writes that could be made, were it not for what is there.
var (
	// ErrChanged: the object is not as it was read, or is there already.
	ErrChanged = errors.New("somebody else has changed it")
	// ErrTooLarge: the object is larger than the server takes, or a quota is used up.
	ErrTooLarge = errors.New("no room for it")
)

// ConfigMaps reads and writes the ConfigMaps of one namespace. It is safe for
// concurrent use.
type ConfigMaps struct {
	client    core.ConfigMapInterface
	namespace string
}

// NewConfigMaps makes ConfigMaps for a namespace of the cluster of config.
func NewConfigMaps(config *rest.Config, namespace string) (*ConfigMaps, error) {
	client, err := core.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client for core/v1: %w", err)
	}
	return &ConfigMaps{client.ConfigMaps(namespace), namespace}, nil
}

// Get reads one; source.ErrAbsent where there is none.
func (c *ConfigMaps) Get(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	cm, err := c.client.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, kube.Classify("get", c.name(name), err)
	}
	return cm, nil
}

// List reads those with a label.
func (c *ConfigMaps) List(ctx context.Context, selector string) ([]corev1.ConfigMap, error) {
	var out []corev1.ConfigMap
	options := metav1.ListOptions{LabelSelector: selector, Limit: 100}
	for {
		page, err := c.client.List(ctx, options)
		if err != nil {
			return nil, kube.Classify("list", "configmaps in "+c.namespace, err)
		}
		out = append(out, page.Items...)
		if options.Continue = page.Continue; options.Continue == "" {
			return out, nil
		}
	}
}

// Put writes one as it is given and returns it as the server has it. Without a
// resource version it is created; with one it is replaced, if it is still that.
// Errors wrap ErrChanged or ErrTooLarge, else one of source's.
func (c *ConfigMaps) Put(ctx context.Context, cm *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	var out *corev1.ConfigMap
	var err error
	verb := "create"
	if cm.ResourceVersion == "" {
		out, err = c.client.Create(ctx, cm, metav1.CreateOptions{FieldManager: manager})
	} else {
		verb = "update"
		out, err = c.client.Update(ctx, cm, metav1.UpdateOptions{FieldManager: manager})
	}
	switch {
	case err == nil:
		return out, nil
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), verb == "update" && apierrors.IsNotFound(err):
		return nil, fmt.Errorf("%s %s: %w: %w", verb, c.name(cm.Name), ErrChanged, err)
	case apierrors.IsRequestEntityTooLargeError(err), apierrors.IsInvalid(err) && strings.Contains(err.Error(), "Too long"),
		apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota"):
		return nil, fmt.Errorf("%s %s: %w: %w", verb, c.name(cm.Name), ErrTooLarge, err)
	}
	return nil, kube.Classify(verb, c.name(cm.Name), err)
}

func (c *ConfigMaps) name(name string) string { return "configmap " + c.namespace + "/" + name }
