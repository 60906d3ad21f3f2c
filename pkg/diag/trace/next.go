package trace

import (
	"maps"
	"slices"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
)

// next are the commands that lead on from an issue. Only words that Kubernetes
// allows as names go into one.
func (t *tracer) next(i issue) []Next {
	out := []Next{}
	add := func(why string, argv ...string) { out = append(out, Next{Why: why, Argv: argv}) }
	switch i.state {
	case Behind:
		if len(i.nodes) == 0 || !plainName(i.nodes[0]) {
			break
		}
		node, list := i.nodes[0], []string{"bpf", "lb", "list"}
		if i.layer == Agent {
			list = []string{"service", "list"}
		}
		add("look", append([]string{"kubectl", "kpr", "exec", node, "--", "cilium-dbg"}, list...)...)
		if ns, pod, ok := t.agentPod(node); ok {
			if i.layer == Agent {
				add("look", "kubectl", "logs", "-n", ns, pod, "-c", "cilium-agent", "--tail=100")
			}
			add("repair", "kubectl", "delete", "pod", "-n", ns, pod)
			out[len(out)-1].Note = "restarts the agent of " + node + ", which writes the map anew; connections go on"
		}
	case Nobody, Stops:
		t.nextOfService(i, add)
	case Unknown, Elsewhere:
		add("look", "kubectl", "kpr", "status")
	case OK:
		add("if requests fail all the same", "kubectl", "kpr", "check")
	}
	return out
}

func (t *tracer) agentPod(name string) (ns, pod string, ok bool) {
	i := slices.IndexFunc(t.nodes, func(n *node) bool { return n.name == name })
	if i < 0 || t.nodes[i].life.Life == fact.LifeUnknown {
		return "", "", false
	}
	ns, pod, ok = t.nodes[i].life.PodName()
	return ns, pod, ok && plainName(ns) && plainName(pod)
}

func (t *tracer) nextOfService(i issue, add func(why string, argv ...string)) {
	if len(i.services) == 0 {
		return
	}
	s := i.services[0]
	if s.pod || !plainName(s.Name) || !plainName(s.Namespace) {
		return
	}
	if i.layer == API && s.object != nil && len(s.object.Spec.Selector) > 0 {
		selector := ""
		for _, k := range slices.Sorted(maps.Keys(s.object.Spec.Selector)) {
			if selector != "" {
				selector += ","
			}
			selector += k + "=" + s.object.Spec.Selector[k]
		}
		add("look", "kubectl", "get", "pods", "-n", s.Namespace, "-l", selector, "-o", "wide")
	}
	if i.layer == API || i.state == Stops && len(i.fronts) > 0 && i.layer == "" {
		add("look", "kubectl", "get", "endpointslices", "-n", s.Namespace, "-l", "kubernetes.io/service-name="+s.Name, "-o", "wide")
	}
}
