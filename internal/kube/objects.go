package kube

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// Objects lists whatever resource the server has, in its preferred version,
// page by page. A resource is "plural" or "plural.group". Errors wrap one of
// source's; ErrAbsent where the server has no such resource.
func (c *Client) Objects(ctx context.Context, resource, namespace string, each func(*unstructured.Unstructured) error) error {
	gvr, err := c.resolve(resource)
	if err != nil {
		return err
	}
	o := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := c.dynamic.Resource(gvr).Namespace(namespace).List(ctx, o)
		if err != nil {
			return Classify("list", resource, err)
		}
		for i := range page.Items {
			if err := each(&page.Items[i]); err != nil {
				return fmt.Errorf("list %s: %w", resource, err)
			}
		}
		if o.Continue = page.GetContinue(); o.Continue == "" {
			return nil
		}
	}
}

// resolve asks the server which version of a resource it has.
func (c *Client) resolve(resource string) (schema.GroupVersionResource, error) {
	name, group, _ := strings.Cut(resource, ".")
	if group == "" {
		return schema.GroupVersionResource{Version: "v1", Resource: name}, nil
	}
	groups, err := c.version.ServerGroups()
	if err != nil {
		return schema.GroupVersionResource{}, Classify("get", "the API groups", err)
	}
	for _, g := range groups.Groups {
		if g.Name != group {
			continue
		}
		for _, v := range append([]metav1.GroupVersionForDiscovery{g.PreferredVersion}, g.Versions...) {
			list, err := c.version.ServerResourcesForGroupVersion(v.GroupVersion)
			if apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				return schema.GroupVersionResource{}, Classify("get", "the resources of "+v.GroupVersion, err)
			}
			for _, r := range list.APIResources {
				if r.Name == name {
					return schema.GroupVersionResource{Group: group, Version: v.Version, Resource: name}, nil
				}
			}
		}
	}
	return schema.GroupVersionResource{}, fmt.Errorf("list %s: the server has no such resource: %w", resource, source.ErrAbsent)
}
