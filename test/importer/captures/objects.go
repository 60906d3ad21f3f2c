package captures

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// object is a Kubernetes object as kubectl printed it.
type object map[string]any

// recorded says which files of a recording hold a topic's objects. The first
// group of which any file exists is taken, all of its files together.
func recorded(t source.Topic) [][]string {
	switch t {
	case source.Services:
		return [][]string{{"k8s-services.json"}}
	case source.EndpointSlices:
		return [][]string{{"k8s-endpointslices.json"}, {"endpointslices-web.json"}}
	case source.Nodes:
		return [][]string{{"k8s-nodes.json"}}
	case source.Pods:
		return [][]string{{"k8s-pods.json"}, {"pods.yaml"}}
	case source.DaemonSets:
		return [][]string{{"ds-cilium.yaml", "ds-kube-proxy.yaml"}}
	case source.CiliumConfig:
		return [][]string{{"cm-cilium-config.yaml"}}
	}
	return nil
}

// objectsOf reads the objects of a cluster-wide topic and the files they came
// from. It fails with an error that wraps fs.ErrNotExist where none was recorded.
func objectsOf(rec fs.FS, t source.Topic) ([]object, []string, error) {
	for _, group := range recorded(t) {
		var all []object
		var from []string
		for _, name := range group {
			data, err := fs.ReadFile(rec, name)
			if isAbsent(err) {
				continue
			}
			if err != nil {
				return nil, nil, err
			}
			from = append(from, name)
			objs, err := decode(data)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", name, err)
			}
			all = append(all, objs...)
		}
		if len(from) > 0 {
			return all, from, nil
		}
	}
	return nil, nil, fmt.Errorf("%s: %w", t, fs.ErrNotExist)
}

// notThere is what kubectl prints in place of an object that does not exist.
// That is an answer: the list is known, and the object is not on it.
var notThere = regexp.MustCompile(`^Error from server \(NotFound\): [^\n]*\s*$`)

// decode reads one object or a list of objects, as JSON or YAML.
func decode(data []byte) ([]object, error) {
	if notThere.Match(data) {
		return nil, nil
	}
	var o object
	if err := yaml.Unmarshal(data, &o); err != nil {
		return nil, err
	}
	kind, _ := o["kind"].(string)
	if kind == "" {
		return nil, fmt.Errorf("not a Kubernetes object")
	}
	if !strings.HasSuffix(kind, "List") {
		return []object{o}, nil
	}
	items, ok := o["items"].([]any)
	if !ok {
		return nil, fmt.Errorf("list without items")
	}
	objs := make([]object, 0, len(items))
	for i, item := range items {
		m, ok := item.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("item %d is not an object", i)
		}
		objs = append(objs, m)
	}
	return objs, nil
}

// encode writes a list that holds what a snapshot may hold of the objects.
func encode(objs []object) ([]byte, error) {
	items := make([]any, 0, len(objs))
	for _, o := range objs {
		items = append(items, map[string]any(reduce(o)))
	}
	return yaml.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
}

// reduce drops what a snapshot never holds: bookkeeping of the API server,
// kubectl's copy of the applied manifest, and the environment and arguments of
// pods that are neither Cilium's nor kube-proxy's, which may carry secrets.
func reduce(o object) object {
	meta := o.child("metadata")
	delete(meta, "managedFields")
	if notes := meta.child("annotations"); notes != nil {
		delete(notes, "kubectl.kubernetes.io/last-applied-configuration")
		if len(notes) == 0 {
			delete(meta, "annotations")
		}
	}
	if o["kind"] == "Pod" && !ours(meta) {
		spec := o.child("spec")
		for _, list := range []string{"initContainers", "containers", "ephemeralContainers"} {
			containers, _ := spec[list].([]any)
			for _, c := range containers {
				if m, ok := c.(map[string]any); ok {
					delete(m, "env")
					delete(m, "envFrom")
					delete(m, "args")
				}
			}
		}
	}
	return o
}

// ours holds for the metadata of Cilium's and kube-proxy's pods. Charts before
// 1.13 lack the part-of label, kubeadm and static pods use component or k8s-app.
func ours(meta object) bool {
	labels := meta.child("labels")
	for key, values := range map[string][]string{
		"app.kubernetes.io/part-of": {"cilium"},
		"io.cilium/app":             {"operator"},
		"k8s-app":                   {"cilium", "kube-proxy"},
		"component":                 {"kube-proxy"},
	} {
		if v, ok := labels[key].(string); ok && slices.Contains(values, v) {
			return true
		}
	}
	return false
}

// child is the object under a key, nil if there is none.
func (o object) child(key string) object {
	m, _ := o[key].(map[string]any)
	return m
}

// text is the string at a path of keys, "" if there is none.
func (o object) text(path ...string) string {
	for _, key := range path[:len(path)-1] {
		o = o.child(key)
	}
	s, _ := o[path[len(path)-1]].(string)
	return s
}
