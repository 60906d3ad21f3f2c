package live

import (
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubectl-kpr/kubectl-kpr/internal/kube"
)

// maxRedirects bounds the policies whose pods are listed: each is a request.
const maxRedirects = 32

// redirects are the local redirect policies with the pods that they select.
// Whether a policy has a pod on a node is known from these pods alone, and most
// clusters have no policy, so that nothing more is listed.
type redirects struct {
	json    []byte
	err     error
	targets []target
}

type target struct {
	namespace string
	selector  labels.Selector
}

func (s *Source) listRedirects(ctx context.Context) redirects {
	var r redirects
	if r.json, r.err = s.list(ctx, "ciliumlocalredirectpolicies", nil); r.err != nil {
		return r
	}
	var list struct {
		Items []struct {
			metav1.ObjectMeta `json:"metadata"`
			Spec              struct {
				Backend struct {
					Selector *metav1.LabelSelector `json:"localEndpointSelector"`
				} `json:"redirectBackend"`
			} `json:"spec"`
		} `json:"items"`
	}
	if json.Unmarshal(r.json, &list) != nil {
		return r // whoever reads the list says what is wrong with it
	}
	for _, p := range list.Items {
		selector, err := metav1.LabelSelectorAsSelector(p.Spec.Backend.Selector)
		if err != nil || selector.Empty() || p.Namespace == "" || len(r.targets) == maxRedirects {
			continue
		}
		r.targets = append(r.targets, target{p.Namespace, selector})
	}
	return r
}

// has holds for pods that a policy selects.
func (r redirects) has(o kube.Object) bool {
	for _, t := range r.targets {
		if o.GetNamespace() == t.namespace && t.selector.Matches(labels.Set(o.GetLabels())) {
			return true
		}
	}
	return false
}

func (r redirects) selections() []kube.Selection {
	sels := make([]kube.Selection, len(r.targets))
	for i, t := range r.targets {
		sels[i] = kube.Selection{Namespace: t.namespace, Labels: t.selector.String()}
	}
	return sels
}
