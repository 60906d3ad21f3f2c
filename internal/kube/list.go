package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// pageSize is how many objects are asked for at a time.
const pageSize = 500

// Resource is a kind of object that can be listed.
type Resource struct {
	Group, Version string
	Name           string // plural, as RBAC and URLs spell it
	Kind           string
}

// Object is what every listed object offers.
type Object interface {
	runtime.Object
	metav1.Object
}

// Selection narrows a list. The zero Selection is every object of every
// namespace.
type Selection struct {
	Namespace string
	Labels    string // label selector
}

// Resources lists what a Client can list.
func Resources() []Resource {
	return []Resource{
		{"", "v1", "services", "Service"},
		{"", "v1", "nodes", "Node"},
		{"", "v1", "pods", "Pod"},
		{"", "v1", "persistentvolumes", "PersistentVolume"},
		{"apps", "v1", "daemonsets", "DaemonSet"},
		{"discovery.k8s.io", "v1", "endpointslices", "EndpointSlice"},
		{"cilium.io", "v2", "ciliumnodeconfigs", "CiliumNodeConfig"},
		// Cilium 1.15 and older have only this one, 1.20 has it no more.
		{"cilium.io", "v2alpha1", "ciliumnodeconfigs", "CiliumNodeConfig"},
		{"cilium.io", "v2", "ciliumlocalredirectpolicies", "CiliumLocalRedirectPolicy"},
	}
}

// ResourceOf finds a resource by its plural name, in its newest version.
func ResourceOf(name string) (Resource, bool) {
	for _, r := range Resources() {
		if r.Name == name {
			return r, true
		}
	}
	return Resource{}, false
}

// Path is the API path of the list of all namespaces.
func (r Resource) Path() string {
	if r.Group == "" {
		return "/api/" + r.Version + "/" + r.Name
	}
	return "/apis/" + r.Group + "/" + r.Version + "/" + r.Name
}

// List reads the objects of r that any of the selections takes in, page by
// page, and returns those that keep accepts as one JSON list. A nil keep
// accepts all; no selection means everything. Keep is called once for each
// object, but from the start again where the server's pages expired midway:
// restart, if not nil, tells so.
//
// Errors wrap one of source's.
func (c *Client) List(ctx context.Context, r Resource, keep func(Object) bool, restart func(), sels ...Selection) ([]byte, error) {
	if len(sels) == 0 {
		sels = []Selection{{}}
	}
	var out listing
	limit := int64(pageSize)
	for {
		out.reset()
		err := c.listAll(ctx, r, limit, sels, func(o Object) error {
			if out.seen(o) || keep != nil && !keep(o) {
				return nil
			}
			return out.add(r, o)
		})
		switch {
		case err == nil:
			return out.end(), nil
		case apierrors.IsResourceExpired(err) && limit != 0:
			// The continue token outlived the server's history. One list
			// without pages is consistent and cannot expire.
			limit = 0
			if restart != nil {
				restart()
			}
		default:
			return nil, Classify("list", r.Name, err)
		}
	}
}

func (c *Client) listAll(ctx context.Context, r Resource, limit int64, sels []Selection, each func(Object) error) error {
	for _, s := range sels {
		o := metav1.ListOptions{LabelSelector: s.Labels, Limit: limit}
		for {
			page, err := c.page(ctx, r, s.Namespace, o)
			if err != nil {
				return err
			}
			if err := meta.EachListItem(page, func(item runtime.Object) error {
				object, ok := item.(Object)
				if !ok {
					return fmt.Errorf("item of type %T", item)
				}
				return each(object)
			}); err != nil {
				return err
			}
			list, err := meta.ListAccessor(page)
			if err != nil {
				return err
			}
			if o.Continue = list.GetContinue(); o.Continue == "" {
				break
			}
		}
	}
	return nil
}

func (c *Client) page(ctx context.Context, r Resource, namespace string, o metav1.ListOptions) (runtime.Object, error) {
	switch r.Name {
	case "services":
		return c.core.Services(namespace).List(ctx, o)
	case "nodes":
		return c.core.Nodes().List(ctx, o)
	case "pods":
		return c.core.Pods(namespace).List(ctx, o)
	case "persistentvolumes":
		return c.core.PersistentVolumes().List(ctx, o)
	case "daemonsets":
		return c.apps.DaemonSets(namespace).List(ctx, o)
	case "endpointslices":
		return c.slices.EndpointSlices(namespace).List(ctx, o)
	}
	gvr := schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Name}
	return c.dynamic.Resource(gvr).Namespace(namespace).List(ctx, o)
}

// CiliumNodeConfigs lists them in the newest version that the cluster has,
// and says which path that was.
func (c *Client) CiliumNodeConfigs(ctx context.Context) (data []byte, path string, err error) {
	for _, r := range Resources() {
		if r.Name != "ciliumnodeconfigs" {
			continue
		}
		path = r.Path()
		if data, err = c.List(ctx, r, nil, nil); !isAbsent(err) {
			break
		}
	}
	return data, path, err
}

// listing is a JSON list as it grows, in the shape of kubectl get -o json.
type listing struct {
	buf   bytes.Buffer
	names map[string]bool
}

func (l *listing) reset() {
	l.buf.Reset()
	l.buf.WriteString(`{"apiVersion":"v1","kind":"List","items":[`)
	l.names = map[string]bool{}
}

func (l *listing) seen(o Object) bool {
	name := o.GetNamespace() + "/" + o.GetName()
	known := l.names[name]
	l.names[name] = true
	return known
}

func (l *listing) add(r Resource, o Object) error {
	o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind})
	data, err := encode(o)
	if err != nil {
		return err
	}
	if l.buf.Bytes()[l.buf.Len()-1] == '}' {
		l.buf.WriteByte(',')
	}
	l.buf.WriteByte('\n')
	l.buf.Write(data)
	return nil
}

func (l *listing) end() []byte {
	l.buf.WriteString("\n]}\n")
	return l.buf.Bytes()
}

func encode(o Object) ([]byte, error) {
	reduce(o)
	data, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("%s %s/%s: %w", o.GetObjectKind().GroupVersionKind().Kind, o.GetNamespace(), o.GetName(), err)
	}
	return data, nil
}
