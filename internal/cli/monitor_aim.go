package cli

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-kpr/kubectl-kpr/internal/monitor"
)

// aim finds the pods that are to be watched.
type aim struct {
	client    kubernetes.Interface
	objects   monitor.Lister
	namespace string
	pods      []corev1.Pod
	targets   []monitor.Target
	skipped   []error
}

// find reads pod/NAME, svc/NAME or NAME, which is a pod's.
func (a *aim) find(ctx context.Context, arg string) error {
	kind, name, typed := strings.Cut(arg, "/")
	if !typed {
		kind, name = "pod", arg
	}
	var err error
	switch kind {
	case "pod", "po", "pods":
		err = a.pod(ctx, name)
	case "svc", "service", "services":
		err = a.service(ctx, name)
	default:
		return fmt.Errorf("target %q: want pod/NAME or svc/NAME", arg)
	}
	if err != nil {
		return err
	}
	for i := range a.pods {
		t, err := monitor.TargetOf(&a.pods[i])
		if err != nil {
			a.skipped = append(a.skipped, err)
			continue
		}
		a.targets = append(a.targets, t)
	}
	if len(a.targets) == 0 {
		return a.skipped[0]
	}
	return nil
}

func (a *aim) pod(ctx context.Context, name string) error {
	p, err := a.client.CoreV1().Pods(a.namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return a.missing("pod", name, err)
	}
	a.pods = append(a.pods, *p)
	return nil
}

func (a *aim) service(ctx context.Context, name string) error {
	if _, err := a.client.CoreV1().Services(a.namespace).Get(ctx, name, metav1.GetOptions{}); err != nil {
		return a.missing("service", name, err)
	}
	list, err := a.client.DiscoveryV1().EndpointSlices(a.namespace).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + name})
	if err != nil {
		return fmt.Errorf("endpointslices of service %s/%s: %w", a.namespace, name, err)
	}
	seen := map[string]bool{}
	for _, s := range list.Items {
		for _, e := range s.Endpoints {
			if e.TargetRef == nil || e.TargetRef.Kind != "Pod" || seen[e.TargetRef.Name] {
				continue
			}
			seen[e.TargetRef.Name] = true
			if err := a.pod(ctx, e.TargetRef.Name); err != nil && len(seen) > 1 {
				return err
			}
		}
	}
	if len(a.pods) == 0 {
		return fmt.Errorf("service %s/%s: %w; kubectl kpr trace svc/%s -n %s says why", a.namespace, name, errNoPods, name, a.namespace)
	}
	return nil
}

func (a *aim) missing(kind, name string, err error) error {
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%s %s/%s: not found; kubectl get %ss -n %s lists those there are", kind, a.namespace, name, kind, a.namespace)
	}
	return fmt.Errorf("%s %s/%s: %w", kind, a.namespace, name, err)
}

// what names the targets.
func (a *aim) what() string {
	if len(a.targets) == 1 {
		return "pod " + a.targets[0].Pod + " on " + a.targets[0].Node
	}
	return fmt.Sprintf("%d pods, %s and others", len(a.targets), a.targets[0].Pod)
}

// names joins what the user may read of the API; what is missing stays an
// address.
func (a *aim) names(ctx context.Context) *monitor.Names {
	var services []corev1.Service
	var slicesOf []discoveryv1.EndpointSlice
	var nodes []corev1.Node
	if l, err := a.client.CoreV1().Services("").List(ctx, metav1.ListOptions{}); err == nil {
		services = l.Items
	}
	if l, err := a.client.DiscoveryV1().EndpointSlices("").List(ctx, metav1.ListOptions{}); err == nil {
		slicesOf = l.Items
	}
	if l, err := a.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{}); err == nil {
		nodes = l.Items
	}
	names := monitor.NewNames(services, slicesOf, nodes)
	for _, t := range a.targets {
		for _, ip := range t.IPs {
			names.Add(ip, "pod/"+t.Pod)
		}
	}
	names.Find = a.podOf
	return names
}

// podOf looks up the pod of an address.
func (a *aim) podOf(ctx context.Context, ip netip.Addr) string {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	l, err := a.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "status.podIP=" + ip.String(), Limit: 2})
	if err != nil || len(l.Items) != 1 || l.Items[0].Spec.HostNetwork {
		return ""
	}
	return "pod/" + l.Items[0].Namespace + "/" + l.Items[0].Name
}
