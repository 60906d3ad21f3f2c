//go:build e2e

package e2e

import (
	"strings"
	"testing"
)

// What a policy denies is seen live: at the pods of the Service by monitor, and
// nothing is left in any agent afterwards.
func TestMonitorSeesWhatIsDenied(t *testing.T) {
	enter(t, "policy-denied")
	a := kpr(t, "monitor", "svc/web", "-n", "shop", "--duration", "10s")
	if a.code != 2 {
		t.Errorf("exit code %d, want 2\n%s%s", a.code, a.stdout, a.stderr)
	}
	for _, want := range []string{"DENY     ingress: ", "(pod/shop/knocker)", "backend of shop/", "policies that select pod web-", "cnp/nobody-in"} {
		if !strings.Contains(a.stdout, want) {
			t.Errorf("%q is not in:\n%s", want, a.stdout)
		}
	}
	enter(t, "kpr")
	for _, node := range []string{"kpr-cp", "kpr-w1", "kpr-w2"} {
		out, err := theLab.run("in", node, "--", "ps", "-eo", "args")
		if err != nil || strings.Contains(out, "cilium-dbg monitor") {
			t.Errorf("%s: a monitor is left running, or %v", node, err)
		}
	}
}
