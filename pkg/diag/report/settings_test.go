package report

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

func table(t *testing.T, snapshot string, chart map[string]string) *Document {
	t.Helper()
	src, err := source.OpenSnapshot("../../../test/" + snapshot)
	if err != nil {
		t.Fatal(err)
	}
	run, err := diag.Do(t.Context(), src, diag.Selection{}, nil, SettingFacts()...)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Settings: true}
	if chart != nil {
		o.Chart = &Chart{Said: "test", Value: func(path string) (string, bool, bool) {
			v, ok := chart[path]
			return v, ok, ok
		}}
	}
	return Build(run, o)
}

func rowOf(d *Document, key string) Setting {
	for _, r := range d.Settings.Rows {
		if r.Key == key {
			return r
		}
	}
	return Setting{}
}

// TestSettings groups nodes that are alike and keeps apart those that are not.
func TestSettings(t *testing.T) {
	d := table(t, "corpus/kops-mixed-modes", nil)
	want := []SettingGroup{
		{Told: "strict", Runs: "false", Known: true, Mark: "restart pending", Nodes: []string{"m-1"}},
		{Told: "strict", Runs: "true", Known: true, Nodes: []string{"w-1"}},
	}
	if diff := cmp.Diff(want, rowOf(d, "kube-proxy-replacement").Groups); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	raw, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	var back Document
	if err := json.Unmarshal(raw, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(d.Settings, back.Settings); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
}

// TestSettingsOfChart compares with cilium-config in the way that the chart
// writes it: what is the agent's default may be left out.
func TestSettingsOfChart(t *testing.T) {
	d := table(t, "fixtures/lab-kpr", map[string]string{
		"kubeProxyReplacement": "true", "bpf.masquerade": "false", "loadBalancer.mode": "snat", "loadBalancer.algorithm": "maglev",
		"socketLB.hostNamespaceOnly": "true", "gatewayAPI.enabled": "true", "k8sServiceHost": "10.9.9.9", "k8sServicePort": "6443",
	})
	var got []string
	for _, r := range d.Settings.Rows {
		for _, m := range r.Marks {
			got = append(got, strings.TrimSpace(r.Key+" "+m.Mark+": "+m.Why))
		}
	}
	want := []string{
		"bpf-lb-algorithm not applied: the chart says maglev, cilium-config does not have the key",
		"enable-bpf-masquerade not applied: the chart says false, cilium-config true",
		"not applied: the chart says 10.9.9.9:6443",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(d.Verdict.Text, "3 of ") {
		t.Error(d.Verdict.Text)
	}
}
