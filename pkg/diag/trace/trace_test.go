package trace_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/trace"
)

// edit changes the files of a snapshot: it replaces words in all files whose
// path holds in, or drops them.
type edit struct {
	in, old, new string
	drop         bool
}

// look reads the base snapshot with changes.
func look(t *testing.T, edits ...edit) *fact.View {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/base.txtar")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	hit := make([]bool, len(edits))
	for _, f := range archive.Files {
		text, dropped := string(f.Data), false
		for i, e := range edits {
			if !strings.Contains(f.Name, e.in) {
				continue
			}
			if e.drop {
				hit[i], dropped = true, true
				continue
			}
			if strings.Contains(text, e.old) {
				hit[i] = true
				text = strings.ReplaceAll(text, e.old, e.new)
			}
		}
		if dropped {
			continue
		}
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i, h := range hit {
		if !h {
			t.Fatalf("edit %+v changes nothing", edits[i])
		}
	}
	return open(t, dir)
}

func open(t *testing.T, dir string) *fact.View {
	t.Helper()
	return openWithin(t, dir, "")
}

func openWithin(t *testing.T, dir, namespace string) *fact.View {
	t.Helper()
	src, err := source.OpenSnapshot(dir)
	if err != nil {
		t.Fatal(err)
	}
	run, err := diag.Do(context.Background(), src, diag.Selection{Within: namespace}, nil, trace.Facts()...)
	if err != nil {
		t.Fatal(err)
	}
	return run.Store.Cluster()
}

func of(t *testing.T, v *fact.View, target, from string) *trace.Trace {
	t.Helper()
	what, err := trace.ParseTarget(target, "shop")
	if err != nil {
		t.Fatal(err)
	}
	who, err := trace.ParseClient(from, "shop")
	if err != nil {
		t.Fatal(err)
	}
	got, err := trace.Of(v, what, who)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

var (
	off     = edit{in: "status.json", old: `"mode": "True"`, new: `"mode": "False"`}
	noNP    = edit{in: "status.json", old: `"nodePort": {"enabled": true`, new: `"nodePort": {"enabled": false`}
	noSock  = edit{in: "status.json", old: `"socketLB": {"enabled": true}`, new: `"socketLB": {"enabled": false}`}
	lost    = edit{in: "w-1/bpf-lb-list", old: "10.244.2.6:8080/TCP (1) (2)", new: "backend 6 not found"}
	gone    = edit{in: "w-2/service-list", old: "2 => 10.244.2.6:8080/TCP", new: "2 => 10.244.2.9:8080/TCP"}
	goneMap = edit{in: "w-2/bpf-lb-list", old: "10.244.2.6", new: "10.244.2.9"}
	local   = edit{in: "services", old: "    selector: {app: web}", new: "    externalTrafficPolicy: Local\n    healthCheckNodePort: 31000\n    selector: {app: web}"}
)

// TestVerdict holds what is said of each state of the layers, and how the kind
// of client changes it.
func TestVerdict(t *testing.T) {
	proxy := edit{in: "ss.txt", old: "0.0.0.0:10250", new: "127.0.0.1:10249"}
	for name, c := range map[string]struct {
		edits        []edit
		target, from string
		state        trace.State
		layer        trace.Layer
		says         []string
		not          []string
	}{
		"all agree": {state: trace.OK, says: []string{"shop/web: API, agent and kernel agree on w-1 and w-2: 2 backends behind 2 frontends"}},
		"lost in one map": {edits: []edit{lost}, state: trace.Behind, layer: trace.Kernel,
			says: []string{"the kernel is behind on w-1", "has lost 1 of 2 backends (10.244.2.6:8080, backend 6 not found)", "about half of new connections from there to 10.96.40.2:80/TCP fail"},
			not:  []string{"NodePort"}},
		"lost, and the client elsewhere":  {edits: []edit{lost}, from: "node/w-2", state: trace.OK},
		"lost, and the client there":      {edits: []edit{lost}, from: "pod/web-1", state: trace.Behind, layer: trace.Kernel, says: []string{"from pod shop/web-1 on w-1"}},
		"lost, and the client is outside": {edits: []edit{lost}, from: "outside", state: trace.OK, says: []string{"1 frontend"}},
		"an agent that missed a change": {edits: []edit{gone, goneMap}, state: trace.Behind, layer: trace.Agent,
			says: []string{"the agent is behind on w-2", "still has 10.244.2.9:8080, no endpoint", "the API has 10.244.2.6:8080 and the agent does not know of it", "about half of new connections", "go to 10.244.2.9:8080"}},
		"not ready any more": {edits: []edit{{in: "endpointslices", old: "ready: true, serving: true", new: "ready: false, serving: false"}},
			state: trace.Behind, layer: trace.Agent, says: []string{"the agent calls 10.244.1.5:8080 active, the API"}},
		"slices not read":    {edits: []edit{{in: "endpointslices", drop: true}}, state: trace.Unknown, says: []string{"endpointslices"}},
		"agent not read":     {edits: []edit{{in: "service-list", drop: true}}, state: trace.OK, says: []string{"API and kernel agree"}},
		"map not read":       {edits: []edit{{in: "bpf-lb-list", drop: true}}, state: trace.Unknown, says: []string{"the map was not read", "API and agent agree"}},
		"API not read":       {edits: []edit{{in: "services", drop: true}}, state: trace.Unknown, says: []string{"services"}},
		"one node not read":  {edits: []edit{{in: "w-2/service-list", drop: true}, {in: "w-2/bpf-lb-list", drop: true}}, state: trace.Unknown, says: []string{"not known on w-2"}},
		"ClusterIP, outside": {target: "10.96.40.2:80", from: "outside", state: trace.Stops, says: []string{"non-routable", "bpf-lb-external-clusterip"}},
		"NodePort, outside":  {target: "10.1.0.1:30080", from: "outside", state: trace.OK},
		"unknown port":       {target: "10.96.40.2:81", state: trace.Nobody, says: []string{"ClusterIP of shop/web, which has 80/TCP there"}},
		"a backend":          {target: "10.244.1.5:8080", state: trace.OK},
		"a node":             {target: "10.1.0.1:9", state: trace.Nobody, says: []string{"address of node w-1"}},
		"KPR off, any client": {edits: []edit{off, noNP, noSock, proxy}, state: trace.OK,
			says: []string{"for pods", "kube-proxy's"}},
		"KPR off, a pod":                       {edits: []edit{off, noNP, noSock, proxy}, from: "pod/web-1", state: trace.OK},
		"KPR off, the host":                    {edits: []edit{off, noNP, noSock, proxy}, from: "node/w-1", state: trace.Elsewhere, says: []string{"kube-proxy does"}},
		"KPR off, outside":                     {edits: []edit{off, noNP, noSock, proxy}, from: "outside", state: trace.Elsewhere, says: []string{"kube-proxy does"}},
		"KPR off, kube-proxy does not run":     {edits: []edit{off, noNP, noSock}, from: "node/w-1", state: trace.Nobody, says: []string{"kube-proxy does not run"}},
		"a Local policy that the agent missed": {edits: []edit{local}, from: "outside", state: trace.Behind, layer: trace.Agent, says: []string{"still has 10.244.2.6:8080"}},
		"a Service without slices":             {edits: []edit{{in: "services", old: "name: web,", new: "name: other,"}}, target: "svc/other", state: trace.Behind, layer: trace.Agent, says: []string{"but of shop/web"}},
	} {
		t.Run(name, func(t *testing.T) {
			target := c.target
			if target == "" {
				target = "web"
			}
			got := of(t, look(t, c.edits...), target, c.from).Verdict
			if got.State != c.state || got.Layer != c.layer && c.layer != "" {
				t.Errorf("%s %q, want %s %q: %s", got.State, got.Layer, c.state, c.layer, got.Text)
			}
			for _, s := range c.says {
				if !strings.Contains(got.Text, s) {
					t.Errorf("%q is not in: %s", s, got.Text)
				}
			}
			for _, s := range c.not {
				if strings.Contains(got.Text, s) {
					t.Errorf("%q is in: %s", s, got.Text)
				}
			}
		})
	}
}

// TestPaths holds the ways of the kinds of clients.
func TestPaths(t *testing.T) {
	hostOnly := edit{in: "status.json", old: `"socketLB": {"enabled": true}`, new: `"socketLB": {"enabled": true}, "bpfSocketLBHostnsOnly": true`}
	dsr := edit{in: "status.json", old: `"mode": "SNAT", "algorithm": "Random"`, new: `"mode": "DSR", "algorithm": "Maglev"`}
	affinity := edit{in: "bpf-lb-list", old: "[ClusterIP, non-routable]", new: "[ClusterIP, sessionAffinity, non-routable]"}
	sticky := edit{in: "services", old: "    selector:", new: "    sessionAffinity: ClientIP\n    selector:"}
	for name, c := range map[string]struct {
		edits        []edit
		target, from string
		want         string
	}{
		"socket": {target: "10.96.40.2:80", from: "pod/web-1",
			want: "socket LB rewrites the address at connect > row of the frontend > one of 2 backends at random > replies come straight back"},
		"packet": {edits: []edit{hostOnly}, target: "10.96.40.2:80", from: "pod/web-1",
			want: "the packet is translated where it leaves the pod > row of the frontend > one of 2 backends at random > replies are translated back at the pod"},
		"host with Hostns-only": {edits: []edit{hostOnly}, target: "10.96.40.2:80", from: "node/w-1",
			want: "socket LB rewrites the address at connect > row of the frontend > one of 2 backends at random > replies come straight back"},
		"SNAT": {target: "10.1.0.1:30080", from: "outside",
			want: "the packet is translated where it enters the node, at eth0 > row of the frontend > one of 2 backends at random > for a backend on another node the source becomes this node's address (SNAT) > replies go back through this node"},
		"DSR and Maglev": {edits: []edit{dsr}, target: "10.1.0.1:30080", from: "outside",
			want: "the packet is translated where it enters the node, at eth0 > row of the frontend > one of 2 backends by Maglev > the client's address is kept (DSR) > the backend's node answers the client itself"},
		"affinity": {edits: []edit{affinity, sticky}, target: "10.96.40.2:80", from: "pod/web-1",
			want: "socket LB rewrites the address at connect > row of the frontend > one of 2 backends at random > the same one for the same pod, until 10800 s without use > replies come straight back"},
	} {
		t.Run(name, func(t *testing.T) {
			tr := of(t, look(t, c.edits...), c.target, c.from)
			if len(tr.Services) != 1 || len(tr.Services[0].Frontends) != 1 {
				t.Fatalf("want one frontend: %+v", tr.Services)
			}
			var hops []string
			for _, h := range tr.Services[0].Frontends[0].Groups[0].Paths[0].Hops {
				hops = append(hops, h.Text)
			}
			if diff := cmp.Diff(c.want, strings.Join(hops, " > ")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestGroups holds the layers side by side, and that nodes that hold the same
// are one.
func TestGroups(t *testing.T) {
	tr := of(t, look(t, lost), "web", "")
	got := tr.Services[0].Frontends[0]
	if got.Address != "10.96.40.2:80/TCP" || len(got.Groups) != 2 {
		t.Fatalf("%+v", got)
	}
	want := []trace.Backend{
		{Address: "10.244.1.5:8080", Pod: "web-1", Node: "w-1", API: "active", Agent: "active", Kernel: "present"},
		{Address: "10.244.2.6:8080", Pod: "web-2", Node: "w-2", API: "active", Agent: "active", Kernel: "lost", Behind: trace.Kernel, Note: "backend 6 not found"},
	}
	if diff := cmp.Diff(want, got.Groups[0].Backends); diff != "" {
		t.Error(diff)
	}
	nodePort := tr.Services[0].Frontends[2]
	if g := nodePort.Groups; !nodePort.OnNodes || len(g) != 1 || len(g[0].Nodes) != 2 || len(g[0].Addresses) != 2 {
		t.Errorf("the rows of node addresses are one group: %+v", nodePort)
	}
	if diff := cmp.Diff([]string{"kubectl", "kpr", "exec", "w-1", "--", "cilium-dbg", "bpf", "lb", "list"}, tr.Verdict.Next[0].Argv); diff != "" {
		t.Error(diff)
	}
}

// TestAgain holds that only what two looks have stays.
func TestAgain(t *testing.T) {
	first := of(t, look(t, lost), "web", "")
	for name, c := range map[string]struct {
		later []edit
		want  trace.State
	}{
		"still there":    {[]edit{lost}, trace.Behind},
		"mended":         {nil, trace.OK},
		"something else": {[]edit{gone, goneMap}, trace.OK},
	} {
		got, err := first.Again(look(t, c.later...))
		if err != nil {
			t.Fatal(err)
		}
		if got.Verdict.State != c.want {
			t.Errorf("%s: %s, want %s: %s", name, got.Verdict.State, c.want, got.Verdict.Text)
		}
	}
}
