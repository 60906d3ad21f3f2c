package migrate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-kpr/kubectl-kpr/internal/kube/write"
	"github.com/kubectl-kpr/kubectl-kpr/internal/plan"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/stage"
)

// restarted is the annotation by which the agents are rolled: its value is the
// reason, so that the same reason twice rolls them once.
const restarted = "kpr.cilium.io/restarted-for"

// AgentSet is the agents' DaemonSet of a cluster.
type AgentSet struct {
	Workloads *write.Workloads
	Object
}

// Generation is the DaemonSet's.
func (a AgentSet) Generation(ctx context.Context) (int64, error) {
	ds, err := a.Workloads.DaemonSet(ctx, a.Namespace, a.Name)
	if err != nil {
		return 0, err
	}
	return ds.Generation, nil
}

// Restart rolls the agents for a reason.
func (a AgentSet) Restart(ctx context.Context, reason string) error {
	return a.Workloads.PatchDaemonSet(ctx, a.Namespace, a.Name, map[string]any{
		"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{"annotations": map[string]any{restarted: reason}}}},
	})
}

// Open says what keeps the roll from being finished.
func (a AgentSet) Open(ctx context.Context) (string, error) { return open(ctx, a.Workloads, a.Object) }

func open(ctx context.Context, w *write.Workloads, o Object) (string, error) {
	ds, err := w.DaemonSet(ctx, o.Namespace, o.Name)
	if err != nil {
		return "", err
	}
	return stage.RollOpen(ds), nil
}

// ProxySet is kube-proxy's DaemonSet of a cluster, and its ConfigMap.
type ProxySet struct {
	Workloads *write.Workloads
	Set       Object
	Map       *Object
}

// Open says what keeps its roll from being finished.
func (p ProxySet) Open(ctx context.Context) (string, error) { return open(ctx, p.Workloads, p.Set) }

// Switch sets or removes the label that keeps kube-proxy off a node.
func (p ProxySet) Switch(ctx context.Context, node string, off bool) error {
	value := ""
	if off {
		value = OffValue
	}
	return p.Workloads.Label(ctx, node, OffLabel, value)
}

// Affinity is the DaemonSet's, "null" if it has none.
func (p ProxySet) Affinity(ctx context.Context) (json.RawMessage, error) {
	ds, err := p.Workloads.DaemonSet(ctx, p.Set.Namespace, p.Set.Name)
	if err != nil {
		return nil, err
	}
	return json.Marshal(ds.Spec.Template.Spec.Affinity)
}

// Fence leaves out nodes with the label.
func (p ProxySet) Fence(ctx context.Context) error {
	ds, err := p.Workloads.DaemonSet(ctx, p.Set.Namespace, p.Set.Name)
	if err != nil {
		return err
	}
	a := ds.Spec.Template.Spec.Affinity.DeepCopy()
	if a == nil {
		a = &corev1.Affinity{}
	}
	fence(a)
	return p.affinity(ctx, a)
}

// fence adds the requirement to every term: terms are alternatives.
func fence(a *corev1.Affinity) {
	if a.NodeAffinity == nil {
		a.NodeAffinity = &corev1.NodeAffinity{}
	}
	sel := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if sel == nil {
		sel = &corev1.NodeSelector{}
		a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = sel
	}
	if len(sel.NodeSelectorTerms) == 0 {
		sel.NodeSelectorTerms = []corev1.NodeSelectorTerm{{}}
	}
	for i := range sel.NodeSelectorTerms {
		t := &sel.NodeSelectorTerms[i]
		if slices.ContainsFunc(t.MatchExpressions, func(r corev1.NodeSelectorRequirement) bool { return r.Key == OffLabel }) {
			continue
		}
		t.MatchExpressions = append(t.MatchExpressions, corev1.NodeSelectorRequirement{Key: OffLabel, Operator: corev1.NodeSelectorOpNotIn, Values: []string{OffValue}})
	}
}

// Unfence puts back the affinity that Affinity gave.
func (p ProxySet) Unfence(ctx context.Context, was json.RawMessage) error {
	var a *corev1.Affinity
	if err := json.Unmarshal(was, &a); err != nil {
		return fmt.Errorf("the captured affinity cannot be read: %w: %w", plan.ErrChanged, err)
	}
	return p.affinity(ctx, a)
}

// affinity writes the part that Fence changes. A merge patch keeps what it does
// not name, so what is to go is named as null.
func (p ProxySet) affinity(ctx context.Context, a *corev1.Affinity) error {
	var v any
	if a != nil {
		var node any
		if n := a.NodeAffinity; n != nil {
			parts := map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": nil, "preferredDuringSchedulingIgnoredDuringExecution": nil}
			if n.RequiredDuringSchedulingIgnoredDuringExecution != nil {
				parts["requiredDuringSchedulingIgnoredDuringExecution"] = n.RequiredDuringSchedulingIgnoredDuringExecution
			}
			if len(n.PreferredDuringSchedulingIgnoredDuringExecution) > 0 {
				parts["preferredDuringSchedulingIgnoredDuringExecution"] = n.PreferredDuringSchedulingIgnoredDuringExecution
			}
			node = parts
		}
		v = map[string]any{"nodeAffinity": node}
	}
	return p.Workloads.PatchDaemonSet(ctx, p.Set.Namespace, p.Set.Name, map[string]any{
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"affinity": v}}},
	})
}

// kept are the objects that Retire deletes.
type kept struct {
	DaemonSet *appsv1.DaemonSet `json:"daemonSet"`
	ConfigMap *corev1.ConfigMap `json:"configMap,omitempty"`
}

// Keep gives what Restore needs.
func (p ProxySet) Keep(ctx context.Context) (json.RawMessage, error) {
	var k kept
	var err error
	if k.DaemonSet, err = p.Workloads.DaemonSet(ctx, p.Set.Namespace, p.Set.Name); err != nil {
		return nil, err
	}
	plain(&k.DaemonSet.ObjectMeta)
	k.DaemonSet.Status = appsv1.DaemonSetStatus{}
	if p.Map != nil {
		k.ConfigMap, err = p.Workloads.ConfigMap(ctx, p.Map.Namespace, p.Map.Name)
		switch {
		case errors.Is(err, source.ErrAbsent):
			k.ConfigMap = nil
		case err != nil:
			return nil, err
		default:
			plain(&k.ConfigMap.ObjectMeta)
		}
	}
	return json.Marshal(k)
}

// plain leaves of an object's metadata what it is created with.
func plain(m *metav1.ObjectMeta) {
	*m = metav1.ObjectMeta{Name: m.Name, Namespace: m.Namespace, Labels: m.Labels, Annotations: m.Annotations}
	delete(m.Annotations, "kubectl.kubernetes.io/last-applied-configuration")
	delete(m.Annotations, appsv1.DeprecatedTemplateGeneration)
}

// Retire deletes both.
func (p ProxySet) Retire(ctx context.Context) error {
	name := ""
	if p.Map != nil {
		name = p.Map.Name
	}
	return p.Workloads.Delete(ctx, p.Set.Namespace, p.Set.Name, name)
}

// Restore creates what Keep gave, if it is what it should be.
func (p ProxySet) Restore(ctx context.Context, raw json.RawMessage) error {
	var k kept
	if err := json.Unmarshal(raw, &k); err != nil || k.DaemonSet == nil {
		return fmt.Errorf("the captured DaemonSet cannot be read: %w", errors.Join(plan.ErrChanged, err))
	}
	if k.DaemonSet.Namespace != p.Set.Namespace || k.DaemonSet.Name != p.Set.Name {
		return fmt.Errorf("the captured DaemonSet is %s/%s, not %s: %w", k.DaemonSet.Namespace, k.DaemonSet.Name, p.Set, plan.ErrChanged)
	}
	if k.ConfigMap != nil && (p.Map == nil || k.ConfigMap.Namespace != p.Map.Namespace || k.ConfigMap.Name != p.Map.Name) {
		return fmt.Errorf("the captured ConfigMap is %s/%s, which the plan does not name: %w", k.ConfigMap.Namespace, k.ConfigMap.Name, plan.ErrChanged)
	}
	return p.Workloads.Create(ctx, k.DaemonSet, k.ConfigMap)
}

// Gone holds where neither is there.
func (p ProxySet) Gone(ctx context.Context) (bool, error) {
	_, err := p.Workloads.DaemonSet(ctx, p.Set.Namespace, p.Set.Name)
	if err == nil || !errors.Is(err, source.ErrAbsent) {
		return false, err
	}
	return true, nil
}
