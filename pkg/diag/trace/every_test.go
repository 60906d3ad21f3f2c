package trace_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/trace"
)

// TestEverything traces every Service and every address of all recorded
// evidence for every kind of client, and holds what must be true of any trace.
func TestEverything(t *testing.T) {
	for _, dir := range evidence(t) {
		if _, err := source.OpenSnapshot(dir); err != nil {
			continue // evidence of another kind
		}
		v := open(t, dir)
		clients := []trace.Client{{Kind: trace.AnyClient}, {Kind: trace.OutsideClient}}
		for _, n := range v.Nodes() {
			clients = append(clients, trace.Client{Kind: trace.NodeClient, Name: n.Name, Node: n.Name},
				trace.Client{Kind: trace.PodClient, Namespace: "a", Name: "b", Node: n.Name})
		}
		for _, target := range targets(v) {
			for _, c := range clients {
				tr, err := trace.Of(v, target, c)
				if err != nil {
					t.Fatalf("%s: %s for %+v: %v", dir, target, c, err)
				}
				name := dir + ": " + target.String() + " " + string(c.Kind) + "/" + c.Name
				holds(t, name, tr)
				if c.Kind == trace.AnyClient && target.Kind == trace.ServiceTarget && tr.Verdict.State == trace.OK && differs(v, target) {
					t.Errorf("%s: OK, and a check would find a difference: %s", name, tr.Verdict.Text)
				}
			}
		}
	}
}

// differs holds where a check would report a difference of the Service.
func differs(v *fact.View, target trace.Target) bool {
	for _, n := range v.Nodes() {
		behind, _ := fact.Behind.From(v.On(n.Name))
		unwritten, _ := fact.Unwritten.From(v.On(n.Name))
		for _, d := range lb.Unexpected(slices.Concat(behind, unwritten)) {
			if d.Service == (lb.Name{Namespace: target.Namespace, Name: target.Name}) && d.Type != "HostPort" {
				return true
			}
		}
	}
	return false
}

// holds checks one trace.
func holds(t *testing.T, name string, tr *trace.Trace) {
	t.Helper()
	raw, err := json.Marshal(tr)
	if err != nil {
		t.Fatal(err)
	}
	var back trace.Trace
	if err := json.Unmarshal(raw, &back); err != nil {
		t.Fatal(err)
	}
	again, _ := json.Marshal(&back)
	if !reflect.DeepEqual(raw, again) {
		t.Errorf("%s: JSON changes when it is read back", name)
	}
	if tr.Verdict.Text == "" || tr.Verdict.Severity == "" || tr.Verdict.Next == nil {
		t.Errorf("%s: half a verdict: %+v", name, tr.Verdict)
	}
	seen := map[trace.State]bool{}
	for _, s := range tr.Services {
		for _, f := range s.Frontends {
			if f.Address == "" || len(f.Groups) == 0 {
				t.Errorf("%s: empty frontend: %+v", name, f)
			}
			var nodes []string
			for _, g := range f.Groups {
				seen[g.State] = true
				if g.Text == "" || len(g.Nodes) == 0 {
					t.Errorf("%s: empty group of %s: %+v", name, f.Address, g)
				}
				if g.State == trace.Behind && g.Layer == "" {
					t.Errorf("%s: behind, and no layer: %s", name, g.Text)
				}
				if g.State == trace.OK && slices.ContainsFunc(g.Backends, func(b trace.Backend) bool { return b.Behind != "" }) {
					t.Errorf("%s: OK with a backend that is behind: %+v", name, g)
				}
				if g.State == trace.OK && (g.Layers.API == trace.Unread || g.Layers.Kernel == trace.Unread) {
					t.Errorf("%s: OK though a layer was not read", name)
				}
				if !f.OnNodes {
					for _, n := range g.Nodes {
						if slices.Contains(nodes, n) {
							t.Errorf("%s: %s is in two groups of %s", name, n, f.Address)
						}
						nodes = append(nodes, n)
					}
				}
			}
		}
	}
	for _, s := range []trace.State{trace.Behind, trace.Nobody, trace.Unknown} {
		if seen[s] && tr.Verdict.State == trace.OK {
			t.Errorf("%s: the verdict is OK with a group %s", name, s)
		}
	}
}

func targets(v *fact.View) []trace.Target {
	var out []trace.Target
	services, _ := fact.Services.From(v)
	for i := range services {
		out = append(out, trace.Target{Kind: trace.ServiceTarget, Namespace: services[i].Namespace, Name: services[i].Name})
	}
	addresses := map[lb.Address]bool{}
	for _, n := range v.Nodes() {
		for _, key := range []fact.Key[lb.Table]{fact.Desired, fact.AgentTable, fact.KernelTable} {
			table, _ := key.From(v.On(n.Name))
			for i, r := range table.Rows {
				if i < 12 {
					addresses[lb.Address{IP: r.Address.IP, Port: r.Address.Port, Protocol: r.Address.Protocol}] = true
					addresses[lb.Address{IP: r.Address.IP, Protocol: lb.ANY}] = true
				}
				if i < 4 && len(r.Entries) > 0 && !r.Entries[0].Lost {
					addresses[lb.Address{IP: r.Entries[0].Address.IP, Port: r.Entries[0].Address.Port, Protocol: lb.ANY}] = true
				}
			}
		}
	}
	for a := range addresses {
		out = append(out, trace.Target{Kind: trace.AddressTarget, IP: a.IP, PortNumber: a.Port, Protocol: a.Protocol})
	}
	return out
}

// evidence lists folders with snapshots: the corpus, the fixtures, and the
// stories of the checks.
func evidence(t *testing.T) []string {
	t.Helper()
	var dirs []string
	for _, pattern := range []string{"../../../test/corpus/*/expected.md", "../../../test/fixtures/*/snapshot.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, f := range files {
			dirs = append(dirs, filepath.Dir(f))
		}
	}
	stories, _ := filepath.Glob("../checks/testdata/stories/*/*.txtar")
	for _, s := range stories {
		archive, err := txtar.ParseFile(s)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		for _, f := range archive.Files {
			if f.Name == "want" {
				continue
			}
			path := filepath.Join(dir, f.Name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, f.Data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		dirs = append(dirs, dir)
	}
	return dirs
}

// A trace that looks at the namespace of its Service alone says the same as one
// that looks at everything.
func TestNarrowed(t *testing.T) {
	narrowed := 0
	for _, dir := range evidence(t) {
		if _, err := source.OpenSnapshot(dir); err != nil {
			continue
		}
		v := open(t, dir)
		for _, target := range targets(v) {
			if target.Narrow() == "" || trace.Shared(v, target) {
				continue
			}
			narrow := openWithin(t, dir, target.Narrow())
			for _, c := range []trace.Client{{Kind: trace.AnyClient}, {Kind: trace.OutsideClient}} {
				want, err := trace.Of(v, target, c)
				if err != nil {
					t.Fatal(err)
				}
				got, err := trace.Of(narrow, target, c)
				if err != nil {
					t.Fatalf("%s: %s: %v", dir, target, err)
				}
				narrowed++
				a, _ := json.MarshalIndent(want, "", " ")
				b, _ := json.MarshalIndent(got, "", " ")
				if string(a) != string(b) {
					t.Errorf("%s: %s for %s (-everything +narrowed):\n%s", dir, target, c.Kind, cmp.Diff(string(a), string(b)))
				}
			}
		}
	}
	if narrowed < 100 {
		t.Errorf("only %d traces could be narrowed", narrowed)
	}
}
