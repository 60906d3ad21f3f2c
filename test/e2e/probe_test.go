//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/report"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/request"
)

// probed runs probe and reads its report.
func probed(t *testing.T, wantCode int, args ...string) *report.Document {
	t.Helper()
	a := kpr(t, append(append([]string{"probe"}, args...), "-o", "json")...)
	if a.code != wantCode {
		t.Errorf("probe %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), a.code, wantCode, a.stdout, a.stderr)
	}
	var d report.Document
	if err := json.Unmarshal([]byte(a.stdout), &d); err != nil || d.Probe == nil {
		t.Fatalf("probe %s: %v\n%s", strings.Join(args, " "), err, a.stderr)
	}
	return &d
}

func clientOn(t *testing.T, node string) string {
	t.Helper()
	return strings.TrimSpace(theLab.kubectl(t, "-n", "shop", "get", "pods", "-l", "app=client", "--field-selector", "spec.nodeName="+node, "-o", "jsonpath={.items[0].metadata.name}"))
}

func hasRule(d *report.Document, rule string) bool {
	for _, f := range d.Findings {
		if f.Rule == rule {
			return true
		}
	}
	return false
}

// With KPR every request is answered, and socket LB translates it, for pods
// whose namespace the agent enters and for hosts.
func TestProbeHealthy(t *testing.T) {
	enter(t, "kpr")
	d := probed(t, 0, "svc/web-np", "-n", "shop", "--from", "pod/"+clientOn(t, "kpr-w1"), "--from", "node/kpr-w2")
	if len(d.Probe.Paths) < 8 {
		t.Errorf("%d paths", len(d.Probe.Paths))
	}
	for _, p := range d.Probe.Paths {
		if p.State != request.OK || p.Mechanism != request.SocketLB || p.Client.Kind == "pod" && p.Client.Via != request.ByNamespace {
			t.Errorf("%s: %s by %q, via %q: %s", p.Title(), p.State, p.Mechanism, p.Client.Via, p.Text)
		}
	}
	nothingLeft(t)
}

// Without KPR the host's requests are kube-proxy's, and a pod's ClusterIPs are
// translated packet by packet.
func TestProbeWithoutReplacement(t *testing.T) {
	if !full() {
		t.Skip("state kube-proxy is raised by make e2e-full only")
	}
	enter(t, "kube-proxy")
	defer enter(t, "kpr")
	d := probed(t, 0, "svc/web", "-n", "shop", "--from", "pod/"+clientOn(t, "kpr-w1"), "--from", "node/kpr-w2")
	for _, p := range d.Probe.Paths {
		want := request.KubeProxy
		if p.Client.Kind == "pod" {
			want = request.PacketLB
		}
		if p.State != request.OK || p.Mechanism != want {
			t.Errorf("%s: %s by %q, want %q: %s", p.Title(), p.State, p.Mechanism, want, p.Text)
		}
	}
}

// A row that is lost from one node's map fails requests, and the message says
// which layer and which node.
func TestProbeLostBackend(t *testing.T) {
	enter(t, "backend-lost")
	defer enter(t, "kpr")
	d := probed(t, 2, "svc/web", "-n", "shop", "--tries", "20")
	if !strings.Contains(d.Verdict.Text, "the kernel is behind on kpr-") || hasRule(d, request.Contradicts.Name) {
		t.Errorf("%s\n%v", d.Verdict.Text, d.Findings)
	}
}

const denials = `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: kpr-e2e-nobody, namespace: shop}
spec: {podSelector: {matchLabels: {app: web}}, ingress: [{from: [{podSelector: {matchLabels: {friend: "yes"}}}]}]}
---
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: {name: kpr-e2e-egress, namespace: shop}
spec: {endpointSelector: {matchLabels: {app: client}}, egress: [{toEntities: [kube-apiserver]}]}
`

// What a policy refuses is told with the policy, and is no contradiction.
func TestProbeDenied(t *testing.T) {
	enter(t, "kpr")
	from := "pod/" + clientOn(t, "kpr-w1")
	for i, doc := range strings.Split(denials, "---") {
		name := []string{"networkpolicy/shop/kpr-e2e-nobody", "ciliumnetworkpolicy/shop/kpr-e2e-egress"}[i]
		file := filepath.Join(t.TempDir(), "policy.yaml")
		if err := os.WriteFile(file, []byte(doc), 0o600); err != nil {
			t.Fatal(err)
		}
		theLab.kubectl(t, "apply", "-f", file)
		var d *report.Document
		for range 20 { // until the agents have it
			if d = probed(t, 2, "svc/web:80", "-n", "shop", "--from", from, "--tries", "1", "--timeout", "1s"); hasRule(d, "policy-denied") {
				break
			}
			time.Sleep(time.Second)
		}
		theLab.kubectl(t, "delete", "-f", file)
		if !hasRule(d, "policy-denied") || !strings.Contains(d.Verdict.Text, name) || hasRule(d, request.Contradicts.Name) {
			t.Errorf("%s: %s", name, d.Verdict.Text)
		}
	}
}

// The matrix is whole, on the cluster's Services and on its own, and its
// namespace goes.
func TestProbeMatrix(t *testing.T) {
	enter(t, "kpr")
	d := probed(t, 0, "--matrix", "--deploy", "--yes", "--tries", "1")
	if g := d.Probe.Grid(); len(g.Clients) != 2 || len(g.Rows) < 8 {
		t.Errorf("%+v", g)
	}
	for range 60 {
		if !strings.Contains(theLab.kubectl(t, "get", "namespaces", "-o", "name"), "kpr-probe-") {
			return
		}
		time.Sleep(time.Second)
	}
	t.Error("the namespace is still there")
}

// A client that is killed leaves nothing on the nodes.
func TestProbeKilled(t *testing.T) {
	enter(t, "kpr")
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGINT} {
		cmd := exec.Command(theLab.plugin, "probe", "svc/web", "-n", "shop", "--continuous", "--duration", "5m", "--kubeconfig", theLab.kubeconfig)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(6 * time.Second)
		_ = cmd.Process.Signal(signal)
		_ = cmd.Wait()
		nothingLeft(t)
	}
}

// nothingLeft looks for programs of a probe in the agents.
func nothingLeft(t *testing.T) {
	t.Helper()
	// The patterns are written so that this program is not one of them.
	const count = `c=0; for p in /proc/[0-9]*; do a=$(tr '\0\n' '  ' 2>/dev/null <$p/cmdline); case "$a" in *"EPOCHREAL""TIME"*|*"monitor --ty""pe"*) c=$((c+1));; esac; done; echo $c`
	for node := range nodeAddresses() {
		left := ""
		for range 8 {
			if left = strings.TrimSpace(kpr(t, "exec", node, "--", "sh", "-c", count).stdout); left == "0" {
				break
			}
			time.Sleep(time.Second)
		}
		if left != "0" {
			t.Errorf("%s: %s programs are left", node, left)
		}
	}
}
