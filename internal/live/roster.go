package live

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-kpr/kubectl-kpr/internal/cilium"
	"github.com/kubectl-kpr/kubectl-kpr/internal/kube"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// roster is who there is: nodes and their agents, with the lists that told so.
// Where a list could not be read its error stands in place of it.
type roster struct {
	nodes     []source.Node // selected ones, sorted
	known     map[string]bool
	nodesJSON []byte
	nodesErr  error

	agents    map[string]cilium.Agent
	agentsErr error
	podsJSON  []byte
	podsErr   error
	redirects redirects
	operators []cilium.Operator

	read time.Time
}

// roster discovers once. It fails only where the API server does not answer.
func (s *Source) roster(ctx context.Context) (*roster, error) {
	s.finding.Lock()
	defer s.finding.Unlock()
	if s.seen != nil {
		return s.seen, nil
	}
	version, err := s.kube.ServerVersion(ctx)
	name := cmp.Or(s.options.Context, s.options.Config.Host)
	if errors.Is(err, source.ErrUnreachable) {
		return nil, fmt.Errorf("cluster %s: %w", name, err)
	}
	r := &roster{known: map[string]bool{}, read: s.options.Now()}
	s.listNodes(ctx, r)
	s.listPods(ctx, r)
	if r.nodesErr != nil && len(r.nodes) == 0 {
		for _, name := range slices.Sorted(maps.Keys(r.agents)) {
			r.nodes = append(r.nodes, source.Node{Name: name})
		}
	}
	s.explain(ctx, r)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("cluster %s: %w: %w", name, source.ErrUnreachable, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.about.Version, s.about.Recorded = version, r.read
	s.seen = r
	return r, nil
}

func (s *Source) listNodes(ctx context.Context, r *roster) {
	resource, _ := kube.ResourceOf("nodes")
	keep := func(o kube.Object) bool {
		r.known[o.GetName()] = true
		if n, ok := o.(*corev1.Node); !ok || s.options.Select == nil || s.options.Select(n) {
			r.nodes = append(r.nodes, source.Node{Name: o.GetName()})
		}
		return true
	}
	restart := func() { r.nodes, r.known = nil, map[string]bool{} }
	r.nodesJSON, r.nodesErr = s.kube.List(ctx, resource, keep, restart)
	slices.SortFunc(r.nodes, func(a, b source.Node) int { return strings.Compare(a.Name, b.Name) })
}

// translatesItself holds for pods whose connections socket LB must leave to
// somebody else: virtual machines, and sidecars that match on ClusterIPs. They
// are found by label, so that nobody has to list all pods for them.
func translatesItself(o kube.Object) bool {
	l := o.GetLabels()
	return l["kubevirt.io"] == "virt-launcher" || l["security.istio.io/tlsMode"] != "" || l["linkerd.io/control-plane-ns"] != ""
}

// listPods finds Cilium's, kube-proxy's and static kube-vip's pods, those of local
// redirect policies, and those that socket LB may disturb. Agents are looked for in
// every namespace; static kube-proxy pods can be without labels, so all pods of
// kube-system are looked at and most of them dropped again, page by page. Where
// a namespace was chosen, a second Cilium elsewhere is no evidence.
func (s *Source) listPods(ctx context.Context, r *roster) {
	r.redirects = s.listRedirects(ctx)
	resource, _ := kube.ResourceOf("pods")
	var pods []corev1.Pod
	keep := func(o kube.Object) bool {
		chosen := s.options.CiliumNamespace == "" || o.GetNamespace() == s.options.CiliumNamespace
		if !(kube.IsCiliumPod(o) && chosen) && !kube.IsKubeProxyPod(o) && !kube.IsVirtualIP(o) && !r.redirects.has(o) && !translatesItself(o) {
			return false
		}
		if p, ok := o.(*corev1.Pod); ok && kube.IsCiliumPod(o) {
			pods = append(pods, *p)
		}
		return true
	}
	r.podsJSON, r.podsErr = s.kube.List(ctx, resource, keep, func() { pods = nil }, append([]kube.Selection{
		{Labels: "k8s-app in (cilium,kube-proxy)"},
		{Labels: "app.kubernetes.io/part-of=cilium"},
		{Labels: "app.kubernetes.io/name=cilium-agent"},
		{Labels: "component=kube-proxy"},
		{Namespace: "kube-system"},
		{Labels: "kubevirt.io=virt-launcher"},
		{Labels: "security.istio.io/tlsMode"},
		{Labels: "linkerd.io/control-plane-ns"},
	}, r.redirects.selections()...)...)
	r.operators = cilium.Operators(pods)
	if r.agentsErr = r.podsErr; r.agentsErr == nil {
		r.agents, r.agentsErr = cilium.Agents(pods, s.options.CiliumNamespace)
	}
}

// installed tells whether there is one Cilium to ask. Agents that all are gone
// while their DaemonSet is there are a finding, not a mistake of the user.
func (s *Source) installed(ctx context.Context, r *roster) error {
	switch {
	case errors.Is(r.agentsErr, cilium.ErrAmbiguous):
		return r.agentsErr
	case !errors.Is(r.agentsErr, cilium.ErrNoAgents):
		return nil
	}
	found := false
	_, err := s.list(ctx, "daemonsets", func(o kube.Object) bool {
		ds, ok := o.(*appsv1.DaemonSet)
		found = found || ok && cilium.IsAgent(ds.Spec.Template.Labels) && (s.options.CiliumNamespace == "" || ds.Namespace == s.options.CiliumNamespace)
		return false
	})
	if err == nil && !found {
		return r.agentsErr
	}
	return nil
}

// explain writes down why nodes have no agent to ask.
func (s *Source) explain(ctx context.Context, r *roster) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, s.concurrency(nil))
	asked := 0
	for i := range r.nodes {
		n := &r.nodes[i]
		a, ok := r.agents[n.Name]
		switch {
		case ok && a.Running:
			continue
		case r.agentsErr != nil:
			n.Reason = r.agentsErr.Error()
			continue
		case !ok:
			n.Reason = "no Cilium agent pod on this node"
			continue
		}
		n.Reason = a.Reason
		if asked++; asked > maxLastLines {
			continue
		}
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if line := s.lastLine(ctx, a); line != "" && !strings.Contains(n.Reason, line) {
				n.Reason += "; its last log line: " + line
			}
		})
	}
	wg.Wait()
}

// maxLastLines bounds how many logs are read only to explain missing agents;
// where more are missing they most likely have one cause.
const maxLastLines = 50

// lastLine is the end of the log of the container that an agent hangs in, ""
// if it cannot be had.
func (s *Source) lastLine(ctx context.Context, a cilium.Agent) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	log, err := s.kube.Log(ctx, a.Namespace, a.Pod, cmp.Or(a.Init, a.Container), kube.LogOptions{Lines: 1, Bytes: 4096})
	if err != nil {
		return ""
	}
	lines := bytes.Split(bytes.TrimSpace(log), []byte("\n"))
	return cilium.PlainLine(string(lines[len(lines)-1]), 200)
}
