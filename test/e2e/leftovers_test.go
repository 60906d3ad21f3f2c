//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// processes lists what runs in the agent's container on a node, by PID; what
// looks is left out.
func processes(t *testing.T, node string) map[string]string {
	t.Helper()
	pod := strings.TrimSpace(theLab.kubectl(t, "-n", "kube-system", "get", "pods", "-l", "k8s-app=cilium", "--field-selector", "spec.nodeName="+node, "-o", "jsonpath={.items[0].metadata.name}"))
	out := theLab.kubectl(t, "-n", "kube-system", "exec", pod, "-c", "cilium-agent", "--", "bash", "-c",
		`for p in /proc/[0-9]*; do n=${p#/proc/}; [ "$n" = $$ ] || echo "$n $(tr '\0\n' '  ' < $p/cmdline 2>/dev/null)"; done`)
	all := map[string]string{}
	for line := range strings.Lines(out) {
		pid, argv, ok := strings.Cut(strings.TrimSpace(line), " ")
		// The shell's own children, which are gone when it looks again.
		if ok && argv != "" && !strings.Contains(argv, "/proc/[0-9]*") && !strings.HasPrefix(argv, "tr ") {
			all[pid] = argv
		}
	}
	return all
}

func newOnes(before, after map[string]string) []string {
	var out []string
	for pid, argv := range after {
		if before[pid] != argv {
			out = append(out, pid+" "+argv)
		}
	}
	return slices.Sorted(slices.Values(out))
}

func TestNothingIsLeftRunning(t *testing.T) {
	enter(t, "kpr")
	before := processes(t, "kpr-w1")
	if a := kpr(t, "check"); a.code != 0 {
		t.Errorf("exit code %d\n%s", a.code, a.stdout)
	}
	time.Sleep(time.Second)
	if left := newOnes(before, processes(t, "kpr-w1")); len(left) > 0 {
		t.Errorf("left in the agent of kpr-w1 after check: %q", left)
	}
}

// Kubernetes does not end what an exec started when its client dies, so the
// script must: within --node-timeout and the two seconds of its kill.
func TestNothingIsLeftAfterKill(t *testing.T) {
	enter(t, "kpr")
	before := processes(t, "kpr-w1")
	caught := false
	for range 10 {
		cmd := exec.Command(theLab.plugin, "check", "--node-timeout", "10s", "--deadline", "20s")
		cmd.Env = append(os.Environ(), "KUBECONFIG="+theLab.kubeconfig)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var running []string
		for begun := time.Now(); len(running) == 0 && time.Since(begun) < 5*time.Second; {
			running = newOnes(before, processes(t, "kpr-w1"))
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Logf("the client had ended before it was killed")
		}
		_ = cmd.Wait()
		if len(running) > 0 {
			caught = true
			t.Logf("killed while these ran: %q", running)
			break
		}
	}
	if !caught {
		t.Error("no run was caught in the middle")
	}
	deadline := time.Now().Add(13 * time.Second)
	var left []string
	for time.Now().Before(deadline) {
		if left = newOnes(before, processes(t, "kpr-w1")); len(left) == 0 {
			t.Logf("gone %s before the deadline", time.Until(deadline).Round(time.Second))
			return
		}
		time.Sleep(500 * time.Millisecond)
	}
	t.Errorf("left in the agent of kpr-w1: %q", left)
}
