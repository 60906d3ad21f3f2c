//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/internal/evidence"
	"github.com/kubectl-kpr/kubectl-kpr/internal/netfilter"
)

func labNodes() []string { return []string{"kpr-cp", "kpr-w1", "kpr-w2"} }

// in runs an argv in a node.
func (l lab) in(t *testing.T, node string, argv ...string) string {
	t.Helper()
	cmd := exec.Command(l.labBin, append([]string{"in", node, "--"}, argv...)...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("in %s: %v: %v: %s", node, argv, err, errs.String())
	}
	return string(out)
}

var counters = regexp.MustCompile(`(?m)^#.*\n|\[\d+:\d+\]`)

// rules are all rules of a node by tool, without times and counters.
func rules(t *testing.T, node string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, tool := range []string{"iptables-nft-save", "ip6tables-nft-save", "iptables-legacy-save", "ip6tables-legacy-save"} {
		all[tool] = counters.ReplaceAllString(theLab.in(t, node, tool), "")
	}
	for _, f := range []string{"ip", "ip6"} {
		if strings.Contains(theLab.in(t, node, "nft", "list", "tables"), "table "+f+" kube-proxy\n") {
			all["nft "+f] = theLab.in(t, node, "nft", "-s", "list", "table", f, "kube-proxy")
		}
	}
	return all
}

func everyRule(t *testing.T) map[string]map[string]string {
	t.Helper()
	all := map[string]map[string]string{}
	for _, n := range labNodes() {
		all[n] = rules(t, n)
	}
	return all
}

// others are the lines of a save that are not kube-proxy's.
func others(t *testing.T, save string) []string {
	t.Helper()
	r, err := netfilter.Removable([]byte(save), false)
	if err != nil {
		t.Fatal(err)
	}
	own := map[string]bool{}
	for _, table := range r.Tables {
		for _, line := range slices.Concat(table.Rows, table.Jumps) {
			own[line] = true
		}
		for _, c := range table.Chains {
			own[":"+c+" - "] = true
		}
	}
	var out []string
	for line := range strings.Lines(save) {
		if line = strings.TrimRight(line, "\n"); line != "" && !own[line] {
			out = append(out, line)
		}
	}
	return out
}

// stranger writes what another program might, with words of kube-proxy in it.
func stranger(t *testing.T, node, chain string) {
	t.Helper()
	for _, tool := range []string{"iptables-nft", "ip6tables-nft"} {
		theLab.in(t, node, tool, "-w", "-t", "nat", "-N", chain)
		theLab.in(t, node, tool, "-w", "-t", "nat", "-A", chain, "-p", "tcp", "--dport", "4711", "-m", "comment", "--comment", "KUBE-SVC-LOOKALIKE of another", "-j", "RETURN")
		theLab.in(t, node, tool, "-w", "-t", "nat", "-I", "PREROUTING", "-m", "comment", "--comment", "before KUBE-SERVICES", "-j", chain)
	}
}

func strangerGoes(t *testing.T, chains ...string) {
	t.Helper()
	for _, node := range labNodes() {
		for _, tool := range []string{"iptables-nft", "ip6tables-nft"} {
			for _, chain := range chains {
				_, _ = theLab.run("in", node, "--", "sh", "-c", tool+" -w -t nat -D PREROUTING -m comment --comment 'before KUBE-SERVICES' -j "+chain+"; "+tool+" -w -t nat -F "+chain+"; "+tool+" -w -t nat -X "+chain)
			}
		}
	}
}

// killed runs the plugin and kills it once its journal has so many lines.
func killed(t *testing.T, journal string, lines int, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, theLab.plugin, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+theLab.kubeconfig)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for {
		select {
		case err := <-done:
			t.Fatalf("it ended before it could be killed: %v\n%s", err, out.String())
		case <-time.After(5 * time.Millisecond):
		}
		if data, _ := os.ReadFile(journal); bytes.Count(data, []byte("\n")) >= lines {
			_ = cmd.Process.Kill()
			<-done
			return
		}
	}
}

// TestResidueClean: a clean-up that is killed in the middle and resumed, while
// others write their rules and a Service comes; what is not kube-proxy's is
// there afterwards byte for byte, and restore gives the earlier rules.
func TestResidueClean(t *testing.T) {
	for _, name := range []string{"kpr-residue", "kpr-residue-nft"} {
		t.Run(name, func(t *testing.T) {
			enter(t, name)
			defer enter(t, "kpr")
			defer strangerGoes(t, "STRANGER-1", "STRANGER-2")
			for _, n := range labNodes() {
				stranger(t, n, "STRANGER-1")
			}
			before := everyRule(t)
			folder := t.TempDir()
			journal := filepath.Join(folder, "journal.jsonl")
			operator(t, folder)
			args := []string{"--as", reader, "residue", "clean", "--yes", "--journal", journal, "--backup", filepath.Join(folder, "backup")}
			killed(t, journal, 6, args...) // the second node has begun

			if a := kpr(t, "residue", "clean", "--dry-run"); a.code != 0 || !strings.Contains(a.stderr, "is open: 1 of 3 nodes done, 1 halfway") {
				t.Errorf("where it stands: exit code %d\n%s%s", a.code, a.stdout, a.stderr)
			}
			for _, n := range labNodes() { // meanwhile
				stranger(t, n, "STRANGER-2")
			}
			theLab.kubectl(t, "-n", "shop", "expose", "deployment", "web", "--name", "late", "--port", "80", "--target-port", "8080")
			defer theLab.kubectl(t, "-n", "shop", "delete", "service", "late")

			if a := kpr(t, args...); a.code != 0 {
				t.Fatalf("resume: exit code %d\n%s%s", a.code, a.stdout, a.stderr)
			}
			serves(t, "late")
			cleaned := everyRule(t)
			for _, n := range labNodes() {
				keptOthers(t, n, before[n], cleaned[n], true)
				for tool, save := range cleaned[n] {
					if strings.HasPrefix(tool, "nft ") {
						t.Errorf("%s: table %s kube-proxy is left", n, tool[4:])
						continue
					}
					if r, err := netfilter.Removable([]byte(save), false); err != nil || !r.Empty() {
						t.Errorf("%s: %s: %v, left %+v", n, tool, err, r)
					}
				}
			}
			a := kpr(t, append([]string{"--as", reader, "residue", "restore", "--yes", "--backup", filepath.Join(folder, "backup2")}, backups(t, folder)...)...)
			if a.code != 0 {
				t.Fatalf("restore: exit code %d\n%s%s", a.code, a.stdout, a.stderr)
			}
			restored := everyRule(t)
			for _, n := range labNodes() {
				keptOthers(t, n, cleaned[n], restored[n], false)
				same(t, n, before[n], restored[n])
			}
			if left := theLab.kubectl(t, "-n", "kube-system", "get", "jobs", "-l", "app.kubernetes.io/managed-by=kubectl-kpr", "-o", "jsonpath={.items[*].metadata.name}"); left != "" {
				t.Errorf("jobs are left: %s", left)
			}
		})
	}
}

// operator gives the user the permissions that docs/evidence.md says a clean-up
// costs, and takes them when the test ends.
func operator(t *testing.T, folder string) {
	t.Helper()
	objects, err := roleOf(slices.Concat(evidence.All(), evidence.ForPlans()))
	if err != nil {
		t.Fatal(err)
	}
	role := filepath.Join(folder, "role.json")
	if err := os.WriteFile(role, objects, 0o600); err != nil {
		t.Fatal(err)
	}
	theLab.kubectl(t, "apply", "-f", role)
	t.Cleanup(func() { theLab.kubectl(t, "delete", "-f", role) })
}

func backups(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "backup", "*.json"))
	if err != nil || len(files) != 3 {
		t.Fatalf("backups %v, %v", files, err)
	}
	return files
}

// keptOthers demands that every line of others is there as it was, and, where
// a second stranger came meanwhile, nothing besides its lines.
func keptOthers(t *testing.T, node string, before, after map[string]string, second bool) {
	t.Helper()
	for tool := range before {
		if strings.HasPrefix(tool, "nft ") {
			continue
		}
		was, is := others(t, before[tool]), others(t, after[tool])
		if second {
			is = slices.DeleteFunc(is, func(l string) bool { return strings.Contains(l, "STRANGER-2") })
		}
		if strings.Join(was, "\n") != strings.Join(is, "\n") {
			t.Errorf("%s: %s: rules of others changed:\nbefore:\n%s\nafter:\n%s", node, tool, strings.Join(was, "\n"), strings.Join(is, "\n"))
		}
	}
}

// same demands kube-proxy's rules as they were.
func same(t *testing.T, node string, before, after map[string]string) {
	t.Helper()
	for tool, was := range before {
		if strings.HasPrefix(tool, "nft ") {
			if after[tool] != was {
				t.Errorf("%s: table %s kube-proxy differs:\n%s\n---\n%s", node, tool[4:], was, after[tool])
			}
			continue
		}
		a, err := netfilter.Removable([]byte(was), false)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := netfilter.Removable([]byte(after[tool]), false); err != nil || !a.Equal(b) {
			t.Errorf("%s: %s: %v, kube-proxy's rules differ", node, tool, err)
		}
	}
}

// serves connects to a Service of namespace shop from every node.
func serves(t *testing.T, name string) {
	t.Helper()
	ip := theLab.kubectl(t, "-n", "shop", "get", "service", name, "-o", "jsonpath={.spec.clusterIP}")
	for _, n := range labNodes() {
		var err error
		for range 20 {
			if _, err = theLab.run("in", n, "--", "timeout", "2", "bash", "-c", "exec 3<>/dev/tcp/"+ip+"/80"); err == nil {
				break
			}
			time.Sleep(500 * time.Millisecond)
		}
		if err != nil {
			t.Errorf("%s: Service %s at %s: %v", n, name, ip, err)
		}
	}
}

// TestResidueCleanIsRefused: with kube-proxy running nothing is touched.
func TestResidueCleanIsRefused(t *testing.T) {
	enter(t, "kpr-with-kube-proxy")
	defer enter(t, "kpr")
	a := kpr(t, "residue", "clean", "--yes")
	if a.code != 2 || !strings.Contains(a.stderr, "kube-proxy running") || !strings.Contains(a.stderr, "nothing was changed") {
		t.Errorf("exit code %d\n%s%s", a.code, a.stdout, a.stderr)
	}
	if jobs := theLab.kubectl(t, "-n", "kube-system", "get", "configmaps", "-l", "kpr.kubectl-kpr.io/plan=residue-clean", "-o", `jsonpath={.items[?(@.data.state=="open")].metadata.name}`); jobs != "" {
		t.Errorf("a journal was opened: %s", jobs)
	}
}
