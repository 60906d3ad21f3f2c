package rancher

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-kpr/kubectl-kpr/internal/yamlfile"
)

func TestMerge(t *testing.T) {
	c, err := Merge([]File{
		{"config.yaml", []byte("disable:\n  - traefik\ndisable-kube-proxy: false\nflannel-backend: none\ntoken: x\nnode-ip: 10.0.0.1\n")},
		{"config.yaml.d/10.yaml", []byte("disable+: servicelb,local-storage\ndisable-kube-proxy: true\n# comment\nkubelet-arg+:\n- a=b\n")},
		{"config.yaml.d/20.yml", []byte("node-ip:\nkubelet-arg+: c=d\n")},
		{"config.yaml.d/30.yaml", []byte("# nothing\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []Value{{"traefik", "config.yaml", 2}, {"servicelb", "config.yaml.d/10.yaml", 1}, {"local-storage", "config.yaml.d/10.yaml", 1}}
	if diff := cmp.Diff(want, c.Strings("disable")); diff != "" {
		t.Errorf("disable (-want +got):\n%s", diff)
	}
	if off, ok := c.Bool("disable-kube-proxy"); !off || !ok {
		t.Error("disable-kube-proxy: the later file wins")
	}
	e, _ := c.Get("disable-kube-proxy")
	if diff := cmp.Diff(Entry{
		Key: "disable-kube-proxy", Values: []Value{{"true", "config.yaml.d/10.yaml", 2}}, File: "config.yaml.d/10.yaml", Line: 2,
		Replaced: []Place{{"config.yaml", 3}},
	}, e); diff != "" {
		t.Errorf("disable-kube-proxy (-want +got):\n%s", diff)
	}
	if e, ok := c.Get("node-ip"); !ok || !e.Empty || c.Last("node-ip") != "" {
		t.Errorf("node-ip: a key without a value takes the value away: %+v", e)
	}
	if got := c.Strings("kubelet-arg"); len(got) != 2 || got[1].Text != "c=d" {
		t.Errorf("kubelet-arg: %v", got)
	}
	if _, ok := c.Bool("flannel-backend"); ok {
		t.Error("a word is no bool")
	}
	if _, ok := c.Get("nope"); ok || c.Last("nope") != "" {
		t.Error("a flag that is not there")
	}
}

func TestMergeErrors(t *testing.T) {
	for data, line := range map[string]int{"a: 1\n\tb": 2, "- a\n": 1, "a: 1\nserver: https://{{ vip }}:6443\n": 2} {
		var e *yamlfile.Error
		if _, err := Merge([]File{{"config.yaml", []byte(data)}}); !errors.As(err, &e) || e.Line != line {
			t.Errorf("%q: %v", data, err)
		}
	}
}

func TestFiles(t *testing.T) {
	root := t.TempDir()
	for name, data := range map[string]string{
		"k3s/config.yaml": "a: 1", "k3s/config.yaml.d/20-b.YAML": "b: 1", "k3s/config.yaml.d/10-a.yml": "c: 1", "k3s/config.yaml.d/notes.txt": "x",
		"k3s/config.yaml.d/sub/x.yaml": "d: 1", "loose/z.yaml": "a: 1", "loose/a.yml": "b: 1", "none/readme.md": "", "dropins/config.yaml.d/1.yaml": "a: 1",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	whole := []string{"k3s/config.yaml", "k3s/config.yaml.d/10-a.yml", "k3s/config.yaml.d/20-b.YAML"}
	for path, want := range map[string][]string{
		"k3s":             whole,
		"k3s/config.yaml": whole,
		"loose":           {"loose/a.yml", "loose/z.yaml"},
		"loose/z.yaml":    {"loose/z.yaml"},
		"dropins":         {"dropins/config.yaml.d/1.yaml"},
	} {
		files, err := Files(filepath.Join(root, path))
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		var got []string
		for _, f := range files {
			rel, _ := filepath.Rel(root, f.Name)
			got = append(got, rel)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
	for _, path := range []string{"none", "nope"} {
		if _, err := Files(filepath.Join(root, path)); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestSplit(t *testing.T) {
	got := Split([]byte("noise\n# file: /etc/rancher/k3s/config.yaml\na: 1\nb: 2\n# file: /etc/rancher/k3s/config.yaml.d/20.yaml\nc: 3\n# file: /etc/rancher/k3s/config.yaml.d/10.yml\nc: 4\n"))
	want := []File{
		{"/etc/rancher/k3s/config.yaml", []byte("a: 1\nb: 2\n")},
		{"/etc/rancher/k3s/config.yaml.d/10.yml", []byte("c: 4\n")},
		{"/etc/rancher/k3s/config.yaml.d/20.yaml", []byte("c: 3\n")},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if Split(nil) != nil {
		t.Error("files of nothing")
	}
}

func FuzzMerge(f *testing.F) {
	f.Add([]byte("# file: a\ndisable: [x, y]\ndisable+: z\n# file: b.d/c\nk:\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Merge(Split(data))
		if err != nil {
			return
		}
		for _, e := range c.Entries {
			if e.Line < 1 || e.Empty != (len(e.Values) == 0) {
				t.Errorf("%+v", e)
			}
		}
	})
}
