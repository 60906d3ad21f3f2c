package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-kpr/kubectl-kpr/internal/cli"
	"github.com/kubectl-kpr/kubectl-kpr/internal/live/livetest"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/report"
)

// forty is a cluster of forty nodes of which one hangs, one breaks off in the
// middle of an answer and one is forbidden.
func forty(t *testing.T) *livetest.Server {
	t.Helper()
	status, err := os.ReadFile("../../test/fixtures/kpr-clean/nodes/kpr-w1/status.json")
	if err != nil {
		t.Fatal(err)
	}
	server := livetest.New(t)
	agents := map[string]*livetest.Agent{}
	for i := range 40 {
		node := fmt.Sprintf("n%02d", i)
		a := server.AddAgent(node, "1.20.2", map[string]livetest.Recording{
			"cilium-dbg status -o json":       {Stdout: string(status)},
			"cilium-dbg service list -o json": {Stdout: "[]"},
			"cilium-dbg bpf lb list -o json":  {Stdout: "{}"},
		})
		a.Unknown = true // the other commands are not in this image
		agents[node] = a
	}
	agents["n07"].Fault, agents["n07"].Unasked = livetest.Hang, true
	agents["n13"].Fault, agents["n13"].BreakAfter, agents["n13"].Unasked = livetest.Break, 200, true
	agents["n21"].Fault, agents["n21"].Unasked = livetest.Refuse, true
	ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "cilium", Namespace: "kube-system", Labels: map[string]string{"k8s-app": "cilium"}}}
	ds.Spec.Template.Labels = map[string]string{"k8s-app": "cilium"}
	ds.Spec.Template.Spec.Containers = []corev1.Container{{Name: "cilium-agent"}}
	ds.Status.DesiredNumberScheduled, ds.Status.NumberReady = 40, 40
	server.Add(ds, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "cilium-config", Namespace: "kube-system"},
		Data:       map[string]string{"kube-proxy-replacement": "true"},
	})
	return server
}

// run executes the plugin against a server, without any kubeconfig.
func run(t *testing.T, server *livetest.Server, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	var out, errOut bytes.Buffer
	env := cli.Env{
		IOStreams: genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &errOut},
		Now:       time.Now, Getenv: func(string) string { return "" },
		Terminal: func(io.Writer) (int, bool) { return 0, false },
	}
	args = append(args, "--server", server.Config().Host, "--cache-dir", t.TempDir())
	code = cli.Execute(context.Background(), env, args)
	return code, out.String(), errOut.String()
}

// TestFortyNodesOfWhichThreeAreLost holds that three bad nodes of forty cost
// neither the others nor the report, and that unknown is not ok.
func TestFortyNodesOfWhichThreeAreLost(t *testing.T) {
	start := time.Now()
	code, stdout, stderr := run(t, forty(t), "status", "-o", "json", "--node-timeout", "5s", "--deadline", "60s", "--settle", "0")
	if code != report.ExitUnknown || stderr != "" {
		t.Errorf("exit code %d, stderr %q", code, stderr)
	}
	if d := time.Since(start); d > 60*time.Second {
		t.Errorf("took %s, the deadline was 60s", d)
	}
	var d report.Document
	if err := json.Unmarshal([]byte(stdout), &d); err != nil {
		t.Fatal(err)
	}
	known := 0
	for _, n := range d.Nodes {
		if n.KPR != nil && n.KPR.Mode == "True" {
			known++
		}
	}
	if len(d.Nodes) != 40 || known != 37 {
		t.Errorf("%d nodes, %d of them known", len(d.Nodes), known)
	}
	lost := map[string]string{}
	for _, g := range d.Gaps {
		if g.Topic == "status" {
			lost[g.Node] = g.Class
		}
	}
	if diff := cmp.Diff(map[string]string{"n07": "unreachable", "n13": "cut", "n21": "forbidden"}, lost); diff != "" {
		t.Errorf("%s\n%s", diff, stdout)
	}
}

// TestSnapshotOfABrokenCluster holds that a recording of it gives the verdict
// that the running cluster gives.
func TestSnapshotOfABrokenCluster(t *testing.T) {
	server := forty(t)
	file := filepath.Join(t.TempDir(), "x.tar.gz")
	code, _, stderr := run(t, server, "snapshot", file, "--node-timeout", "5s", "--deadline", "60s")
	if code != report.ExitUnknown || !bytes.Contains([]byte(stderr), []byte("not read on n21")) {
		t.Errorf("exit code %d, stderr %q", code, stderr)
	}
	code, stdout, _ := run(t, server, "status", "-q", "--snapshot", file)
	if want := "? KPR is active on 37 of 40 nodes, not known on 3; kube-proxy runs on none (not known on 3); Services are in sync (not known on 3); no full answer on 3 nodes\n"; code != report.ExitUnknown || stdout != want {
		t.Errorf("exit code %d, %q", code, stdout)
	}
}
