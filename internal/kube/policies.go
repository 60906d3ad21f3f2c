package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// Pod reads one pod. Errors wrap one of source's.
func (c *Client) Pod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	pod, err := c.core.Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("pod %s/%s: not found: %w", namespace, name, source.ErrAbsent)
	case err != nil:
		return nil, Classify("get", "pod "+namespace+"/"+name, err)
	}
	return pod, nil
}

// PodAt is the pod with an address of its own, nil if there is none.
func (c *Client) PodAt(ctx context.Context, ip netip.Addr) (*corev1.Pod, error) {
	// The server indexes the first address only.
	pods, err := c.core.Pods("").List(ctx, metav1.ListOptions{FieldSelector: "status.podIP=" + ip.String()})
	if err != nil {
		return nil, Classify("list", "pods", err)
	}
	for i := range pods.Items {
		if p := &pods.Items[i]; !p.Spec.HostNetwork && p.Status.Phase == corev1.PodRunning {
			return p, nil
		}
	}
	return nil, nil
}

// Selecting names the policies that select a pod and isolate it in a direction:
// "networkpolicy/shop/deny", "ciliumnetworkpolicy/shop/web",
// "ciliumclusterwidenetworkpolicy/base". Kinds that the server does not have
// select nothing.
func (c *Client) Selecting(ctx context.Context, pod *corev1.Pod, ingress bool) ([]string, error) {
	var names []string
	var failed []error
	for _, kind := range []struct{ resource, namespace string }{
		{"networkpolicies.networking.k8s.io", pod.Namespace},
		{"ciliumnetworkpolicies.cilium.io", pod.Namespace},
		{"ciliumclusterwidenetworkpolicies.cilium.io", ""},
	} {
		err := c.Objects(ctx, kind.resource, kind.namespace, func(o *unstructured.Unstructured) error {
			var p policy
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &p); err != nil {
				return nil //nolint:nilerr // a policy of a form unknown here selects nobody
			}
			if slices.ContainsFunc(p.rules(), func(r policyRule) bool { return r.isolates(pod, ingress) }) {
				name := strings.ToLower(o.GetKind()) + "/"
				if kind.namespace != "" {
					name += kind.namespace + "/"
				}
				names = append(names, name+o.GetName())
			}
			return nil
		})
		if err != nil && !errors.Is(err, source.ErrAbsent) {
			failed = append(failed, err)
		}
	}
	slices.Sort(names)
	return names, errors.Join(failed...)
}

// policy is what a NetworkPolicy and Cilium's two kinds have of interest here.
type policy struct {
	Spec  *policyRule  `json:"spec"`
	Specs []policyRule `json:"specs"` // Cilium's
}

func (p policy) rules() []policyRule {
	if p.Spec != nil {
		return append([]policyRule{*p.Spec}, p.Specs...)
	}
	return p.Specs
}

type policyRule struct {
	PodSelector      *metav1.LabelSelector `json:"podSelector"`
	PolicyTypes      []string              `json:"policyTypes"`
	EndpointSelector *metav1.LabelSelector `json:"endpointSelector"`
	Ingress          []any                 `json:"ingress"`
	Egress           []any                 `json:"egress"`
	IngressDeny      []any                 `json:"ingressDeny"`
	EgressDeny       []any                 `json:"egressDeny"`
	DefaultDeny      struct {
		Ingress *bool `json:"ingress"`
		Egress  *bool `json:"egress"`
	} `json:"enableDefaultDeny"`
}

// isolates holds where the rule selects the pod and what it does not allow in
// the direction is refused.
func (r policyRule) isolates(pod *corev1.Pod, ingress bool) bool {
	if r.PodSelector != nil {
		types := r.PolicyTypes
		if len(types) == 0 { // the API server's default
			types = []string{"Ingress"}
			if len(r.Egress) > 0 {
				types = append(types, "Egress")
			}
		}
		word := "Egress"
		if ingress {
			word = "Ingress"
		}
		selector, err := metav1.LabelSelectorAsSelector(r.PodSelector)
		return err == nil && slices.Contains(types, word) && selector.Matches(labels.Set(pod.Labels))
	}
	allow, deny, byDefault := r.Egress, r.EgressDeny, r.DefaultDeny.Egress
	if ingress {
		allow, deny, byDefault = r.Ingress, r.IngressDeny, r.DefaultDeny.Ingress
	}
	told := byDefault != nil && *byDefault
	quiet := byDefault != nil && !*byDefault
	if r.EndpointSelector == nil || !told && len(deny) == 0 && (allow == nil || quiet) {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(plainLabels(r.EndpointSelector))
	set := labels.Set{"io.kubernetes.pod.namespace": pod.Namespace, "io.cilium.k8s.policy.serviceaccount": cmp.Or(pod.Spec.ServiceAccountName, "default")}
	for k, v := range pod.Labels {
		set[k] = v
	}
	return err == nil && selector.Matches(set)
}

// plainLabels takes the source off Cilium's labels: k8s:app, any:app.
func plainLabels(s *metav1.LabelSelector) *metav1.LabelSelector {
	plain := func(k string) string {
		for _, prefix := range []string{"k8s:", "any:"} {
			if rest, ok := strings.CutPrefix(k, prefix); ok {
				return rest
			}
		}
		return k
	}
	out := &metav1.LabelSelector{MatchLabels: map[string]string{}}
	for k, v := range s.MatchLabels {
		out.MatchLabels[plain(k)] = v
	}
	for _, e := range s.MatchExpressions {
		e.Key = plain(e.Key)
		out.MatchExpressions = append(out.MatchExpressions, e)
	}
	return out
}

// PodsOn lists up to most running pods of a node. Errors wrap one of source's.
func (c *Client) PodsOn(ctx context.Context, node string, most int64) ([]corev1.Pod, error) {
	pods, err := c.core.Pods("").List(ctx, metav1.ListOptions{FieldSelector: "status.phase=Running,spec.nodeName=" + node, Limit: most})
	if err != nil {
		return nil, Classify("list", "pods", err)
	}
	return pods.Items, nil
}
