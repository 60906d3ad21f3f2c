package cli_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-kpr/kubectl-kpr/internal/live/livetest"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/report"
)

// TestConfigOfACluster reads the settings of three nodes, one of them lost: it
// is missing from the groups, and the outcome is unknown.
func TestConfigOfACluster(t *testing.T) {
	status, err := os.ReadFile("../../test/fixtures/kpr-clean/nodes/kpr-w1/status.json")
	if err != nil {
		t.Fatal(err)
	}
	server := livetest.New(t)
	for _, node := range []string{"a", "b", "c"} {
		agent := server.AddAgent(node, "1.20.2", map[string]livetest.Recording{
			"cilium-dbg status -o json": {Stdout: string(status)},
			"cilium-dbg config --all":   {Stdout: "#### Read-only configurations ####\nEnableIPv4    : true\n"},
		})
		agent.Unknown = true
		if node == "c" {
			agent.Fault, agent.Unasked = livetest.Refuse, true
		}
	}
	ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "cilium", Namespace: "kube-system", Labels: map[string]string{"k8s-app": "cilium"}}}
	ds.Spec.Template.Labels = map[string]string{"k8s-app": "cilium"}
	ds.Spec.Template.Spec.Containers = []corev1.Container{{Name: "cilium-agent"}}
	server.Add(ds, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "cilium-config", Namespace: "kube-system"},
		Data:       map[string]string{"kube-proxy-replacement": "true", "bpf-lb-mode": "dsr", "enable-ipv4": "true"},
	})
	code, out, _ := run(t, server, "config", "--helm-values", "--settle", "0", "-o", "json")
	var d report.Document
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		t.Fatal(err)
	}
	if code != report.ExitUnknown && code != report.ExitFound {
		t.Errorf("exit code %d, %s", code, d.Verdict.Text)
	}
	if !strings.HasPrefix(d.Settings.Chart, "not read: daemonset kube-system/cilium names no Helm release") {
		t.Errorf("chart: %s", d.Settings.Chart)
	}
	marks := map[string]string{}
	for _, r := range d.Settings.Rows {
		for _, g := range r.Groups {
			if r.Key != "" && len(g.Nodes) != 2 {
				t.Errorf("%s: %+v, want the two nodes that answered", r.Key, g)
			}
			marks[r.Key] = g.Runs + " " + g.Mark
		}
		for _, m := range r.Marks {
			marks[r.Key] += ", " + m.Mark
		}
	}
	for key, want := range map[string]string{
		"kube-proxy-replacement": "true ", "enable-ipv4": "true ", "bpf-lb-mode": "snat restart pending, exits at start",
	} {
		if marks[key] != want {
			t.Errorf("%s: %q, want %q", key, marks[key], want)
		}
	}
}
