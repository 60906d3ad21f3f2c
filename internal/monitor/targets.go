package monitor

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
)

// TargetOf is a pod as a target, without its endpoint. Pods that Cilium knows
// no endpoint of are refused with the reason.
func TargetOf(p *corev1.Pod) (Target, error) {
	name := p.Namespace + "/" + p.Name
	t := Target{Pod: name, Node: p.Spec.NodeName}
	switch {
	case t.Node == "":
		return t, fmt.Errorf("pod %s: on no node yet", name)
	case p.Spec.HostNetwork:
		return t, fmt.Errorf("pod %s: it is on its node's network, where policies of pods do not act; watch the node: kubectl kpr exec %s -- timeout 30 cilium-dbg monitor --type drop", name, t.Node)
	case p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed:
		return t, fmt.Errorf("pod %s: it has ended", name)
	}
	for _, ip := range p.Status.PodIPs {
		if addr, err := netip.ParseAddr(ip.IP); err == nil {
			t.IPs = append(t.IPs, addr.Unmap())
		}
	}
	if len(t.IPs) == 0 {
		return t, fmt.Errorf("pod %s: it has no address yet", name)
	}
	return t, nil
}

// maxAtOnce bounds how many endpoints are watched.
const maxAtOnce = 32

// All watches several targets at a time and hands on their records, one at a
// time. Targets that could not be watched are in failed, by their pod; the
// error is only that of ctx.
func All(ctx context.Context, run Runner, targets []Target, names *Names, d time.Duration, now func() time.Time, each func(Record)) (unread int, failed map[string]error, err error) {
	failed = map[string]error{}
	if len(targets) > maxAtOnce {
		for _, t := range targets[maxAtOnce:] {
			failed[t.Pod] = fmt.Errorf("not watched: more than %d pods at a time", maxAtOnce)
		}
		targets = slices.Clone(targets[:maxAtOnce])
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, t := range targets {
		wg.Go(func() {
			n, err := one(ctx, run, t, d, func(t Target, e agent.Event) {
				r := names.Name(ctx, t, e, now())
				mu.Lock()
				defer mu.Unlock()
				each(r)
			})
			mu.Lock()
			defer mu.Unlock()
			unread += n
			if err != nil {
				failed[t.Pod] = err
			}
		})
	}
	wg.Wait()
	if cause := context.Cause(ctx); errors.Is(cause, context.Canceled) {
		return unread, failed, cause
	}
	return unread, failed, nil
}

func one(ctx context.Context, run Runner, t Target, d time.Duration, each func(Target, agent.Event)) (int, error) {
	var err error
	if t.Endpoint, err = Endpoint(ctx, run, t.Node, t.IPs); err != nil {
		return 0, err
	}
	return Watch(ctx, run, t.Node, t.Endpoint, d, func(e agent.Event) {
		// Translations are of the whole node: without the pod's own there is no
		// saying whose they are.
		if e.Kind != agent.Translation {
			each(t, e)
		}
	})
}
