package probe

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/report"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/request"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/trace"
)

// Bounds of a matrix.
const (
	maxMatrixNodes    = 100
	maxMatrixServices = 16
	maxHostPorts      = 3
)

// Lister finds pods to connect from; kube.Client does.
type Lister interface {
	PodsOn(ctx context.Context, node string, most int64) ([]corev1.Pod, error)
}

// MatrixQuestion is what a matrix is asked.
type MatrixQuestion struct {
	// Only, if not "", is the namespace whose Services and pods are used; else
	// those of the cluster that show each kind of frontend, and a pod of each
	// node.
	Only string
	// Nodes are names or globs; none for all.
	Nodes []string
	Wish  Wish
}

// Matrix tries each kind of frontend that the cluster has, or a namespace, from
// a pod and from the host of each node. It is a checkpoint of a migration: every
// cell says how many nodes are well and which are not.
func (p *Prober) Matrix(ctx context.Context, src source.Source, pods Lister, q MatrixQuestion) (*Answer, error) {
	sel := diag.Selection{Nodes: q.Nodes}
	done, err := diag.Do(ctx, src, sel, nil, append(report.Facts(true), trace.Facts()...)...)
	if err != nil {
		return nil, err
	}
	v := done.Store.Cluster()
	target := "the cluster's kinds of frontends"
	if q.Only != "" {
		target = "namespace " + q.Only
	}
	a := &Answer{Run: done, Probe: &request.Probe{Target: target, Tries: p.pace().tries, Matrix: true}}
	clients, notes := matrixClients(ctx, v, pods, q.Only)
	a.Notes = notes
	targets := representatives(v, q.Only)
	for _, c := range clients {
		for _, t := range targets {
			// A trace that cannot be made says so for its paths' sake, once.
			followed, err := Trace(v, t, c)
			if err != nil {
				if note := fmt.Sprintf("%s: not tried: %v", t, err); !slices.Contains(a.Notes, note) {
					a.Notes = append(a.Notes, note)
				}
				continue
			}
			a.Probe.Paths = append(a.Probe.Paths, Paths(v, followed, c, q.Wish)...)
		}
	}
	a.Probe.Paths, a.Probe.More = Bound(a.Probe.Paths, q.Wish.Max)
	if err := p.Run(ctx, a.Probe.Paths, clients); err != nil {
		return nil, err
	}
	Blame(ctx, p.Policies, a.Probe.Paths)
	return a, nil
}

// matrixClients are the host of each node and a pod on it.
func matrixClients(ctx context.Context, v *fact.View, pods Lister, only string) (clients []Client, notes []string) {
	nodes := v.Nodes()
	if len(nodes) > maxMatrixNodes {
		notes = append(notes, fmt.Sprintf("the first %d of %d nodes were tried; --node chooses others", maxMatrixNodes, len(nodes)))
		nodes = nodes[:maxMatrixNodes]
	}
	var without []string
	for _, n := range nodes {
		clients = append(clients, nodeClient(n.Name))
		c, err := podOn(ctx, pods, n.Name, only)
		if err != nil {
			without = append(without, n.Name)
			continue
		}
		clients = append(clients, c)
	}
	if len(without) > 0 {
		notes = append(notes, "no pod to connect from on "+strings.Join(without, ", ")+": pods there are not known to be well")
	}
	return clients, notes
}

// podOn picks a running pod of a node with an address of its own.
func podOn(ctx context.Context, pods Lister, node, only string) (Client, error) {
	list, err := pods.PodsOn(ctx, node, 200)
	if err != nil {
		return Client{}, err
	}
	for i := range list {
		pod := &list[i]
		if pod.Spec.HostNetwork || pod.DeletionTimestamp != nil || only != "" && pod.Namespace != only || !ready(pod) {
			continue
		}
		if c, err := PodClient(pod); err == nil {
			return c, nil
		}
	}
	return Client{}, fmt.Errorf("node %s: no running pod with an address of its own: %w", node, source.ErrAbsent)
}

func ready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// representatives are Services that together have each kind of frontend, those
// with endpoints alone, and a few pods with host ports.
func representatives(v *fact.View, only string) []trace.Target {
	services, _ := fact.Services.From(v)
	endpoints := withEndpoints(v)
	seen := map[string]bool{}
	var out []trace.Target
	for i := range services {
		s := &services[i]
		name := lb.Name{Namespace: s.Namespace, Name: s.Name}
		if only != "" && s.Namespace != only || !endpoints[name] || s.Spec.ClusterIP == corev1.ClusterIPNone || s.Spec.Type == corev1.ServiceTypeExternalName {
			continue
		}
		fresh := only != ""
		for _, k := range kinds(s) {
			fresh = fresh || !seen[k]
			seen[k] = true
		}
		if fresh && len(out) < maxMatrixServices {
			out = append(out, trace.Target{Kind: trace.ServiceTarget, Namespace: s.Namespace, Name: s.Name})
		}
	}
	var hosts []lb.Name
	for _, n := range v.Nodes() {
		want, _ := fact.Desired.From(v.On(n.Name))
		for _, r := range want.Rows {
			if r.Type == "HostPort" && len(hosts) < maxHostPorts && !slices.Contains(hosts, r.Service) && (only == "" || r.Service.Namespace == only) {
				hosts = append(hosts, r.Service)
				out = append(out, trace.Target{Kind: trace.PodTarget, Namespace: r.Service.Namespace, Name: r.Service.Name})
			}
		}
	}
	return out
}

// kinds are the kinds of frontends of a Service, one word each.
func kinds(s *corev1.Service) []string {
	types := []string{"ClusterIP"}
	for _, p := range s.Spec.Ports {
		if p.NodePort != 0 && !slices.Contains(types, "NodePort") {
			types = append(types, "NodePort")
		}
	}
	if len(s.Spec.ExternalIPs) > 0 {
		types = append(types, "ExternalIPs")
	}
	if len(s.Status.LoadBalancer.Ingress) > 0 {
		types = append(types, "LoadBalancer")
	}
	internal := ""
	if s.Spec.InternalTrafficPolicy != nil {
		internal = string(*s.Spec.InternalTrafficPolicy)
	}
	var out []string
	for _, t := range types {
		policy := internal
		if t != "ClusterIP" {
			policy = string(s.Spec.ExternalTrafficPolicy)
		}
		for _, p := range s.Spec.Ports {
			for _, f := range s.Spec.IPFamilies {
				out = append(out, strings.Join([]string{t, string(p.Protocol), string(f), policy, string(s.Spec.SessionAffinity)}, " "))
			}
		}
	}
	return out
}

func withEndpoints(v *fact.View) map[lb.Name]bool {
	out := map[lb.Name]bool{}
	list, _ := fact.EndpointSlices.From(v)
	for i := range list {
		s := &list[i]
		for _, e := range s.Endpoints {
			if len(e.Addresses) > 0 && (e.Conditions.Ready == nil || *e.Conditions.Ready) {
				out[lb.Name{Namespace: s.Namespace, Name: s.Labels["kubernetes.io/service-name"]}] = true
			}
		}
	}
	return out
}
