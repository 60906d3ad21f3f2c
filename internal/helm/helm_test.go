package helm

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-kpr/kubectl-kpr/internal/yamlfile"
)

// packed stores JSON as Helm does.
func packed(t testing.TB, json string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(json)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return []byte(base64.StdEncoding.EncodeToString(b.Bytes()))
}

const stored = `{"name":"cilium","namespace":"kube-system","version":4,"info":{"status":"deployed"},
"chart":{"metadata":{"name":"cilium","version":"1.20.2","appVersion":"1.20.2"},"values":{"bpf":{"lbMapMax":65536,"masquerade":null},"kubeProxyReplacement":"false","devices":["eth+","ens3"]}},
"config":{"kubeProxyReplacement":true,"bpf":{"hostLegacyRouting":false},"operator":null,"ratio":0.0025}}`

func TestDecodeRelease(t *testing.T) {
	r, err := DecodeRelease(packed(t, stored))
	if err != nil {
		t.Fatal(err)
	}
	if got := r.String(); got != "release kube-system/cilium, revision 4 (chart cilium 1.20.2)" {
		t.Error(got)
	}
	type value struct {
		text    string
		set, ok bool
	}
	for path, want := range map[string]value{
		"kubeProxyReplacement":   {"true", true, true},
		"bpf.hostLegacyRouting":  {"false", true, true},
		"bpf.lbMapMax":           {"65536", false, true},
		"bpf.masquerade":         {"", false, false}, // null in the chart
		"devices":                {"eth+ ens3", false, true},
		"operator":               {"", true, false},
		"ratio":                  {"0.0025", true, true},
		"no.such":                {},
		"kubeProxyReplacement.x": {},
	} {
		text, set, ok := r.Value(path)
		if got := (value{text, set, ok}); got != want {
			t.Errorf("%s: %+v, want %+v", path, got, want)
		}
	}
	// Helm 2 and a few tools leave out gzip.
	if _, err := DecodeRelease([]byte(base64.StdEncoding.EncodeToString([]byte(stored)))); err != nil {
		t.Error(err)
	}
}

func TestDecodeReleaseErrors(t *testing.T) {
	for name, data := range map[string][]byte{
		"no base64": []byte("!"), "no json": packed(t, "x"), "other json": packed(t, `{"a":1}`), "empty": nil,
		"cut":  []byte(base64.StdEncoding.EncodeToString([]byte{0x1f, 0x8b, 0x08, 0})),
		"bomb": packed(t, `{"name":"`+strings.Repeat(" ", maxRelease)+`"}`),
	} {
		if _, err := DecodeRelease(data); !errors.Is(err, ErrRelease) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzDecodeRelease(f *testing.F) {
	f.Add(packed(f, stored))
	f.Add([]byte("e30="))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := DecodeRelease(data)
		if err == nil {
			r.Value("bpf.masquerade")
		}
	})
}

func read(t *testing.T, files ...string) (*Values, error) {
	t.Helper()
	var in []File
	for i, f := range files {
		in = append(in, File{fmt.Sprintf("f%d.yaml", i+1), []byte(f)})
	}
	return ReadValues(in)
}

func TestReadValues(t *testing.T) {
	v, err := read(t, `kubeProxyReplacement: false
bpf:
  masquerade: true
  hostLegacyRouting: true
devices: [eth0, eth1]
l7Proxy: false
`, `bpf:
  hostLegacyRouting: null
kubeProxyReplacement: true
devices: [ens3]
`)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	v.Walk(func(path string, line int, val *yamlfile.Value) {
		if val.Kind != yamlfile.Object {
			text, _, _ := v.Value(path)
			got[path] = fmt.Sprintf("%s %s:%d", text, val.File, line)
		}
	})
	want := map[string]string{
		"kubeProxyReplacement": "true f2.yaml:3", "bpf.masquerade": "true f1.yaml:3", "bpf.hostLegacyRouting": " f2.yaml:2",
		"devices": "ens3 f2.yaml:4", "l7Proxy": "false f1.yaml:6",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, set, ok := v.Value("bpf.hostLegacyRouting"); !set || ok {
		t.Error("null takes the value away")
	}
}

// TestReadManifests finds values, with their lines, in what ships them.
func TestReadManifests(t *testing.T) {
	for _, tt := range []struct {
		name, file, place string // of kubeProxyReplacement
	}{
		{"rke2", `# comment
apiVersion: helm.cattle.io/v1
kind: HelmChartConfig
metadata:
  name: rke2-cilium
  namespace: kube-system
spec:
  valuesContent: |-
    # first
    kubeProxyReplacement: true
`, "f1.yaml:10"},
		{"k3s, beside another chart", `apiVersion: helm.cattle.io/v1
kind: HelmChart
metadata: {name: traefik}
spec: {valuesContent: "kubeProxyReplacement: no"}
---
apiVersion: helm.cattle.io/v1
kind: HelmChart
metadata:
  name: cni
spec:
  chart: cilium
  valuesContent: |
    kubeProxyReplacement: true
`, "f1.yaml:13"},
		{"flux", "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: cni}\nspec:\n  chart: {spec: {chart: cilium}}\n  values:\n    kubeProxyReplacement: true\n", "f1.yaml:7"},
		{"argo", "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: cilium}\nspec:\n  source:\n    helm:\n      values: |\n        kubeProxyReplacement: true\n", "f1.yaml:8"},
		{"argo, sources", "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: cilium}\nspec:\n  sources:\n  - helm:\n      valuesObject:\n        kubeProxyReplacement: true\n", "f1.yaml:8"},
		{"umbrella", "other: 1\ncilium:\n  kubeProxyReplacement: true\n", "f1.yaml:3"},
		{"first of several", "kubeProxyReplacement: true\n---\nkubeProxyReplacement: false\n", "f1.yaml:1"},
		{"key that stands twice", "kubeProxyReplacement: false\nbpf: {a: 1}\nbpf: {b: 1}\nkubeProxyReplacement: true\n", "f1.yaml:4"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v, err := read(t, tt.file)
			if err != nil {
				t.Fatal(err)
			}
			got := v.Get("kubeProxyReplacement")
			if got == nil || got.Place() != tt.place || got.Text != "true" {
				t.Errorf("%+v, want true at %s", got, tt.place)
			}
			if v.Get("bpf.a") != nil {
				t.Error("the first of two objects under one key counts")
			}
			if strings.Contains(tt.name, "twice") && (len(v.Twice) != 2 || v.Twice[0].String() != "f1.yaml:3") {
				t.Errorf("%+v", v.Twice)
			}
		})
	}
}

func TestReadValuesErrors(t *testing.T) {
	for name, tt := range map[string]struct {
		file string
		line int
	}{
		"list":        {"- a\n", 1},
		"syntax":      {"a: 1\n b: 2\n", 2},
		"in a block":  {"apiVersion: helm.cattle.io/v1\nkind: HelmChartConfig\nmetadata: {name: rke2-cilium}\nspec:\n  valuesContent: |\n    a: 1\n    b: {{ vip }}\n", 7},
		"other chart": {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n", 1},
	} {
		_, err := read(t, tt.file)
		var e *yamlfile.Error
		if !errors.As(err, &e) || e.Line != tt.line {
			t.Errorf("%s: %v, want line %d", name, err, tt.line)
		}
	}
	if v, err := read(t, "# nothing\n"); err != nil || v.Get("a") != nil {
		t.Errorf("an empty file: %v", err)
	}
}
