package service

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// noBackends is the rule about Services that nobody stands behind.
var noBackends = &diag.Rule{
	Name: "api-no-backends", Severity: diag.Error, Settles: true,
	Title: "the API itself has no usable endpoint for a Service",
	Doc: `Nothing is wrong with load balancing: there is nobody to send anything to. The Service's selector matches no
pod, or none of its pods is ready, or it has no selector and nobody wrote an EndpointSlice for it. Under the
replacement clients get "no route to host" at once, from anywhere.

Cilium reads EndpointSlices. Endpoints that were written by hand count only once they are mirrored into a
slice, which the API server's controllers leave out on the label skip-mirror, and before Kubernetes 1.19.

A ClusterIP that never had an endpoint since it was created is only told as info: nobody can depend on it yet.`,
	Proof: []string{
		"kubectl get service,endpointslices -n NAMESPACE -l kubernetes.io/service-name=NAME",
		"kubectl get pods -n NAMESPACE -l SELECTOR",
	},
	Remedy: `Bring up pods that match the selector and become ready, or correct the selector. For a Service without a
selector write an EndpointSlice with the label kubernetes.io/service-name.`,
}

// NoBackends checks that the API has an endpoint for every frontend.
func NoBackends() *diag.Check {
	return ofAPI(noBackends, "the API has a usable endpoint for every Service with a frontend", judgeNoBackends, fact.EndpointSlices, fact.Endpoints, fact.Pods)
}

func judgeNoBackends(p *diag.Pass) error {
	all, err := lacks(p.View(), lb.NoSlice, lb.NoEndpoints, lb.NoneReady)
	if err != nil {
		return err
	}
	for _, l := range all {
		if l.unlisted(p.View()) {
			p.Unknown(fact.EndpointSlices.ID(), fmt.Errorf("whether %s has endpoints is not known: no EndpointSlices were read, and the Endpoints that were have none of that name: %w", l.service, source.ErrAbsent))
			continue
		}
		severity, why := diag.Error, l.nobody(p.View())
		if l.unused(p.View()) {
			severity, why = diag.Info, why+", and none was since the Service was created"
		}
		p.Find(noBackends, l.report(severity, fmt.Sprintf("%s: %s", why, l.consequence())))
	}
	return nil
}

// unlisted holds where nothing can be said of a Service with a selector: its
// Endpoints always exist, if only empty, and the recorded ones lack it.
func (l lack) unlisted(v *fact.View) bool {
	if v.Err(fact.EndpointSlices) == nil || l.rows[0].Cause != lb.NoSlice || len(l.object(v).Spec.Selector) == 0 {
		return false
	}
	all, err := fact.Endpoints.From(v)
	return err == nil && !slices.ContainsFunc(all, func(e corev1.Endpoints) bool { //nolint:staticcheck // old evidence holds nothing else
		return e.Namespace == l.service.Namespace && e.Name == l.service.Name
	})
}

// nobody says why there is no endpoint.
func (l lack) nobody(v *fact.View) string {
	service := l.object(v)
	reason := strings.Join(l.reasons(), "; ")
	switch cause := l.rows[0].Cause; {
	case cause == lb.NoEndpoints && len(service.Spec.Selector) > 0:
		return fmt.Sprintf("no pod is behind selector %s%s", selector(service), matched(v, service))
	case cause == lb.NoSlice && len(service.Spec.Selector) == 0 && !strings.Contains(reason, "no selector"):
		return "without selector: " + reason
	}
	return reason
}

// matched counts the pods of a Service where the pods of its namespace were
// read, which only recordings hold.
func matched(v *fact.View, s *corev1.Service) string {
	pods, err := fact.Pods.From(v)
	if err != nil {
		return ""
	}
	here, match := 0, 0
	for _, pod := range pods {
		if pod.Namespace != s.Namespace {
			continue
		}
		here++
		if labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(pod.Labels)) {
			match++
		}
	}
	if here == 0 {
		return ""
	}
	return fmt.Sprintf(" (it matches %d of %d pods read in the namespace)", match, here)
}

func (l lack) consequence() string {
	switch {
	case l.ready:
		return fmt.Sprintf("every client of %s is refused, while the Service's other frontends serve", l.frontends())
	case l.outside():
		return fmt.Sprintf("every client of %s is refused or dropped, inside and outside", l.frontends())
	}
	return fmt.Sprintf("every client of %s is refused", l.frontends())
}

// unused holds for a ClusterIP whose slices are as they were created, empty:
// the controller counts up a slice's generation when endpoints come or go, and
// keeps one slice when the last is gone.
func (l lack) unused(v *fact.View) bool {
	if l.outside() || l.ready || l.rows[0].Cause != lb.NoEndpoints || len(l.object(v).Spec.Selector) == 0 {
		return false
	}
	all, err := fact.EndpointSlices.From(v)
	if err != nil {
		return false
	}
	found := false
	for _, s := range all {
		if s.Namespace != l.service.Namespace || s.Labels[discoveryv1.LabelServiceName] != l.service.Name {
			continue
		}
		if s.Generation != 1 || len(s.Endpoints) > 0 {
			return false
		}
		found = true
	}
	return found
}
