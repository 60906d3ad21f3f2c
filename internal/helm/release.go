package helm

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxRelease bounds a release once it is unpacked; a Secret holds 1 MiB.
const maxRelease = 64 << 20

// Release is one revision of an installed chart.
type Release struct {
	Name, Namespace string
	Revision        int
	Status          string // deployed, superseded, failed, pending-upgrade, …
	Chart           string // "cilium"
	ChartVersion    string
	AppVersion      string
	values          map[string]any // as the user gave them
	defaults        map[string]any // of the chart
}

// ErrRelease is wrapped by errors about data that is no release.
var ErrRelease = errors.New("not a Helm release")

// DecodeRelease reads the key "release" of a Secret sh.helm.release.v1.NAME.vN:
// JSON, packed by gzip since Helm 3, in base64.
//
// Source: pkg/storage/driver/util.go of Helm 3.
func DecodeRelease(data []byte) (*Release, error) {
	raw := make([]byte, base64.StdEncoding.DecodedLen(len(data)))
	n, err := base64.StdEncoding.Decode(raw, bytes.TrimSpace(data))
	if err != nil {
		return nil, fmt.Errorf("%w: base64: %w", ErrRelease, err)
	}
	raw = raw[:n]
	if bytes.HasPrefix(raw, []byte{0x1f, 0x8b, 0x08}) {
		if raw, err = unpack(raw); err != nil {
			return nil, err
		}
	}
	var stored struct {
		Name      string
		Namespace string
		Version   int
		Info      struct{ Status string }
		Chart     struct {
			Metadata struct{ Name, Version, AppVersion string }
			Values   map[string]any
		}
		Config map[string]any
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber() // 65536 stays 65536
	if err := dec.Decode(&stored); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRelease, err)
	}
	if stored.Name == "" || stored.Chart.Metadata.Name == "" {
		return nil, fmt.Errorf("%w: it names no release and no chart", ErrRelease)
	}
	m := stored.Chart.Metadata
	return &Release{
		Name: stored.Name, Namespace: stored.Namespace, Revision: stored.Version, Status: stored.Info.Status,
		Chart: m.Name, ChartVersion: m.Version, AppVersion: m.AppVersion, values: stored.Config, defaults: stored.Chart.Values,
	}, nil
}

func unpack(raw []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("%w: gzip: %w", ErrRelease, err)
	}
	out, err := io.ReadAll(io.LimitReader(z, maxRelease+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: gzip: %w", ErrRelease, err)
	case len(out) > maxRelease:
		return nil, fmt.Errorf("%w: larger than %d MiB unpacked", ErrRelease, maxRelease>>20)
	}
	return out, nil
}

// String names the release and its revision.
func (r *Release) String() string {
	return fmt.Sprintf("release %s/%s, revision %d (chart %s %s)", r.Namespace, r.Name, r.Revision, r.Chart, r.ChartVersion)
}

// Value is the value at a path, such as "bpf.masquerade", as a word: what the
// user gave, else the chart's default. set tells whether the user gave it; a
// value that is null, and one that is in neither, is "" with ok false.
func (r *Release) Value(path string) (text string, set, ok bool) {
	if v, found := at(r.values, path); found {
		if v == nil {
			return "", true, false
		}
		return word(v), true, true
	}
	v, found := at(r.defaults, path)
	if !found || v == nil {
		return "", false, false
	}
	return word(v), false, true
}

// at walks a path. An umbrella chart has Cilium's values under its name.
func at(values map[string]any, path string) (any, bool) {
	var v any = values
	for _, key := range strings.Split(path, ".") {
		object, ok := v.(map[string]any)
		if !ok {
			return nil, false
		}
		if v, ok = object[key]; !ok {
			return nil, false
		}
	}
	return v, true
}

// word writes a value as the chart writes it into cilium-config.
func word(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		if v {
			return "true"
		}
		return "false"
	case []any:
		words := make([]string, len(v))
		for i, item := range v {
			words[i] = word(item)
		}
		return strings.Join(words, " ")
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(raw)
}
