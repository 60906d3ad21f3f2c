package report

import (
	"cmp"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// layers are compared with themselves, before and after.
var layers = []struct {
	name  string
	table fact.Key[lb.Table]
}{{"desired", fact.Desired}, {"agent", fact.AgentTable}, {"kernel", fact.KernelTable}}

// frontends compares the layers of each node. Tables that nodes share are
// compared once.
func (c *comparison) frontends() {
	type tables struct{ before, after *lb.Row }
	known := map[tables][]FrontendChange{}
	at := map[string]int{} // in diff.Frontends
	for _, l := range layers {
		for _, node := range c.agents() {
			before, errA := l.table.From(c.a.On(node))
			after, errB := l.table.From(c.b.On(node))
			if errA != nil || errB != nil {
				c.uncompared("frontends, layer "+l.name, node, errA, errB)
				continue
			}
			pair := tables{first(before), first(after)}
			changes, ok := known[pair]
			if !ok {
				changes = changesOf(l.name, before, after)
				known[pair] = changes
			}
			owners := c.owners(l.name, node)
			for _, f := range changes {
				if f.Service = cmp.Or(f.Service, owners[f.Frontend]); wildcard(f.Frontend) {
					f.Service = cmp.Or(f.Service, owners[hostOf(f.Frontend)])
				}
				id := strings.Join([]string{f.Layer, f.Frontend, f.Service, f.What, f.Backend, f.Before, f.After}, "|")
				i, ok := at[id]
				if !ok {
					i = len(c.diff.Frontends)
					at[id] = i
					c.diff.Frontends = append(c.diff.Frontends, f)
				}
				c.diff.Frontends[i].Nodes = append(c.diff.Frontends[i].Nodes, node)
			}
		}
	}
	sortChanges(c.diff)
}

func first(t lb.Table) *lb.Row {
	if len(t.Rows) == 0 {
		return nil
	}
	return &t.Rows[0]
}

// owners are the Services of frontends, for layers that do not tell them.
func (c *comparison) owners(layer, node string) map[string]string {
	out := map[string]string{}
	if layer == "desired" {
		return out
	}
	for _, v := range []*fact.View{c.a, c.b} {
		want, err := fact.Desired.From(v.On(node))
		if err != nil {
			continue
		}
		for _, r := range want.Rows {
			out[r.Address.String()] = r.Service.String()
			out[hostOf(r.Address.String())] = r.Service.String()
		}
	}
	return out
}

// wildcard holds for the rows that catch unknown ports: they belong to the
// Service that has the address.
func wildcard(frontend string) bool { return strings.HasPrefix(frontend[len(hostOf(frontend)):], ":0") }

// hostOf is a frontend without its port.
func hostOf(frontend string) string { return frontend[:max(0, strings.LastIndexByte(frontend, ':'))] }

// changesOf are the differences of one layer. What both sides explain as
// optional differs all the same: it came or went.
func changesOf(layer string, before, after lb.Table) []FrontendChange {
	var out []FrontendChange
	for _, d := range lb.Diff(before, after, lb.DiffOptions{}) {
		f := FrontendChange{Layer: layer, Frontend: d.Frontend.String(), What: whatOf(d), Before: d.A, After: d.B}
		if d.Service != (lb.Name{}) {
			f.Service = d.Service.String()
		}
		if d.Backend.IP.IsValid() {
			f.Backend = d.Backend.String()
		}
		out = append(out, f)
	}
	return append(out, retyped(layer, before, after)...)
}

func whatOf(d lb.Delta) string {
	switch d.Kind {
	case lb.FrontendMissing:
		return "frontend gone"
	case lb.FrontendExtra:
		return "frontend new"
	case lb.BackendMissing:
		return "backend gone"
	case lb.BackendExtra:
		return "backend new"
	case lb.BackendLost:
		return "backend lost"
	case lb.StateDiffers:
		return "state"
	case lb.CountDiffers:
		return "active backends"
	case lb.FlagDiffers:
		return d.Detail
	}
	return d.Kind.String()
}

// retyped are frontends of another type than before: a NodePort that became a
// LoadBalancer's, a ClusterIP that a local redirect took over.
func retyped(layer string, before, after lb.Table) []FrontendChange {
	var out []FrontendChange
	for _, r := range before.Rows {
		now, ok := after.Find(r.Address)
		if !ok || r.Type == now.Type || r.Type == "" || now.Type == "" {
			continue
		}
		f := FrontendChange{Layer: layer, Frontend: r.Address.String(), What: "type", Before: r.Type, After: now.Type}
		if r.Service != (lb.Name{}) {
			f.Service = r.Service.String()
		}
		out = append(out, f)
	}
	return out
}
