package render

import (
	"reflect"
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/trace"
)

// section is frontends of which the nodes hold the same.
type section struct {
	fronts []trace.Frontend
	groups []trace.Group
}

// sections joins the frontends of a Service that read alike, so that a Service
// with five addresses is not told five times.
func sections(s *trace.Service) []section {
	var out []section
	var contents [][]trace.Group
	for _, f := range s.Frontends {
		content := make([]trace.Group, len(f.Groups))
		for i, g := range f.Groups {
			g.Paths, g.Addresses, g.Layers = nil, nil, trace.Layers{}
			content[i] = g
		}
		i := -1
		for at := range out {
			if guarded(f) == guarded(out[at].fronts[0]) && reflect.DeepEqual(contents[at], content) {
				i = at
				break
			}
		}
		if i < 0 {
			i = len(out)
			contents = append(contents, content)
			out = append(out, section{groups: slices.Clone(f.Groups)})
		} else {
			out[i].join(f.Groups)
		}
		out[i].fronts = append(out[i].fronts, f)
	}
	slices.SortStableFunc(out, func(a, b section) int { return a.weight() - b.weight() })
	return out
}

// guarded frontends are ones that clients in the cluster reach another way than
// the others of a Service; told together, the ways could not be told apart.
func guarded(f trace.Frontend) bool { return f.Type == "ExternalIPs" || f.Type == "HostPort" }

// weight puts what is wrong first, and last what stops by design.
func (s section) weight() int {
	order := []trace.State{trace.Behind, trace.Nobody, trace.Unknown, trace.OK}
	least := len(order)
	for _, g := range s.groups {
		if i := slices.Index(order, g.State); i >= 0 {
			least = min(least, i)
		} else if g.Share == "" && least == len(order) {
			least++ // true of every ClusterIP
		}
	}
	return least
}

// join adds the ways to the frontends of another one that reads the same.
func (s section) join(groups []trace.Group) {
	for i := range s.groups {
		s.groups[i].Paths = slices.Clone(s.groups[i].Paths)
		for _, path := range groups[i].Paths {
			if !slices.ContainsFunc(s.groups[i].Paths, func(q trace.Path) bool { return reflect.DeepEqual(path, q) }) {
				s.groups[i].Paths = append(s.groups[i].Paths, path)
			}
		}
	}
}

// names lists the frontends. The two scopes of one, and the rows of a NodePort
// at 0.0.0.0 and at the nodes' own addresses, mostly read alike and are one then.
func (s section) names() []string {
	type form struct {
		scopes          []string
		plain, expanded bool
	}
	forms := map[string]*form{}
	var order []string
	for _, f := range s.fronts {
		name := strings.TrimSpace(f.Type + " " + strings.TrimSuffix(f.Address, "/i"))
		if forms[name] == nil {
			forms[name] = &form{}
			order = append(order, name)
		}
		one := forms[name]
		if one.plain, one.expanded = one.plain || !f.OnNodes, one.expanded || f.OnNodes; f.Scope != "" && !slices.Contains(one.scopes, f.Scope) {
			one.scopes = append(one.scopes, f.Scope)
		}
	}
	for i, name := range order {
		f := forms[name]
		switch {
		case f.plain && f.expanded:
			order[i] += " and node addresses"
		case f.expanded:
			order[i] = strings.NewReplacer("0.0.0.0:", "node address:", "[::]:", "[node address]:").Replace(name)
		}
		switch len(f.scopes) {
		case 1:
			order[i] += " (" + f.scopes[0] + ")"
		case 2:
			order[i] += " (both scopes)"
		}
	}
	return order
}

// merged makes one of groups that are sound and say the same of different
// backends, as under a Local policy.
func merged(groups []trace.Group) []trace.Group {
	var out []trace.Group
	for _, g := range groups {
		i := slices.IndexFunc(out, func(o trace.Group) bool {
			return !troubled(o) && o.State == g.State && o.Text == g.Text && slices.Equal(o.Notes, g.Notes)
		})
		if i < 0 {
			out = append(out, g)
			continue
		}
		o := &out[i]
		o.Nodes = slices.Concat(o.Nodes, g.Nodes)
		o.Backends = slices.Clone(o.Backends)
		for _, b := range g.Backends {
			if !slices.Contains(o.Backends, b) {
				o.Backends = append(o.Backends, b)
			}
		}
	}
	for i := range out {
		slices.Sort(out[i].Nodes)
	}
	return out
}
