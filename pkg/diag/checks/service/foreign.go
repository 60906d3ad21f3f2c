package service

import (
	"cmp"
	"maps"
	"slices"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// abroad is a global Service with the backends of other clusters that each
// node has behind it.
type abroad struct {
	service lb.Name
	nodes   map[string]map[lb.Address]bool // a node that has none has an empty map
}

// globals finds the global Services and their foreign backends: those that
// agents have and this cluster's API, and its pod ranges, do not. Only nodes
// whose agent and wanted table are known are in it.
func globals(v *fact.View) []*abroad {
	all := map[lb.Name]*abroad{}
	for node := range fact.Desired.Each(v) {
		on := v.On(node)
		want, err := fact.Desired.From(on)
		ds, behindErr := fact.Behind.From(on)
		if err != nil || behindErr != nil {
			continue
		}
		for _, r := range want.Rows {
			if !r.Global {
				continue
			}
			if all[r.Service] == nil {
				all[r.Service] = &abroad{service: r.Service, nodes: map[string]map[lb.Address]bool{}}
			}
			if all[r.Service].nodes[node] == nil {
				all[r.Service].nodes[node] = map[lb.Address]bool{}
			}
		}
		for _, d := range ds {
			if a := all[d.Service]; a != nil && foreign(want, d) {
				a.nodes[node][d.Backend] = true
			}
		}
	}
	var out []*abroad
	for _, n := range sortedNames(all) {
		out = append(out, all[n])
	}
	return out
}

// foreign holds for a backend that the API does not have and that is expected,
// since the Service is global. Rows that Envoy answers are explained otherwise.
func foreign(want lb.Table, d lb.Delta) bool {
	if d.Kind != lb.BackendExtra || d.Expected == "" || !d.Backend.IP.IsValid() || d.Backend.IP.IsLoopback() {
		return false
	}
	r, ok := find(want, d.Frontend)
	return ok && r.Global && r.Redirect == lb.Direct
}

// backends are all the foreign backends that any node has, in order.
func (a *abroad) backends() []lb.Address {
	var out []lb.Address
	for _, has := range a.nodes {
		for b := range has {
			if !slices.Contains(out, b) {
				out = append(out, b)
			}
		}
	}
	slices.SortFunc(out, lb.Address.Compare)
	return out
}

// parties are the sets of nodes that have the same foreign backends, those
// with the most backends first.
func (a *abroad) parties() [][]string {
	var out [][]string
	for _, n := range slices.Sorted(maps.Keys(a.nodes)) {
		i := slices.IndexFunc(out, func(nodes []string) bool { return maps.Equal(a.nodes[nodes[0]], a.nodes[n]) })
		if i < 0 {
			i = len(out)
			out = append(out, nil)
		}
		out[i] = append(out[i], n)
	}
	slices.SortStableFunc(out, func(x, y []string) int { return cmp.Compare(len(a.nodes[y[0]]), len(a.nodes[x[0]])) })
	return out
}
