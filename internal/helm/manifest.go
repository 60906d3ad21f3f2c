package helm

import (
	"fmt"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/internal/yamlfile"
)

// unwrap takes the values out of manifests; a file of one plain document is
// its own values. Of several plain documents Helm reads the first.
func unwrap(docs []*yamlfile.Value) ([]*yamlfile.Value, error) {
	var plain, wrapped []*yamlfile.Value
	for _, d := range docs {
		kind := d.Get("kind").String()
		if d.Get("apiVersion") == nil || kind == "" {
			plain = append(plain, d)
			continue
		}
		inner, err := wrappedIn(d, kind)
		if err != nil {
			return nil, err
		}
		wrapped = append(wrapped, inner...)
	}
	if len(wrapped) > 0 || len(plain) == 0 {
		if len(docs) > 0 && len(wrapped) == 0 {
			return nil, &yamlfile.Error{File: docs[0].File, Line: docs[0].Line, Reason: fmt.Sprintf("a manifest of kind %s holds no values of a chart", docs[0].Get("kind"))}
		}
		return wrapped, nil
	}
	return plain[:1], nil
}

func wrappedIn(d *yamlfile.Value, kind string) ([]*yamlfile.Value, error) {
	if !aboutCilium(d, kind) {
		return nil, nil
	}
	candidates := []*yamlfile.Value{
		d.Get("spec", "valuesContent"), // HelmChart, HelmChartConfig
		d.Get("spec", "values"),        // HelmRelease; HelmChart of newer k3s
	}
	sources := []*yamlfile.Value{d.Get("spec", "source")} // Application
	if several := d.Get("spec", "sources"); several != nil {
		sources = append(sources, several.Items...)
	}
	for _, s := range sources {
		candidates = append(candidates, s.Get("helm", "values"), s.Get("helm", "valuesObject"))
	}
	var out []*yamlfile.Value
	for _, v := range candidates {
		if v == nil || v.Kind == yamlfile.Null {
			continue
		}
		if v.Kind != yamlfile.Scalar {
			out = append(out, v)
			continue
		}
		inner, err := inside(v)
		if err != nil {
			return nil, err
		}
		out = append(out, inner...)
	}
	return out, nil
}

// versionIn is the version of the chart that a manifest asks for.
func versionIn(docs []*yamlfile.Value) string {
	for _, d := range docs {
		if !aboutCilium(d, d.Get("kind").String()) {
			continue
		}
		for _, path := range [][]string{{"spec", "version"}, {"spec", "chart", "spec", "version"}, {"spec", "source", "targetRevision"}} {
			if v := d.Get(path...).String(); v != "" && strings.Trim(v, "v0123456789.") == "" {
				return v
			}
		}
	}
	return ""
}

// aboutCilium leaves out the other charts of a file of manifests.
func aboutCilium(d *yamlfile.Value, kind string) bool {
	switch kind {
	case "HelmChart", "HelmChartConfig", "HelmRelease", "Application":
	default:
		return false
	}
	names := []string{
		d.Get("metadata", "name").String(), d.Get("spec", "chart").String(), d.Get("spec", "source", "chart").String(),
		d.Get("spec", "chart", "spec", "chart").String(), d.Get("spec", "chartRef", "name").String(),
	}
	for _, n := range names {
		if strings.Contains(strings.ToLower(n), "cilium") {
			return true
		}
	}
	return false
}

// inside reads YAML that stands in a block of another file, with the lines of
// that file: the text of a block begins on the line after its key's value.
func inside(v *yamlfile.Value) ([]*yamlfile.Value, error) {
	first := v.Line
	if !v.Block {
		first--
	}
	docs, err := yamlfile.Parse(v.File, []byte(strings.Repeat("\n", max(0, first))+v.Text))
	if err != nil || len(docs) == 0 {
		return nil, err
	}
	return docs[:1], nil
}

// umbrella finds the values of a chart that has Cilium's as a dependency.
func umbrella(root *yamlfile.Value) *yamlfile.Value {
	inner := root.Get("cilium")
	if inner == nil || inner.Kind != yamlfile.Object {
		return root
	}
	return inner
}
