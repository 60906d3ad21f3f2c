package lb_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

func TestPool(t *testing.T) {
	var p lb.Pool
	w := newWorld(3)
	first, sum := p.Intern(w.agent())
	again, same := p.Intern(w.agent())
	if sum != same || len(first.Rows) == 0 || &first.Rows[0] != &again.Rows[0] {
		t.Errorf("equal tables are two values, sums %x and %x", sum[:4], same[:4])
	}
	i := slices.IndexFunc(w.fes, func(f lb.Frontend) bool { return len(f.Backends) > 1 })
	w.fes[i].Backends[0].State = lb.Quarantined
	other, differs := p.Intern(w.agent())
	if differs == sum {
		t.Error("a state does not count in the sum")
	}
	shared := 0
	for i, r := range other.Rows {
		if len(r.Entries) > 0 && &r.Entries[0] == &first.Rows[i].Entries[0] {
			shared++
		}
	}
	if shared == 0 || len(lb.Diff(first, other, lb.DiffOptions{})) == 0 {
		t.Errorf("different tables share %d lists of backends", shared)
	}
}

// Whatever differs in a row, the sum does.
func TestSum(t *testing.T) {
	base := func() lb.Row {
		return lb.Row{Address: address(t, "10.96.0.1:80/TCP"), Type: "ClusterIP", Entries: []lb.Entry{{Backend: lb.Backend{Address: address(t, "10.1.0.1:80/TCP")}}}}
	}
	sums := map[[32]byte]string{lb.Table{Rows: []lb.Row{base()}}.Sum(): "nothing"}
	for name, change := range map[string]func(*lb.Row){
		"address":     func(r *lb.Row) { r.Address.Scope = lb.Internal },
		"protocol":    func(r *lb.Row) { r.Address.Protocol = lb.UDP },
		"type":        func(r *lb.Row) { r.Type = "NodePort" },
		"service":     func(r *lb.Row) { r.Service.Name = "a" },
		"namespace":   func(r *lb.Row) { r.Service.Namespace = "a" },
		"port":        func(r *lb.Row) { r.PortName = "a" },
		"cluster":     func(r *lb.Row) { r.Cluster = "a" },
		"affinity":    func(r *lb.Row) { r.Flags.Affinity = lb.Yes },
		"timeout":     func(r *lb.Row) { r.Flags.AffinityTimeout = 1 },
		"external":    func(r *lb.Row) { r.Flags.External = lb.Local },
		"internal":    func(r *lb.Row) { r.Flags.Internal = lb.Local },
		"ranges told": func(r *lb.Row) { r.Flags.RangesTold = true },
		"check":       func(r *lb.Row) { r.Flags.SourceCheck = lb.No },
		"active":      func(r *lb.Row) { r.Counts.Active = 1 },
		"inactive":    func(r *lb.Row) { r.Counts.Inactive = 1 },
		"expansion":   func(r *lb.Row) { r.Expansion = true },
		"wildcard":    func(r *lb.Row) { r.Wildcard = true },
		"global":      func(r *lb.Row) { r.Global = true },
		"redirect":    func(r *lb.Row) { r.Redirect = lb.L7Redirect },
		"proxy":       func(r *lb.Row) { r.ProxyPort = 1 },
		"optional":    func(r *lb.Row) { r.Optional = "a" },
		"cause":       func(r *lb.Row) { r.Cause = lb.NoSlice },
		"reason":      func(r *lb.Row) { r.Reason = "a" },
		"claims":      func(r *lb.Row) { r.Claims = []lb.Claim{{Type: "a"}} },
		"no backend":  func(r *lb.Row) { r.Entries = nil },
		"backend":     func(r *lb.Row) { r.Entries[0].Address.Port = 81 },
		"state":       func(r *lb.Row) { r.Entries[0].State = lb.Active },
		"weight":      func(r *lb.Row) { r.Entries[0].Weight = 1 },
		"node":        func(r *lb.Row) { r.Entries[0].Node = "a" },
		"zone":        func(r *lb.Row) { r.Entries[0].Zone = "a" },
		"preferred":   func(r *lb.Row) { r.Entries[0].Preferred = true },
		"lost":        func(r *lb.Row) { r.Entries[0].Lost = true },
		"id":          func(r *lb.Row) { r.Entries[0].ID = 1 },
		"may":         func(r *lb.Row) { r.Entries[0].Optional = "a" },
	} {
		r := base()
		change(&r)
		sum := lb.Table{Rows: []lb.Row{r}}.Sum()
		if other, ok := sums[sum]; ok {
			t.Errorf("%s and %s have one sum", name, other)
		}
		sums[sum] = name
	}
}

func TestGroupBySum(t *testing.T) {
	a, b := newWorld(1).agent(), newWorld(2).agent()
	var got [][]string
	for _, g := range lb.GroupBySum(map[string]lb.Table{"n3": b, "n1": a, "n2": b, "n4": a, "n5": b, "n0": newWorld(4).agent()}) {
		got = append(got, g.Nodes)
	}
	if diff := cmp.Diff([][]string{{"n2", "n3", "n5"}, {"n1", "n4"}, {"n0"}}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
