package sysdump_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-kpr/kubectl-kpr/internal/sysdump"
	"github.com/kubectl-kpr/kubectl-kpr/internal/sysdump/sysdumptest"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/checks"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source/sourcetest"
)

const (
	fixtures = "../../test/fixtures/"
	top      = "cilium-sysdump-" + sysdumptest.Stamp
)

// findings are what all checks find above info, without what is merely not
// known.
func findings(t *testing.T, src source.Source) []string {
	t.Helper()
	run, err := diag.Do(context.Background(), src, diag.Selection{}, checks.All())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, r := range run.Results {
		for _, f := range r.Findings {
			if f.Severity > diag.Info && f.Rule != diag.Incomplete {
				out = append(out, fmt.Sprintf("%s %s", f.Severity, f.Key))
			}
		}
	}
	slices.Sort(out)
	return out
}

// TestDumpGivesTheVerdictOfTheSnapshot lays recorded clusters out as dumps, in
// every container there is: the same is found in all of them.
func TestDumpGivesTheVerdictOfTheSnapshot(t *testing.T) {
	recorded, err := filepath.Glob(fixtures + "lab-*")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, dir := range recorded {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			continue
		}
		t.Run(filepath.Base(dir), func(t *testing.T) {
			snapshot, err := source.OpenSnapshot(dir)
			if err != nil {
				t.Fatal(err)
			}
			want := findings(t, snapshot)
			files := sysdumptest.Of(t, dir)
			for name, at := range map[string]string{
				"zip": files.Zip(t, top), "zip of an old collector": files.Zip(t, "123456789"), "folder": files.Folder(t, ""),
				"folder in folders": files.Folder(t, "a/b"), "tar": files.Tar(t, "x.tar", top), "tar.gz without a top": files.Tar(t, "x.tar.gz", ""),
			} {
				src, err := sysdump.OpenRecorded(at)
				if err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				if src.About().Kind != "sysdump" {
					t.Errorf("%s: taken for a %s", name, src.About().Kind)
				}
				if diff := cmp.Diff(want, findings(t, src)); diff != "" {
					t.Errorf("%s (-snapshot +dump):\n%s", name, diff)
				}
				_ = src.Close()
			}
		})
		seen++
	}
	if seen < 5 {
		t.Errorf("only %d recorded clusters", seen)
	}
}

// TestConformance holds a dump to what every source must keep.
func TestConformance(t *testing.T) {
	files := sysdumptest.Of(t, fixtures+"lab-kpr")
	at := files.Zip(t, top)
	sourcetest.Conformance(t, func(t *testing.T) source.Source {
		src, err := sysdump.Open(at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = src.Close() })
		return src
	}, sourcetest.Want{
		Kind:  "sysdump",
		Nodes: []source.Node{{Name: "kpr-cp"}, {Name: "kpr-w1"}, {Name: "kpr-w2"}},
		Data:  map[source.Query]string{{Topic: source.CiliumConfig}: string(files["cilium-configmap-"+sysdumptest.Stamp+".yaml"])},
		Gaps: map[source.Query]error{
			{Topic: source.PersistentVolumes}:             source.ErrAbsent,
			{Topic: source.ProxyMode, Node: "kpr-w1"}:     source.ErrAbsent,
			{Topic: source.NFTRuleset, Node: "kpr-w1"}:    source.ErrAbsent,
			{Topic: source.ServiceList, Node: "kpr-none"}: source.ErrAbsent,
		},
	})
}

// reasons opens a dump and says why a query has no answer.
func reasons(t *testing.T, files sysdumptest.Files, q source.Query) string {
	t.Helper()
	src, err := sysdump.Open(files.Zip(t, top))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = src.Close() }()
	a := sourcetest.Collect(t, src, []source.Query{q})[q]
	if a.Err == nil {
		return "answered: " + string(a.Artifact.Data)
	}
	return a.Err.Error()
}

// TestWhatIsMissing: each absence has its reason.
func TestWhatIsMissing(t *testing.T) {
	log := func(s string) func(sysdumptest.Files) {
		return func(f sysdumptest.Files) { f["cilium-sysdump.log"] = []byte(s) }
	}
	const old = "🔍 Collecting sysdump with cilium-cli version: v0.12.6, args: [sysdump]\n"
	without := func(prefix string) func(sysdumptest.Files) {
		return func(f sysdumptest.Files) {
			for name := range f {
				if strings.HasPrefix(name, prefix) {
					delete(f, name)
				}
			}
		}
	}
	all := sysdumptest.Of(t, fixtures+"lab-kpr")
	var folder string
	for name := range all {
		if dir, file, _ := strings.Cut(name, "/cmd/"); file == "hostname.md" && string(all[name]) == "kpr-w1\n" {
			folder = dir
		}
	}
	for name, c := range map[string]struct {
		change []func(sysdumptest.Files)
		query  source.Query
		want   string
	}{
		"an old collector":  {[]func(sysdumptest.Files){log(old), without("k8s-endpointslices")}, source.Query{Topic: source.EndpointSlices}, "cilium-cli v0.12.6 did not collect it, v0.16.20 and later do"},
		"a new collector":   {[]func(sysdumptest.Files){without("k8s-endpointslices")}, source.Query{Topic: source.EndpointSlices}, "not in the dump"},
		"unknown collector": {[]func(sysdumptest.Files){without("cilium-sysdump.log"), without("k8s-endpointslices")}, source.Query{Topic: source.EndpointSlices}, "cilium-cli collects it since v0.16.20"},
		"namespace":         {[]func(sysdumptest.Files){log(old + "⚠️ an empty namespace may not be set when a resource name is provided\n"), without("cilium-configmap")}, source.Query{Topic: source.CiliumConfig}, "did not find Cilium's namespace"},
		"quick":             {[]func(sysdumptest.Files){log("🔍 Collecting sysdump with cilium-cli version: v0.19.7, args: [sysdump --quick]\n"), without("cilium-bugtool")}, source.Query{Topic: source.ServiceList, Node: "kpr-w1"}, "made with --quick"},
		"node list":         {[]func(sysdumptest.Files){log("🔍 Collecting sysdump with cilium-cli version: v0.19.7, args: [sysdump --node-list kpr-cp]\n"), without(folder)}, source.Query{Topic: source.ServiceList, Node: "kpr-w1"}, "made with --node-list"},
		"no folder":         {[]func(sysdumptest.Files){without(folder)}, source.Query{Topic: source.ServiceList, Node: "kpr-w1"}, "nothing was collected of the node"},
		"tool not in image": {[]func(sysdumptest.Files){without(folder + "/cmd/iptables-nft-save")}, source.Query{Topic: source.NFTSave, Node: "kpr-w1"}, "not collected by this version, or the tool is not in the image"},
		"never collected":   {nil, source.Query{Topic: source.ConfigMaps}, "holds no ConfigMap but Cilium's"},
		"agent is down": {[]func(sysdumptest.Files){func(f sysdumptest.Files) {
			f[folder+"/cmd/cilium-dbg-service-list--o-json.md"] = []byte("Error: Cannot get services list: Get \"http:///x\": dial unix /var/run/cilium/cilium.sock: connect: no such file or directory\nIs the agent running?\n> Error while running 'cilium-dbg service list -o json':  exit status 1\n\n")
		}}, source.Query{Topic: source.ServiceList, Node: "kpr-w1"}, "the agent does not answer"},
		"log around JSON": {[]func(sysdumptest.Files){func(f sysdumptest.Files) {
			f[folder+"/cmd/cilium-dbg-service-list--o-json.md"] = []byte("level=warning msg=x\n[]\nWarning: y\n")
		}}, source.Query{Topic: source.ServiceList, Node: "kpr-w1"}, "answered: []"},
		"cut JSON": {[]func(sysdumptest.Files){func(f sysdumptest.Files) { f[folder+"/cmd/cilium-dbg-service-list--o-json.md"] = []byte(`[{"spec":`) }}, source.Query{Topic: source.ServiceList, Node: "kpr-w1"}, "cut off"},
		"a timeout": {[]func(sysdumptest.Files){func(f sysdumptest.Files) {
			f[folder+"/cmd/iptables-nft-save--c.md"] = []byte("*nat\n> Error while running 'iptables-nft-save -c':  exec timeout\n")
		}}, source.Query{Topic: source.NFTSave, Node: "kpr-w1"}, "ran into its time"},
		"old markdown": {[]func(sysdumptest.Files){func(f sysdumptest.Files) {
			f[folder+"/cmd/iptables-nft-save--c.md"] = []byte("# iptables-nft-save -c\n\n```\n*nat\nCOMMIT\n```\n")
		}}, source.Query{Topic: source.NFTSave, Node: "kpr-w1"}, "answered: *nat\nCOMMIT\n"},
	} {
		files := sysdumptest.Files{}
		for k, v := range all {
			files[k] = v
		}
		for _, change := range c.change {
			change(files)
		}
		if got := reasons(t, files, c.query); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %q", name, got, c.want)
		}
	}
}

// TestArchiveInside: a folder that the collector could not unpack is read from
// its archive.
func TestArchiveInside(t *testing.T) {
	all := sysdumptest.Of(t, fixtures+"lab-kpr")
	files, inner := sysdumptest.Files{}, map[string]sysdumptest.Files{}
	for name, data := range all {
		dir, rest, ok := strings.Cut(name, "/cmd/")
		if !ok {
			files[name] = data
			continue
		}
		if inner[dir] == nil {
			inner[dir] = sysdumptest.Files{}
		}
		inner[dir]["cmd/"+rest] = data
	}
	for dir, f := range inner {
		files[dir+".tar.gz"] = f.Packed(t, "cilium-bugtool-20261201-045316.123+0000-UTC-1234567890", true)
	}
	snapshot, err := source.OpenSnapshot(fixtures + "lab-kpr")
	if err != nil {
		t.Fatal(err)
	}
	src, err := sysdump.Open(files.Zip(t, top))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(findings(t, snapshot), findings(t, src)); diff != "" {
		t.Errorf("(-snapshot +dump):\n%s", diff)
	}
}

// TestOneNode: the archive of cilium-bugtool alone has one node and nothing of
// the API; several in one, and other layouts, are refused with a word.
func TestOneNode(t *testing.T) {
	one := sysdumptest.Files{
		"cilium-bugtool-20261201-045316.123+0000-UTC-1234567890/cmd/hostname.md":                    []byte("w-1\n"),
		"cilium-bugtool-20261201-045316.123+0000-UTC-1234567890/cmd/cilium-dbg-service-list.md":     []byte("ID   Frontend   Service Type   Backend\n"),
		"cilium-bugtool-20261201-045316.123+0000-UTC-1234567890/cmd/cilium-dbg-status---verbose.md": []byte("KVStore: Disabled\n"),
	}
	src, err := sysdump.Open(one.Tar(t, "one.tar.gz", ""))
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := src.Nodes(t.Context())
	if err != nil || len(nodes) != 1 || nodes[0].Name != "w-1" {
		t.Errorf("nodes %v %v", nodes, err)
	}
	q := source.Query{Topic: source.Services}
	if a := sourcetest.Collect(t, src, []source.Query{q})[q]; !errors.Is(a.Err, source.ErrAbsent) || !strings.Contains(a.Err.Error(), "made by cilium-bugtool") {
		t.Errorf("services: %v", a.Err)
	}
	for name, files := range map[string]sysdumptest.Files{
		"python":  {"services-20210901-000000.yaml": []byte("items: []\n"), "cilium-ds-20210901-000000.yaml": []byte("x\n"), "k8s-version-info-20210901-000000.txt": []byte("x\n")},
		"several": {"a/cmd/cilium-status---verbose.md": []byte("x\n"), "b/cmd/cilium-status---verbose.md": []byte("x\n")},
		"nothing": {"a/b.txt": []byte("x\n")},
	} {
		if _, err := sysdump.Open(files.Zip(t, "")); !errors.Is(err, sysdump.ErrNotSysdump) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestMoving: what changed while the dump was made may be no fault.
func TestMoving(t *testing.T) {
	files := sysdumptest.Of(t, fixtures+"lab-kpr")
	files["k8s-endpointslices-"+sysdumptest.Stamp+".yaml"] = []byte(`apiVersion: discovery.k8s.io/v1
kind: EndpointSliceList
items:
- metadata: {name: a, namespace: shop, labels: {kubernetes.io/service-name: web}, managedFields: [{manager: x, time: "2026-12-01T04:53:40Z"}]}
- metadata: {name: b, namespace: shop, labels: {kubernetes.io/service-name: old}, managedFields: [{manager: x, time: "2026-12-01T04:00:00Z"}]}
`)
	src, err := sysdump.Open(files.Zip(t, top))
	if err != nil {
		t.Fatal(err)
	}
	for subject, want := range map[string]bool{"service/shop/web": true, "service/shop/old": false, "node/kpr-w1": false} {
		if _, ok := src.Moving(subject); ok != want {
			t.Errorf("%s: moving %t", subject, ok)
		}
	}
}
