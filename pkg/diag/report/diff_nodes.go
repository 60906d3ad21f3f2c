package report

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-kpr/kubectl-kpr/internal/cilium"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// properties compares what Grid shows of each node, versions of the kubelet and
// the kernel, and the cluster's own version.
func (c *comparison) properties() {
	if was, is := c.was.Source.Version, c.is.Source.Version; was != is && was != "" && is != "" {
		c.diff.Properties = append(c.diff.Properties, PropertyChange{Property: "Kubernetes", Before: was, After: is})
	}
	before, after := nodesByName(c.was.Nodes), nodesByName(c.is.Nodes)
	for _, prop := range properties {
		if prop.name == servicesProperty { // the findings and the frontends tell it better
			continue
		}
		for _, name := range c.both {
			c.property(prop.name, name, prop.of(before[name]), prop.of(after[name]))
		}
	}
	for _, name := range c.both {
		if was, is := before[name], after[name]; was.KubeProxy.As != "" && is.KubeProxy.As != "" {
			c.property("kube-proxy runs as", name, kind(was.KubeProxy.As), kind(is.KubeProxy.As))
		}
	}
	c.machines()
}

// kind leaves out what is another with every restart: "pod kube-system/kube-proxy-x2b4d".
func kind(as string) string {
	head, pod, ok := strings.Cut(as, "kube-proxy-")
	if !ok || pod == "" {
		return as
	}
	return head + "kube-proxy-…"
}

// property notes a change. A value that is not known on one side is not
// compared; on both sides it is missed too. An empty one is a thing that a
// version does not tell or have.
func (c *comparison) property(name, node, was, is string) {
	unknown := func(s string) error {
		if s == NotKnown {
			return errors.New("not known there")
		}
		return nil
	}
	a, b := unknown(was), unknown(is)
	if a != nil || b != nil {
		c.uncompared(name, node, a, b)
		return
	}
	if was == is || was == "" || is == "" {
		return
	}
	i := slices.IndexFunc(c.diff.Properties, func(p PropertyChange) bool { return p.Property == name && p.Before == was && p.After == is })
	if i < 0 {
		i = len(c.diff.Properties)
		c.diff.Properties = append(c.diff.Properties, PropertyChange{Property: name, Before: was, After: is})
	}
	c.diff.Properties[i].Nodes = append(c.diff.Properties[i].Nodes, node)
}

func nodesByName(nodes []Node) map[string]Node {
	out := make(map[string]Node, len(nodes))
	for _, n := range nodes {
		out[n.Name] = n
	}
	return out
}

// machines compares what Nodes say of their machines.
func (c *comparison) machines() {
	before, errA := fact.Nodes.From(c.a)
	after, errB := fact.Nodes.From(c.b)
	if errA != nil || errB != nil {
		c.uncompared("Nodes", "", errA, errB)
		return
	}
	now := map[string]corev1.Node{}
	for _, n := range after {
		now[n.Name] = n
	}
	for _, n := range before {
		is, ok := now[n.Name]
		if !ok {
			continue
		}
		was := n.Status.NodeInfo
		c.property("Kubelet", n.Name, was.KubeletVersion, is.Status.NodeInfo.KubeletVersion)
		c.property("Kernel", n.Name, was.KernelVersion, is.Status.NodeInfo.KernelVersion)
		c.property("Addresses", n.Name, addresses(n), addresses(is))
		c.property("Pod ranges", n.Name, strings.Join(n.Spec.PodCIDRs, ", "), strings.Join(is.Spec.PodCIDRs, ", "))
	}
}

func addresses(n corev1.Node) string {
	var out []string
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP || a.Type == corev1.NodeExternalIP {
			out = append(out, a.Address)
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// settings compares cilium-config key by key, and what agents were told
// otherwise and what they run, as far as they show it.
func (c *comparison) settings() {
	was, errA := fact.CiliumConfig.From(c.a)
	is, errB := fact.CiliumConfig.From(c.b)
	c.uncompared("cilium-config", "", errA, errB)
	if errA == nil && errB == nil {
		keys := slices.Sorted(maps.Keys(was))
		for k := range is {
			if _, ok := was[k]; !ok {
				keys = append(keys, k)
			}
		}
		for _, k := range keys {
			before, after := valueOf(was, k), valueOf(is, k)
			if !same(before, after) {
				c.diff.Settings = append(c.diff.Settings, SettingChange{Key: k, In: "cilium-config", Before: before, After: after})
			}
		}
	}
	for _, node := range c.agents() {
		c.running(node)
	}
	sortChanges(c.diff)
}

func valueOf(m map[string]string, k string) *string {
	v, ok := m[k]
	if !ok {
		return nil
	}
	return &v
}

func same(a, b *string) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }

// running compares the rows of one node.
func (c *comparison) running(node string) {
	before, errA := fact.Drift.From(c.a.On(node))
	after, errB := fact.Drift.From(c.b.On(node))
	if errA != nil || errB != nil {
		c.uncompared("settings of agents", node, errA, errB)
		return
	}
	now := map[string]fact.DriftRow{}
	for _, r := range after {
		now[r.Key] = r
	}
	for _, was := range before {
		is, ok := now[was.Key]
		if !ok {
			continue
		}
		if was.Known && is.Known && !alike(was, is) {
			c.setting(SettingChange{Key: was.Key, In: "agents", Before: &was.Runs, After: &is.Runs}, node)
		}
		if (was.By != "" || is.By != "") && (was.Told != is.Told || was.By != is.By) {
			told := func(r fact.DriftRow) *string {
				s := fmt.Sprintf("%s (%s)", r.Told, cmp.Or(r.By, "cilium-config"))
				return &s
			}
			c.setting(SettingChange{Key: was.Key, In: "CiliumNodeConfig", Before: told(was), After: told(is)}, node)
		}
	}
}

// alike holds for values that mean the same, and for those that cannot be
// compared: a status and a list of settings spell things in their own ways.
func alike(a, b fact.DriftRow) bool {
	if a.Runs == b.Runs {
		return true
	}
	all := cilium.Settings()
	i := slices.IndexFunc(all, func(s cilium.Setting) bool { return s.Key == a.Key })
	if i < 0 || a.Seen == b.Seen {
		return i >= 0 && all[i].Same(a.Runs, b.Runs) == lb.Yes
	}
	return all[i].Same(a.Runs, b.Runs) != lb.No || all[i].Kind == cilium.Globs
}

func (c *comparison) setting(s SettingChange, node string) {
	i := slices.IndexFunc(c.diff.Settings, func(x SettingChange) bool {
		return x.Key == s.Key && x.In == s.In && same(x.Before, s.Before) && same(x.After, s.After)
	})
	if i < 0 {
		i = len(c.diff.Settings)
		c.diff.Settings = append(c.diff.Settings, s)
	}
	c.diff.Settings[i].Nodes = append(c.diff.Settings[i].Nodes, node)
}
