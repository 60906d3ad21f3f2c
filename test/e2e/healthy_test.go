//go:build e2e

package e2e

import (
	"testing"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/report"
)

// sound demands that a healthy cluster is called healthy: no finding above
// info, no gap, exit code 0.
func sound(t *testing.T, d report.Document, a answer) {
	t.Helper()
	for _, f := range d.Findings {
		if f.Severity != "info" {
			t.Errorf("%s %s, node %q, %s: %s", f.Severity, f.Rule, f.Node, f.Subject, f.Message)
		}
	}
	for _, g := range d.Gaps {
		t.Errorf("gap: %s on %q: %s (%s)", g.What, g.Node, g.Reason, g.Class)
	}
	if a.code != 0 {
		t.Errorf("exit code %d: %s\n%s", a.code, d.Verdict.Text, a.stderr)
	}
}

func TestHealthy(t *testing.T) {
	for _, name := range healthy() {
		if !full() && name == "kube-proxy-nft" {
			t.Logf("state %s is raised by make e2e-full only", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			enter(t, name)
			for _, command := range []string{"status", "check"} {
				d, a := document(t, command)
				t.Logf("%s: %s in %s", command, d.Verdict.Text, a.took)
				sound(t, d, a)
				if text := kpr(t, command); text.code != 0 {
					t.Errorf("%s as text: exit code %d\n%s", command, text.code, text.stdout)
				}
			}
		})
	}
}

// Endpoints that come and go are the usual cause of false alarms.
func TestChurnIsNoAlarm(t *testing.T) {
	enter(t, "kpr")
	runs := 10
	if full() {
		runs = 50
	}
	theLab.kubectl(t, "-n", "shop", "set", "env", "deploy/web", "CHURN=0")
	defer func() {
		theLab.kubectl(t, "-n", "shop", "scale", "deploy/web", "--replicas=3")
		theLab.kubectl(t, "-n", "shop", "rollout", "status", "deploy/web", "--timeout=300s")
	}()
	for i := range runs {
		switch i % 5 {
		case 0:
			theLab.kubectl(t, "-n", "shop", "scale", "deploy/web", "--replicas=20")
		case 2:
			theLab.kubectl(t, "-n", "shop", "rollout", "restart", "deploy/web")
		case 3:
			theLab.kubectl(t, "-n", "shop", "scale", "deploy/web", "--replicas=2")
		}
		d, a := document(t, "check")
		sound(t, d, a)
		if t.Failed() {
			t.Fatalf("in run %d of %d, after %s", i+1, runs, a.took)
		}
	}
}
