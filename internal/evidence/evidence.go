// Package evidence is the bill of materials: everything that can be learned,
// each topic with the ways to get it, what that costs in permissions, and the
// bounds within which it is read. What is not in this table is not read.
package evidence

import (
	"cmp"
	"slices"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/internal/cilium"
	"github.com/kubectl-kpr/kubectl-kpr/internal/kube"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

//go:generate go run ./gen

// Item is one topic of evidence.
type Item struct {
	Spec source.Spec
	// Live says where a running cluster has it: an API path or a command in
	// the node's agent pod. "" if only recorded evidence has it.
	Live  string
	Needs string // what it takes, such as "Cilium 1.18 or later"
	// Access is what reading it takes; the first entries of a node's topics
	// are those that find the node's agent.
	Access []Access
	// Cap is how many bytes of one node's answer are read, Timeout how long
	// the command may take. Zero for lists, which are read in pages.
	Cap     int
	Timeout time.Duration
}

// Access is one permission.
type Access struct {
	Verb, Group, Resource, Subresource string
	// Name is the one object that is read, "" for all.
	Name string
	// InCilium: only in the namespace of Cilium's agents; else cluster-wide.
	InCilium bool
}

// The sizes of answers. A cluster of 5000 Services makes a `service list` of
// about 12 MB and a map list of about 2 MB.
const (
	small = 1 << 20
	mid   = 8 << 20
	large = 32 << 20
	huge  = 64 << 20
)

// Items is the table, in the order of source.Topics.
func Items() []Item {
	items := make([]Item, 0, len(source.Topics()))
	for _, spec := range source.Topics() {
		items = append(items, item(spec))
	}
	return items
}

// Of is the entry of one topic; false if there is none.
func Of(t source.Topic) (Item, bool) {
	spec, ok := source.SpecOf(t)
	if !ok {
		return Item{}, false
	}
	return item(spec), true
}

func item(spec source.Spec) Item {
	it := Item{Spec: spec}
	if spec.Recorded {
		return it
	}
	if !spec.Node {
		it.Live, it.Access = listed(spec.Topic)
		return it
	}
	it.Access = finding()
	if ask, ok := HostAsk(spec.Topic); ok {
		it.Live, it.Needs = ask.Shown(""), "--host"
		it.Access = append(it.Access, hostAccess()...)
		it.Cap, it.Timeout = hostBounds()
		return it
	}
	if spec.Topic == source.AgentLog || spec.Topic == source.InitLog {
		it.Live = "/api/v1/namespaces/NAMESPACE/pods/POD/log"
		it.Access = append(it.Access, Access{Verb: "get", Resource: "pods", Subresource: "log", InCilium: true})
		it.Cap, it.Timeout = 256<<10, 5*time.Second
		return it
	}
	ask, ok := cilium.AskFor(spec.Topic)
	if spec.Topic == source.APIProbe {
		ask, ok = cilium.Ask{}.By("GET https://ADDRESS/readyz through bash over /dev/tcp, TLS and credentials on this side", "bash"), true
	}
	if !ok {
		return it
	}
	it.Live = ask.Shown("cilium-dbg")
	if v := ask.Needs.Since(); v != "" {
		it.Needs = "Cilium " + v + " or later"
	}
	if spec.Probe {
		it.Needs = "--probe-api"
		it.Access = append(it.Access, Access{Verb: "get", Resource: "configmaps", Name: "kube-root-ca.crt", InCilium: true})
	}
	if ask.Endless {
		it.Needs = "--drops"
	}
	// A WebSocket begins with a GET, which RBAC sees as get; without it SPDY
	// serves, at the price of one refused request for each run.
	it.Access = append(it.Access,
		Access{Verb: "create", Resource: "pods", Subresource: "exec", InCilium: true},
		Access{Verb: "get", Resource: "pods", Subresource: "exec", InCilium: true})
	it.Cap, it.Timeout = bounds(spec.Topic)
	return it
}

// finding is what it takes to know the nodes and their agents.
func finding() []Access {
	return []Access{{Verb: "list", Resource: "nodes"}, {Verb: "list", Resource: "pods"}}
}

func listed(t source.Topic) (live string, access []Access) {
	list := func(name string) (string, []Access) {
		r, ok := kube.ResourceOf(name)
		if !ok {
			return "", nil
		}
		return r.Path(), []Access{{Verb: "list", Group: r.Group, Resource: r.Name}}
	}
	switch t {
	case source.Services, source.ServicesAfter:
		return list("services")
	case source.EndpointSlices, source.EndpointSlicesAfter:
		return list("endpointslices")
	case source.Nodes:
		return list("nodes")
	case source.Pods:
		return list("pods")
	case source.DaemonSets:
		return list("daemonsets")
	case source.CiliumNodeConfigs:
		return list("ciliumnodeconfigs")
	case source.LocalRedirects:
		return list("ciliumlocalredirectpolicies")
	case source.PersistentVolumes:
		return list("persistentvolumes")
	case source.ConfigMaps:
		return "/api/v1/namespaces/kube-system/configmaps/{kubeadm-config,kube-proxy}",
			[]Access{{Verb: "get", Resource: "configmaps", Name: "kubeadm-config", InCilium: true}, {Verb: "get", Resource: "configmaps", Name: "kube-proxy", InCilium: true}}
	case source.CiliumConfig:
		return "/api/v1/namespaces/NAMESPACE/configmaps/cilium-config",
			[]Access{{Verb: "get", Resource: "configmaps", Name: "cilium-config", InCilium: true}}
	}
	return "", nil
}

func bounds(t source.Topic) (limit int, timeout time.Duration) {
	switch t {
	case source.ServiceList, source.FrontendsTable, source.LBDigest:
		return huge, 15 * time.Second
	case source.MapList, source.MapsDump, source.MapBackends, source.MapFrontends, source.MapRanges, source.MapRevNAT:
		return large, 15 * time.Second
	case source.NFTSave, source.LegacySave, source.NFTSave6, source.LegacySave6:
		return large, 10 * time.Second
	case source.ProxyMode, source.ProxyHealth:
		return 64 << 10, 8 * time.Second
	case source.Listeners:
		return mid, 5 * time.Second
	case source.Status, source.Config:
		return mid, 10 * time.Second
	}
	return small, 10 * time.Second
}

// All is every permission of the table once, sorted: what a role must hold
// for everything to be read that needs no --host.
func All() []Access {
	return permissions(func(it Item) bool { return !it.Spec.Host && !it.Spec.Probe })
}

// ForHost is what --host takes beyond All.
func ForHost() []Access { return beyond(func(it Item) bool { return it.Spec.Host }) }

// ForProbe is what --probe-api takes beyond All.
func ForProbe() []Access { return beyond(func(it Item) bool { return it.Spec.Probe }) }

func beyond(of func(Item) bool) []Access {
	all := All()
	return slices.DeleteFunc(permissions(of), func(a Access) bool { return slices.Contains(all, a) })
}

func permissions(of func(Item) bool) []Access {
	var all []Access
	for _, it := range Items() {
		if of(it) {
			all = append(all, it.Access...)
		}
	}
	slices.SortFunc(all, func(a, b Access) int {
		scope := func(x Access) int {
			if x.InCilium {
				return 1
			}
			return 0
		}
		return cmp.Or(cmp.Compare(scope(a), scope(b)), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource),
			cmp.Compare(a.Subresource, b.Subresource), cmp.Compare(a.Verb, b.Verb), cmp.Compare(a.Name, b.Name))
	})
	return slices.Compact(all)
}

// String is the permission as `kubectl auth can-i` words it: "list
// endpointslices.discovery.k8s.io".
func (a Access) String() string {
	s := a.Verb + " " + a.Resource
	if a.Group != "" {
		s += "." + a.Group
	}
	if a.Subresource != "" {
		s += "/" + a.Subresource
	}
	if a.Name != "" {
		s += " " + a.Name
	}
	return s
}
