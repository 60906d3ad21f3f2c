// Package baseline reads how well the objects of a cluster are, by what their
// own status says: nodes, workloads, and those custom resources that talk to a
// Service or to the API server and so notice first when a step of a migration
// breaks something. Of each object only its name and health are kept.
package baseline

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/stage"
)

// Lister lists the objects of a resource, in every namespace if none is given.
// An error wraps source.ErrAbsent where the cluster has no such resource.
type Lister interface {
	Objects(ctx context.Context, resource, namespace string, each func(*unstructured.Unstructured) error) error
}

// Item is one resource to look at.
type Item struct {
	Resource  string   `json:"resource"` // plural.group
	Namespace string   `json:"namespace,omitempty"`
	Condition string   `json:"condition,omitempty"` // that has to be True
	JSONPath  string   `json:"jsonpath,omitempty"`  // "{.status.phase}", with Want
	Want      string   `json:"want,omitempty"`
	Exclude   []string `json:"exclude,omitempty"` // globs over namespace/name
}

// Valid tells what is wrong with the item.
func (i Item) Valid() error {
	switch {
	case i.Resource == "":
		return errors.New("baseline: an item without a resource; want PLURAL or PLURAL.GROUP")
	case i.Condition != "" && i.JSONPath != "":
		return fmt.Errorf("baseline of %s: condition and jsonpath exclude each other", i.Resource)
	case i.JSONPath != "" && i.Want == "":
		return fmt.Errorf("baseline of %s: jsonpath %s lacks the value that is good (want)", i.Resource, i.JSONPath)
	}
	for _, x := range i.Exclude {
		if _, err := path.Match(x, ""); err != nil {
			return fmt.Errorf("baseline of %s: exclude %q: %w", i.Resource, x, err)
		}
	}
	if i.JSONPath == "" {
		return nil
	}
	_, err := parse(i.JSONPath)
	return err
}

// Defaults are looked at in every cluster; those of others only where the
// cluster has them.
func Defaults() []Item {
	var items []Item
	for _, r := range []string{
		"nodes", "deployments.apps", "statefulsets.apps", "daemonsets.apps", "persistentvolumeclaims",
		"apiservices.apiregistration.k8s.io", // aggregated servers are reached through a Service
		"externalsecrets.external-secrets.io", "applications.argoproj.io", "backups.velero.io", "certificates.cert-manager.io",
		"helmreleases.helm.toolkit.fluxcd.io", "kustomizations.kustomize.toolkit.fluxcd.io",
	} {
		item := Item{Resource: r}
		if r == "daemonsets.apps" {
			item.Exclude = []string{"*/kube-proxy"} // it is meant to go; the checkpoint asks each node for it
		}
		items = append(items, item)
	}
	return items
}

// maxObjects bounds what is kept of one resource.
const maxObjects = 200_000

// Capture looks at all items, in their order. What cannot be listed is said in
// its group; it fails only when ctx ends.
func Capture(ctx context.Context, l Lister, items []Item) ([]stage.Group, error) {
	var groups []stage.Group
	for _, item := range items {
		g := stage.Group{Resource: item.Resource, Objects: map[string]stage.Health{}}
		err := l.Objects(ctx, item.Resource, item.Namespace, func(o *unstructured.Unstructured) error {
			name := o.GetName()
			if ns := o.GetNamespace(); ns != "" {
				name = ns + "/" + name
			}
			if slices.ContainsFunc(item.Exclude, func(x string) bool { ok, _ := path.Match(x, name); return ok }) {
				return nil
			}
			if len(g.Objects) == maxObjects {
				return fmt.Errorf("more than %d objects", maxObjects)
			}
			g.Objects[name] = item.health(o)
			return nil
		})
		switch {
		case ctx.Err() != nil:
			return groups, ctx.Err()
		case errors.Is(err, source.ErrAbsent):
			g = stage.Group{Resource: item.Resource, Absent: true}
		case err != nil:
			g = stage.Group{Resource: item.Resource, Unread: err.Error()}
		}
		groups = append(groups, g)
	}
	return groups, nil
}

// Settled looks again, once, after wait, if something is worse than it was
// before: replicas that scale and pods that roll are not ready for a moment.
// What was well in either look is well.
func Settled(ctx context.Context, l Lister, items []Item, before *stage.Baseline, wait time.Duration) ([]stage.Group, error) {
	now, err := Capture(ctx, l, items)
	if err != nil || before == nil || wait <= 0 || !Worse(before.Objects, now) {
		return now, err
	}
	select {
	case <-ctx.Done():
		return now, nil // the first look counts
	case <-time.After(wait):
	}
	again, err := Capture(ctx, l, items)
	if err != nil {
		return now, nil
	}
	for i := range again {
		for name, h := range now[i].Objects {
			if later, ok := again[i].Objects[name]; ok && h.Good && !later.Good {
				again[i].Objects[name] = h
			}
		}
	}
	return again, nil
}

// Worse holds where an object that was well is not, or is gone.
func Worse(before, now []stage.Group) bool {
	for _, was := range before {
		i := slices.IndexFunc(now, func(g stage.Group) bool { return g.Resource == was.Resource })
		if i < 0 || now[i].Unread != "" {
			continue
		}
		for name, h := range was.Objects {
			if h.Good && !now[i].Objects[name].Good {
				return true
			}
		}
	}
	return false
}
