package probe

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/request"
)

// Policies finds the policies that select a pod; kube.Client has what it takes.
type Policies interface {
	// Selecting names the policies that select the pod and isolate it in the
	// direction, ingress or egress, as kubectl names them:
	// "networkpolicy/shop/deny". Those of the whole cluster have no namespace.
	Selecting(ctx context.Context, pod *corev1.Pod, ingress bool) ([]string, error)
	// PodAt is the pod with an address, nil if there is none.
	PodAt(ctx context.Context, ip netip.Addr) (*corev1.Pod, error)
}

// Blame names the policies behind denials: a packet denied on its way out is
// refused by what selects its source, else by what selects its target. It is
// told by the node: the source's agent judges egress, the target's ingress; on
// one and the same node both may have, and both are named.
func Blame(ctx context.Context, by Policies, paths []request.Path) {
	if by == nil {
		return
	}
	known := map[netip.Addr]*corev1.Pod{}
	at := func(ip netip.Addr) *corev1.Pod {
		pod, ok := known[ip]
		if !ok {
			pod, _ = by.PodAt(ctx, ip) // who may not list pods gets no names
			known[ip] = pod
		}
		return pod
	}
	for i := range paths {
		path := &paths[i]
		changed := false
		for k := range path.Events {
			e := &path.Events[k]
			if !e.Denied {
				continue
			}
			var names []string
			if pod := at(e.To.Addr()); pod != nil && pod.Spec.NodeName == e.Node {
				more, _ := by.Selecting(ctx, pod, true)
				names = append(names, more...)
			}
			if pod := at(e.From); pod != nil && pod.Spec.NodeName == e.Node {
				more, _ := by.Selecting(ctx, pod, false)
				names = append(names, more...)
			}
			slices.Sort(names)
			if e.Rule = strings.Join(slices.Compact(names), ", "); e.Rule != "" {
				changed = true
			}
		}
		if changed {
			request.Judge(path)
		}
	}
}
