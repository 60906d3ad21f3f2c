package cilium

import (
	"testing"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

func TestCapabilitiesOf(t *testing.T) {
	tests := []struct {
		version, read                string
		states, dbg, shell, wildcard lb.Answer
	}{
		{"1.20.2", "1.20.2", lb.Yes, lb.Yes, lb.Yes, lb.Yes},
		{"v1.14.0-rc.0", "1.14.0", lb.Yes, lb.No, lb.No, lb.No},
		{"1.16-dev", "1.16.0", lb.Yes, lb.Yes, lb.No, lb.No},
		{"1.17.6 (v1.17.6-81c4b4f1)", "1.17.6", lb.Yes, lb.Yes, lb.Yes, lb.No},
		{" 1.9.18\n", "1.9.18", lb.No, lb.No, lb.No, lb.No},
		{"1.19.3+build.5", "1.19.3", lb.Yes, lb.Yes, lb.Yes, lb.Yes},
		{"2.0.0", "2.0.0", lb.Yes, lb.Yes, lb.Yes, lb.Yes},
		{"", "unknown version", lb.Unknown, lb.Unknown, lb.Unknown, lb.Unknown},
		{"latest", "unknown version", lb.Unknown, lb.Unknown, lb.Unknown, lb.Unknown},
		{"1", "unknown version", lb.Unknown, lb.Unknown, lb.Unknown, lb.Unknown},
		{"1.", "unknown version", lb.Unknown, lb.Unknown, lb.Unknown, lb.Unknown},
		{"1.x", "unknown version", lb.Unknown, lb.Unknown, lb.Unknown, lb.Unknown},
		{"1.20x", "unknown version", lb.Unknown, lb.Unknown, lb.Unknown, lb.Unknown},
		{"20240101.1", "unknown version", lb.Unknown, lb.Unknown, lb.Unknown, lb.Unknown},
		{"-1.20", "unknown version", lb.Unknown, lb.Unknown, lb.Unknown, lb.Unknown},
		{"1.20.99999999999999999999", "unknown version", lb.Unknown, lb.Unknown, lb.Unknown, lb.Unknown},
	}
	for _, tt := range tests {
		c := CapabilitiesOf(tt.version)
		got := [4]lb.Answer{c.Has(BackendStates), c.Has(DbgBinary), c.Has(HasShell), c.Has(WildcardRows)}
		if want := [4]lb.Answer{tt.states, tt.dbg, tt.shell, tt.wildcard}; got != want || c.String() != tt.read {
			t.Errorf("%q: %v as %q, want %v as %q", tt.version, got, c, want, tt.read)
		}
	}
	if got := CapabilitiesOf("1.20.2").Has(0); got != lb.Unknown {
		t.Errorf("the zero Feature: %v", got)
	}
	var zero Capabilities
	if zero.Has(HasShell) != lb.Unknown {
		t.Error("zero Capabilities know something")
	}
}

func TestVersionOfImage(t *testing.T) {
	for image, want := range map[string]string{
		"quay.io/cilium/cilium:v1.20.2":                   "1.20.2",
		"quay.io/cilium/cilium:v1.20.2@sha256:4711":       "1.20.2",
		"quay.io/cilium/cilium@sha256:4711":               "",
		"registry:5000/cilium/cilium":                     "",
		"registry:5000/mirror/cilium:1.16.3-eksbuild.1":   "1.16.3",
		"rancher/mirrored-cilium-cilium:v1.15.5":          "1.15.5",
		"quay.io/cilium/cilium-ci:4b1e3f":                 "",
		"gke.gcr.io/anetd:1.2.3":                          "",
		"cilium:latest":                                   "",
		"":                                                "",
		"localhost/cilium-agent:1.20.2-lab":               "1.20.2",
		"quay.io/isovalent/cilium:v1.14.5-cee.1@sha256:1": "1.14.5",
	} {
		if got := VersionOfImage(image); got != want {
			t.Errorf("%q: %q, want %q", image, got, want)
		}
	}
	if CapabilitiesOfImage("quay.io/cilium/cilium:v1.17.0").Has(HasLBTables) != lb.No {
		t.Error("1.17 has load-balancing tables")
	}
}

func TestSince(t *testing.T) {
	if got := HasLBTables.Since(); got != "1.18" {
		t.Errorf("HasLBTables since %q", got)
	}
	if got := Feature(0).Since(); got != "" {
		t.Errorf("zero Feature since %q", got)
	}
}
