// Package sysdumptest lays a recorded snapshot out as a cilium sysdump of the
// same cluster would be: file names, lists without kinds, outputs in Markdown
// files. What a sysdump never holds is left out.
package sysdumptest

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// Stamp is the time in every name.
const Stamp = "20261201-045315"

// Files are the files of a dump by name, without a top folder.
type Files map[string][]byte

// Of lays out the snapshot in a folder.
func Of(t testing.TB, snapshot string) Files {
	t.Helper()
	out := Files{"cilium-sysdump.log": []byte("🔍 Collecting sysdump with cilium-cli version: v0.19.7, args: [sysdump]\n")}
	for from, to := range map[string]string{
		"services": "k8s-services", "endpointslices": "k8s-endpointslices", "nodes": "k8s-nodes", "pods": "k8s-pods",
		"daemonsets": "cilium-daemonset", "ciliumnodeconfigs": "ciliumnodeconfigs", "cilium-config": "cilium-configmap",
	} {
		if data, err := os.ReadFile(filepath.Join(snapshot, from+".json")); err == nil {
			out[to+"-"+Stamp+".yaml"] = list(t, data)
		}
	}
	pods := podsByNode(t, filepath.Join(snapshot, "pods.json"))
	for node, pod := range pods {
		dir := "cilium-bugtool-" + pod + "-" + Stamp + "/cmd/"
		for from, to := range map[string]string{
			"service-list.json": "cilium-dbg-service-list--o-json.md", "bpf-lb-list.json": "cilium-dbg-bpf-lb-list--o-json.md",
			"bpf-lb-list-frontends.json": "cilium-dbg-bpf-lb-list---frontends.md", "config.txt": "cilium-dbg-config--a.md",
			"iptables-nft-save.txt": "iptables-nft-save--c.md", "iptables-legacy-save.txt": "iptables-legacy-save--c.md",
			"ip6tables-nft-save.txt": "ip6tables-nft-save--c.md", "ip6tables-legacy-save.txt": "ip6tables-legacy-save--c.md",
			"bpftool-cgroup-show.txt": "bpftool-cgroup-tree--run-cilium-cgroupv2.md",
		} {
			if data, err := os.ReadFile(filepath.Join(snapshot, "nodes", node, from)); err == nil && !strings.Contains(to, "---frontends") {
				out[dir+to] = data
			}
		}
		if data, err := os.ReadFile(filepath.Join(snapshot, "nodes", node, "status.json")); err == nil {
			out[dir+"cilium-debuginfo-"+Stamp+".123+0000-UTC.json"] = []byte(`{"cilium-status":` + string(data) + `}`)
		}
		if data, err := os.ReadFile(filepath.Join(snapshot, "nodes", node, "ss.txt")); err == nil {
			text := "State   Recv-Q Send-Q Local Address:Port Peer Address:Port Process\n" + strings.ReplaceAll("\n"+string(data), "\ntcp ", "\n")
			out[dir+"ss--t--p--a--i--s--n--e.md"] = []byte(text)
		}
		if data, err := os.ReadFile(filepath.Join(snapshot, "nodes", node, "agent.log")); err == nil {
			out["logs-"+pod+"-cilium-agent-"+Stamp+".log"] = data
		}
		if len(out[dir+"cilium-dbg-service-list--o-json.md"]) > 0 {
			out[dir+"hostname.md"] = []byte(node + "\n")
		}
	}
	return out
}

// list is a Kubernetes list as the collector writes it: YAML, the items
// without kind and apiVersion.
func list(t testing.TB, data []byte) []byte {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	if items, ok := v["items"].([]any); ok {
		for _, i := range items {
			if o, ok := i.(map[string]any); ok {
				kind, ok := o["kind"].(string)
				if !ok {
					t.Fatalf("an item without a kind: %v", o)
				}
				v["kind"], v["apiVersion"] = kind+"List", o["apiVersion"]
				delete(o, "kind")
				delete(o, "apiVersion")
			}
		}
	}
	out, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func podsByNode(t testing.TB, file string) map[string]string {
	t.Helper()
	var v struct {
		Items []struct {
			Metadata struct {
				Name   string
				Labels map[string]string
			}
			Spec struct{ NodeName string }
		}
	}
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, p := range v.Items {
		if p.Metadata.Labels["k8s-app"] == "cilium" {
			out[p.Spec.NodeName] = p.Metadata.Name
		}
	}
	return out
}

func (f Files) names() []string {
	var names []string
	for n := range f {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// Folder writes the dump into a folder below dir, "" for none.
func (f Files) Folder(t testing.TB, top string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range f.names() {
		at := filepath.Join(dir, top, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, f[name], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Zip writes the dump as the collector does, without entries for folders.
func (f Files) Zip(t testing.TB, top string) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range f.names() {
		e, err := w.Create(path.Join(top, name))
		if err == nil {
			_, err = e.Write(f[name])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file(t, "dump.zip", b.Bytes())
}

// Tar packs the dump again, as people do; with a name that ends in gz
// compressed.
func (f Files) Tar(t testing.TB, name, top string) string {
	t.Helper()
	return file(t, name, f.Packed(t, top, strings.HasSuffix(name, "gz")))
}

// Packed is the dump as a tar in memory.
func (f Files) Packed(t testing.TB, top string, compressed bool) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range f.names() {
		err := w.WriteHeader(&tar.Header{Name: path.Join(top, name), Typeflag: tar.TypeReg, Mode: 0o600, Size: int64(len(f[name]))})
		if err == nil {
			_, err = w.Write(f[name])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if !compressed {
		return b.Bytes()
	}
	var z bytes.Buffer
	g := gzip.NewWriter(&z)
	if _, err := g.Write(b.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	return z.Bytes()
}

func file(t testing.TB, name string, data []byte) string {
	t.Helper()
	at := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(at, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return at
}
