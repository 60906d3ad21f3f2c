package source_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source/sourcetest"
)

const record = `
schema: 1
tool: kubectl-kpr
version: v0.3.0
started: "2025-03-04T05:06:07Z"
ended: "2025-03-04T05:06:27Z"
context: prod
server: https://10.0.0.1:6443
kubernetes: v1.33.4
cilium: [1.17.6]
nodes:
- {name: n1}
- {name: n4, reason: no agent pod on it}
members:
- {path: nodes/n1/status.json, topic: status, node: n1, origin: cilium-dbg status -o json, exit: 1, read: "2025-03-04T05:06:10.5Z", size: 11}
- {path: services.yaml, topic: services, origin: /api/v1/services, size: 3, sha256: "00"}
gaps:
- {topic: status, node: n2, class: forbidden, reason: "pods/exec in kube-system: cannot create"}
- {topic: bpf-lb-list, node: n1, class: cut, reason: connection reset by peer}
- {topic: config, node: n1, class: unreachable, reason: no answer within 20s}
- {topic: version, node: n1, class: nonsense, reason: of a later version}
- {topic: endpoints, class: absent, reason: not asked for}
`

func files() map[string]string {
	return map[string]string{
		"snapshot.yaml":             record,
		"services.yaml":             "a: 1\n",
		"pods.yaml":                 "kind: List\n",
		"pods.json":                 "{}",
		"nodes.yaml":                "kind: NodeList\nitems:\n- metadata: {name: n3}\n- metadata: {name: n1}\n- {}\n- metadata: {name: ../n9}\n",
		"nodes/n1/status.json":      `{"mode": 1}`,
		"nodes/n1/status.txt":       "old",
		"nodes/n1/service-list.txt": "",
		"nodes/n1/config-init.log":  "waiting\n",
		"nodes/n2/agent.log":        "level=info\n",
		"nodes/n1/lsmod.txt":        "xx drop\n",
		"nodes/N9/agent.log":        "not a name of Kubernetes\n",
		"expected.md":               "# what it shows\n",
	}
}

func want() sourcetest.Want {
	return sourcetest.Want{
		Kind:  "snapshot",
		Nodes: []source.Node{{Name: "n1"}, {Name: "n2"}, {Name: "n3"}, {Name: "n4", Reason: "no agent pod on it"}},
		Data: map[source.Query]string{
			{Topic: source.Services}:                           "a: 1\n",
			{Topic: source.Pods}:                               "kind: List\n",
			{Topic: source.Status, Node: "n1"}:                 `{"mode": 1}`,
			{Topic: source.ServiceList, Node: "n1"}:            "",
			{Topic: source.AgentLog, Node: "n2"}:               "level=info\n",
			{Topic: source.InitLog, Node: "n1", Arg: "config"}: "waiting\n",
		},
		Gaps: map[source.Query]error{
			{Topic: source.DaemonSets}:                           source.ErrAbsent,
			{Topic: source.Endpoints}:                            source.ErrAbsent,
			{Topic: source.Status, Node: "n2"}:                   source.ErrForbidden,
			{Topic: source.Status, Node: "n3"}:                   source.ErrAbsent,
			{Topic: source.Status, Node: "n4"}:                   source.ErrAbsent,
			{Topic: source.MapList, Node: "n1"}:                  source.ErrCut,
			{Topic: source.Config, Node: "n1"}:                   source.ErrUnreachable,
			{Topic: source.Version, Node: "n1"}:                  source.ErrUnreachable,
			{Topic: source.InitLog, Node: "n1", Arg: "clean"}:    source.ErrAbsent,
			{Topic: source.Services, Arg: "web"}:                 source.ErrAbsent,
			{Topic: source.FrontendsTable, Node: "n1", Arg: "x"}: source.ErrAbsent,
		},
	}
}

func openSnapshot(t testing.TB, path string) *source.Snapshot {
	t.Helper()
	s, err := source.OpenSnapshot(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestConformance(t *testing.T) {
	for kind, path := range containers(t, files()) {
		t.Run(kind, func(t *testing.T) {
			sourcetest.Conformance(t, func(t *testing.T) source.Source { return openSnapshot(t, path) }, want())
		})
	}
	for _, kind := range []string{"folder", "tar.gz"} {
		path := recorded(t, openSnapshot(t, unpackDir(t, files())), kind)
		t.Run("recorded as "+kind, func(t *testing.T) {
			sourcetest.Conformance(t, func(t *testing.T) source.Source { return openSnapshot(t, path) }, want())
		})
	}
}

func TestMemoryConformance(t *testing.T) {
	w := want()
	w.Kind = "cluster"
	clear(w.Gaps)
	cut := source.Query{Topic: source.MapList, Node: "n1"}
	w.Gaps[cut] = source.ErrCut
	held := files()
	delete(held, "nodes/N9/agent.log")
	sourcetest.Conformance(t, func(t *testing.T) source.Source {
		return &sourcetest.Memory{
			Files:   held,
			Errors:  map[source.Query]error{cut: fmt.Errorf("n1: %w", source.ErrCut)},
			Reasons: map[string]string{"n4": "no agent pod on it", "n3": ""},
			Next:    &sourcetest.Memory{},
		}
	}, w)
}

// queries is everything that a test's snapshot could be asked.
func queries(w sourcetest.Want) []source.Query {
	seen, qs := map[source.Query]bool{}, sourcetest.Queries(w.Nodes)
	for _, q := range qs {
		seen[q] = true
	}
	for q := range w.Data {
		if !seen[q] {
			qs = append(qs, q)
		}
	}
	for q := range w.Gaps {
		if !seen[q] && w.Data[q] == "" {
			qs = append(qs, q)
		}
	}
	return qs
}

func info() source.Info {
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	return source.Info{
		Tool: "kubectl-kpr", Version: "v1.0.0",
		Now:    func() time.Time { now = now.Add(time.Second); return now },
		Cilium: func() []string { return []string{"1.17.6"} },
	}
}

func recorded(t *testing.T, src source.Source, kind string) string {
	t.Helper()
	path := t.TempDir() + "/new"
	var w source.SnapshotWriter
	var file *source.NewFile
	var err error
	if kind == "folder" {
		w, err = source.NewDirWriter(path)
	} else if file, err = source.CreateFile(path); err == nil {
		w = source.NewTarWriter(file, "kpr-prod")
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := source.Record(t.Context(), src, queries(want()), w, info()); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if file != nil {
		if err := file.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// A snapshot of a snapshot is the same evidence, with the same gaps.
func TestRoundTrip(t *testing.T) {
	first := openSnapshot(t, unpackDir(t, files()))
	type said struct {
		Artifact source.Artifact
		Err      string
	}
	all := func(s source.Source) map[source.Query]said {
		m := map[source.Query]said{}
		for q, a := range sourcetest.Collect(t, s, queries(want())) {
			v := said{Artifact: a.Artifact}
			if a.Err != nil {
				v.Err = a.Err.Error()
			}
			m[q] = v
		}
		return m
	}
	for _, kind := range []string{"folder", "tar.gz"} {
		second := openSnapshot(t, recorded(t, first, kind))
		if d := cmp.Diff(all(first), all(second), cmp.Transformer("changed", func(s string) string {
			// The mark keeps its meaning, not its place.
			if before, after, ok := strings.Cut(s, " (changed after it was recorded)"); ok {
				return "changed: " + before + after
			}
			return s
		})); d != "" {
			t.Errorf("%s (-first +second):\n%s", kind, d)
		}
		a, b := first.About(), second.About()
		b.Name, b.Tool = a.Name, a.Tool
		if d := cmp.Diff(a, b); d != "" {
			t.Errorf("%s: About (-first +second):\n%s", kind, d)
		}
		if got := second.Unknown(); len(got) > 0 {
			t.Errorf("%s: unknown files %q in what the tool wrote", kind, got)
		}
		if d := cmp.Diff([]string{"1.17.6"}, second.Cilium()); d != "" {
			t.Errorf("%s: Cilium (-want +got):\n%s", kind, d)
		}
	}
}

func TestArtifacts(t *testing.T) {
	for kind, path := range containers(t, files()) {
		t.Run(kind, func(t *testing.T) {
			got := sourcetest.Collect(t, openSnapshot(t, path), queries(want()))
			began := time.Date(2025, 3, 4, 5, 6, 7, 0, time.UTC)
			tests := []source.Artifact{
				{
					Query:  source.Query{Topic: source.Status, Node: "n1"},
					Format: source.JSON, Stem: "status", Data: []byte(`{"mode": 1}`), Exit: 1,
					Origin: "cilium-dbg status -o json, in nodes/n1/status.json",
					Read:   time.Date(2025, 3, 4, 5, 6, 10, 500_000_000, time.UTC),
				},
				{
					Query:  source.Query{Topic: source.Services},
					Format: source.YAML, Stem: "services", Data: []byte("a: 1\n"), Read: began,
					Origin: "/api/v1/services, in services.yaml (changed after it was recorded)",
				},
				{
					Query:  source.Query{Topic: source.InitLog, Node: "n1", Arg: "config"},
					Format: source.Text, Stem: "%s-init", Data: []byte("waiting\n"), Read: began,
					Origin: "nodes/n1/config-init.log",
				},
			}
			for _, want := range tests {
				if d := cmp.Diff(want, got[want.Query].Artifact); d != "" {
					t.Errorf("%+v (-want +got):\n%s", want.Query, d)
				}
			}
		})
	}
}

func TestErrors(t *testing.T) {
	got := sourcetest.Collect(t, openSnapshot(t, unpackDir(t, files())), queries(want()))
	tests := map[source.Query]string{
		{Topic: source.DaemonSets}:                        "daemonsets: not there: not in the snapshot",
		{Topic: source.Endpoints}:                         "endpoints: not there: not asked for",
		{Topic: source.Status, Node: "n2"}:                "status on n2: forbidden: pods/exec in kube-system: cannot create",
		{Topic: source.Status, Node: "n4"}:                "status on n4: not there: no agent pod on it",
		{Topic: source.MapList, Node: "n1"}:               "bpf-lb-list on n1: cut off: connection reset by peer",
		{Topic: source.InitLog, Node: "n1", Arg: "clean"}: "init-log (clean) on n1: not there: not in the snapshot",
		{Topic: source.Services, Arg: "web"}:              `services (web): not there: asked for "web" alone, and a snapshot holds the topic as a whole`,
	}
	for q, want := range tests {
		if err := got[q].Err; err == nil || err.Error() != want {
			t.Errorf("%+v: %v\nwant %s", q, err, want)
		}
	}
}

func TestAbout(t *testing.T) {
	path := unpackDir(t, files())
	s := openSnapshot(t, path)
	want := source.About{
		Kind: "snapshot", Name: path, Server: "https://10.0.0.1:6443", Context: "prod", Version: "v1.33.4", Cilium: []string{"1.17.6"},
		Recorded: time.Date(2025, 3, 4, 5, 6, 7, 0, time.UTC), Tool: "v0.3.0",
	}
	if d := cmp.Diff(want, s.About()); d != "" {
		t.Errorf("About (-want +got):\n%s", d)
	}
	if start, end := s.Times(); end.Sub(start) != 20*time.Second {
		t.Errorf("Times() = %v, %v, want 20s", start, end)
	}
	bare := openSnapshot(t, unpackDir(t, map[string]string{"services.yaml": ""}))
	if got := bare.About(); !got.Recorded.IsZero() {
		t.Errorf("without snapshot.yaml: recorded %v, want not known", got.Recorded)
	}
}

func TestUnknown(t *testing.T) {
	all := under("top", files())
	all["beside.txt"] = ""
	s := openSnapshot(t, keepFile(t, packZip(t, all)))
	want := []string{"beside.txt", "expected.md", "nodes/N9/agent.log", "nodes/n1/lsmod.txt"}
	if d := cmp.Diff(want, s.Unknown()); d != "" {
		t.Errorf("Unknown (-want +got):\n%s", d)
	}
}

func TestRoot(t *testing.T) {
	tests := map[string]struct {
		files map[string]string
		want  string // content of services.yaml, "" where there is no root
	}{
		"top":                   {map[string]string{"services.yaml": "1"}, "1"},
		"one folder":            {map[string]string{"a/services.yaml": "1"}, "1"},
		"deep":                  {map[string]string{"a/b/c/services.yaml": "1", "a/b/c/x/services.yaml": "2"}, "1"},
		"by nodes":              {map[string]string{"a/nodes/n1/x.txt": "", "a/x/services.yaml": "2", "a/services.json": "1"}, "1"},
		"by an empty folder":    {map[string]string{"a/nodes/": "", "a/b/services.yaml": "2"}, "none"},
		"snapshot.yaml decides": {map[string]string{"services.yaml": "2", "a/snapshot.yaml": "", "a/services.yaml": "1"}, "1"},
		"two":                   {map[string]string{"a/services.yaml": "1", "b/services.yaml": "2"}, ""},
		"nothing":               {map[string]string{"README.md": "", "a/services.txt": ""}, ""},
		"of a mac":              {map[string]string{"a/services.yaml": "1", "__MACOSX/a/._services.yaml": "", "__MACOSX/a/nodes/n1/._x": ""}, "1"},
	}
	for name, tc := range tests {
		for kind, path := range map[string]string{
			"folder": unpackDir(t, tc.files), "tar": keepFile(t, packTar(t, tc.files)), "zip": keepFile(t, packZip(t, tc.files)),
		} {
			s, err := source.OpenSnapshot(path)
			if tc.want == "" {
				if !errors.Is(err, source.ErrNotSnapshot) {
					t.Errorf("%s, %s: %v, want no snapshot", name, kind, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s, %s: %v", name, kind, err)
				continue
			}
			q := source.Query{Topic: source.Services}
			a := sourcetest.Collect(t, s, []source.Query{q})[q]
			if got := string(a.Artifact.Data); got != tc.want && (tc.want != "none" || a.Err == nil) {
				t.Errorf("%s, %s: services %q, want %q", name, kind, got, tc.want)
			}
			s.Close()
		}
	}
}

func TestNodes(t *testing.T) {
	n := func(names ...string) (all []source.Node) {
		for _, name := range names {
			all = append(all, source.Node{Name: name})
		}
		return all
	}
	tests := map[string]struct {
		file, data string
		want       []source.Node
		class      error
	}{
		"list":          {"nodes.yaml", "apiVersion: v1\nkind: List\nitems:\n- {kind: Node, metadata: {name: b}}\n- {kind: Node, metadata: {name: a}}\n", n("a", "b"), nil},
		"items alone":   {"nodes.yaml", "items:\n- metadata: {name: b}\n- metadata:\n- null\n", n("b"), nil},
		"single object": {"nodes.yaml", "kind: Node\nmetadata: {name: cp-1}\n", n("cp-1"), nil},
		"json":          {"nodes.json", `{"kind":"NodeList","items":[{"metadata":{"name":"a"}},{"metadata":{"name":"a"}}]}`, n("a"), nil},
		"empty":         {"nodes.yaml", "", nil, nil},
		"no list":       {"nodes.yaml", "just words", nil, source.ErrCut},
		"not yaml":      {"nodes.yaml", "items: [\n", nil, source.ErrCut},
	}
	for name, tc := range tests {
		s := openSnapshot(t, keepFile(t, packGzip(t, packTar(t, map[string]string{tc.file: tc.data}))))
		got, err := s.Nodes(t.Context())
		if d := cmp.Diff(tc.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
		if (err == nil) != (tc.class == nil) || err != nil && !errors.Is(err, tc.class) {
			t.Errorf("%s: error %v, want %v", name, err, tc.class)
		}
	}
}

// A damaged list must not hide that there may be more nodes than folders.
func TestNodesKnownInPart(t *testing.T) {
	s := openSnapshot(t, unpackDir(t, map[string]string{"nodes.yaml": "items: 3", "nodes/n1/status.txt": ""}))
	got, err := s.Nodes(t.Context())
	if len(got) != 1 || !errors.Is(err, source.ErrCut) {
		t.Errorf("Nodes = %v, %v, want n1 and an error", got, err)
	}
	var b bytes.Buffer
	w := source.NewTarWriter(&b, "again")
	sum, err := source.Record(t.Context(), s, nil, w, info())
	if err != nil || sum.NodesGap == nil {
		t.Fatalf("Record: %+v, %v, want a gap of nodes", sum, err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := openSnapshot(t, keepFile(t, b.Bytes())).Nodes(t.Context())
	if len(again) != 1 || !errors.Is(err, source.ErrCut) {
		t.Errorf("recorded: Nodes = %v, %v, want n1 and an error", again, err)
	}
}

func TestManifest(t *testing.T) {
	tests := map[string]string{
		"schema: 2\n":          "schema 2 is newer",
		"members: 5\n":         "cannot unmarshal",
		"\t- :":                "snapshot.yaml",
		"started: yesterday\n": "snapshot.yaml",
		"a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n" +
			"e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]\nh: [*g,*g,*g,*g,*g,*g,*g,*g,*g]\n": "aliasing",
	}
	for text, want := range tests {
		_, err := source.OpenSnapshot(unpackDir(t, map[string]string{"snapshot.yaml": text}))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: error %v, want one with %q", text, err, want)
		}
	}
	s := openSnapshot(t, unpackDir(t, map[string]string{
		"snapshot.yaml": "context: \"a\\e[31mb\\u202ec\"\nlater: unknown\nnodes: [{name: ../x}, {name: ok, reason: \"x\\ny\"}]\n",
	}))
	if got := s.About().Context; got != "a [31mb c" {
		t.Errorf("context %q has characters that draw", got)
	}
	nodes, err := s.Nodes(t.Context())
	if d := cmp.Diff([]source.Node{{Name: "ok", Reason: "x y"}}, nodes); d != "" || err != nil {
		t.Errorf("Nodes: %v (-want +got):\n%s", err, d)
	}
}

func TestSecondReadSeesChange(t *testing.T) {
	dir := unpackDir(t, files())
	s := openSnapshot(t, dir)
	if err := os.WriteFile(dir+"/pods.yaml", []byte("longer than it was when it was counted"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(dir + "/services.yaml"); err != nil {
		t.Fatal(err)
	}
	pods, services := source.Query{Topic: source.Pods}, source.Query{Topic: source.Services}
	got := sourcetest.Collect(t, s, []source.Query{pods, services})
	if !errors.Is(got[pods].Err, source.ErrCut) || !errors.Is(got[services].Err, source.ErrAbsent) {
		t.Errorf("pods %v, services %v, want cut and absent", got[pods].Err, got[services].Err)
	}
}

func TestCollectStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	n, stopped := 0, 0
	err := openSnapshot(t, keepFile(t, packTar(t, files()))).Collect(ctx, queries(want()), func(a source.Artifact, err error) {
		if n++; err == nil {
			cancel()
		}
		if errors.Is(err, context.Canceled) {
			stopped++
		}
	})
	if err != nil || n != len(queries(want())) || stopped == 0 {
		t.Errorf("%d of %d answers, %d of them stopped, %v", n, len(queries(want())), stopped, err)
	}
}
