package monitor

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// Lister lists the objects of a resource; see kube.Client.
type Lister interface {
	Objects(ctx context.Context, resource, namespace string, each func(*unstructured.Unstructured) error) error
}

// policyKinds are the resources whose objects select pods, with the field that
// does and the word that kubectl has for them.
var policyKinds = []struct {
	resource, field, word string
	everywhere            bool
}{
	{"networkpolicies.networking.k8s.io", "podSelector", "networkpolicy", false},
	{"ciliumnetworkpolicies.cilium.io", "endpointSelector", "cnp", false},
	{"ciliumclusterwidenetworkpolicies.cilium.io", "endpointSelector", "ccnp", true},
}

// Policies names the policies that select a pod, so that whoever is denied
// knows which to read: it is the pod that they select which they let nobody
// else into. What may not be listed is left out; all is false then.
func Policies(ctx context.Context, l Lister, p *corev1.Pod) (names []string, all bool) {
	all = true
	for _, k := range policyKinds {
		namespace := p.Namespace
		if k.everywhere {
			namespace = ""
		}
		err := l.Objects(ctx, k.resource, namespace, func(o *unstructured.Unstructured) error {
			for _, spec := range specsOf(o) {
				if selects(spec, k.field, p.Labels) {
					names = append(names, k.word+"/"+o.GetName())
					break
				}
			}
			return nil
		})
		all = all && err == nil
	}
	slices.Sort(names)
	return slices.Compact(names), all
}

// specsOf are the rules of a policy, of which Cilium's can have several.
func specsOf(o *unstructured.Unstructured) []map[string]any {
	var out []map[string]any
	if spec, ok, _ := unstructured.NestedMap(o.Object, "spec"); ok {
		out = append(out, spec)
	}
	more, _, _ := unstructured.NestedSlice(o.Object, "specs")
	for _, m := range more {
		if spec, ok := m.(map[string]any); ok {
			out = append(out, spec)
		}
	}
	return out
}

// selects matches a selector; Cilium writes where a label comes from before
// its key.
func selects(spec map[string]any, field string, on map[string]string) bool {
	raw, ok, _ := unstructured.NestedMap(spec, field)
	if !ok {
		return false
	}
	var s metav1.LabelSelector
	if runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &s) != nil {
		return false
	}
	plain := metav1.LabelSelector{MatchLabels: map[string]string{}}
	for k, v := range s.MatchLabels {
		plain.MatchLabels[key(k)] = v
	}
	for _, e := range s.MatchExpressions {
		e.Key = key(e.Key)
		plain.MatchExpressions = append(plain.MatchExpressions, e)
	}
	sel, err := metav1.LabelSelectorAsSelector(&plain)
	return err == nil && sel.Matches(labels.Set(on))
}

func key(s string) string {
	for _, prefix := range []string{"k8s:", "any:", "k8s.", "any."} {
		if rest, ok := strings.CutPrefix(s, prefix); ok {
			return rest
		}
	}
	return s
}
