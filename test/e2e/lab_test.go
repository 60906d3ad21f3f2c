//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/report"
)

// lab is the raised lab and the two programs that tests run.
type lab struct {
	labBin, plugin, kubeconfig, audit string
	states                            []state
}

// state is one of `kpr-lab states -o json`.
type state struct {
	Name   string `json:"name"`
	Doc    string `json:"doc"`
	Fault  bool   `json:"fault"`
	Expect struct {
		Exit    int      `json:"exit"`
		Rule    string   `json:"rule"`
		Node    string   `json:"node"`
		Subject string   `json:"subject"`
		Flags   []string `json:"flags"`
		Also    []string `json:"also"`
	} `json:"expect"`
}

// healthy are the states in which nothing is wrong.
func healthy() []string { return []string{"kpr", "kube-proxy", "kube-proxy-nft"} }

var theLab lab

// full tells whether every state is to be raised, or the core only.
func full() bool { return os.Getenv("KPR_E2E") == "full" }

func TestMain(m *testing.M) {
	if err := open(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// open finds the programs and raises the lab if it is not up. A machine that
// cannot run it is a failure, not a reason to skip.
func open() error {
	root, err := filepath.Abs("../..")
	if err != nil {
		return err
	}
	theLab = lab{labBin: filepath.Join(root, "bin", "kpr-lab"), plugin: filepath.Join(root, "bin", "kubectl-kpr")}
	for _, p := range []string{theLab.labBin, theLab.plugin} {
		if _, err := os.Stat(p); err != nil {
			return fmt.Errorf("%w: make e2e builds it", err)
		}
	}
	for into, word := range map[*string]string{&theLab.kubeconfig: "kubeconfig", &theLab.audit: "audit"} {
		out, err := theLab.run(word)
		if err != nil {
			return err
		}
		*into = strings.TrimSpace(out)
	}
	out, err := theLab.run("states", "-o", "json")
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(out), &theLab.states); err != nil {
		return err
	}
	if _, err := theLab.run("kubectl", "get", "--raw", "/readyz", "--request-timeout=5s"); err != nil {
		start := time.Now()
		if out, err := theLab.run("up"); err != nil {
			return fmt.Errorf("%w\n%s", err, out)
		}
		fmt.Printf("lab raised in %s\n", time.Since(start).Round(time.Second))
	}
	return nil
}

// run runs the lab's own program.
func (l lab) run(args ...string) (string, error) {
	cmd := exec.Command(l.labBin, args...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("kpr-lab %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// enter brings the cluster into a state and gives the agents the time in which
// endpoints and maps come to rest.
func enter(t *testing.T, name string) state {
	t.Helper()
	start := time.Now()
	if now, err := theLab.run("state"); err != nil || strings.TrimSpace(now) != name {
		if _, err := theLab.run("state", name); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
	}
	t.Logf("state %s entered in %s", name, time.Since(start).Round(time.Second))
	for _, s := range theLab.states {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("state %s: kpr-lab does not list it", name)
	return state{}
}

func (l lab) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := l.run(append([]string{"kubectl"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// answer is what one run of the plugin gave.
type answer struct {
	code           int
	stdout, stderr string
	took           time.Duration
}

// kpr runs the plugin as a user would.
func kpr(t *testing.T, args ...string) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, theLab.plugin, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.Env = append(os.Environ(), "KUBECONFIG="+theLab.kubeconfig, "NO_COLOR=1", "TERM=dumb")
	start := time.Now()
	err := cmd.Run()
	a := answer{cmd.ProcessState.ExitCode(), out.String(), errs.String(), time.Since(start)}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("kubectl-kpr %s: %v", strings.Join(args, " "), err)
	}
	return a
}

// document runs a command with -o json and decodes the report.
func document(t *testing.T, args ...string) (report.Document, answer) {
	t.Helper()
	a := kpr(t, append(args, "-o", "json")...)
	var d report.Document
	if err := json.Unmarshal([]byte(a.stdout), &d); err != nil {
		t.Fatalf("kubectl-kpr %s: exit code %d: %v\n%s%s", strings.Join(args, " "), a.code, err, a.stdout, a.stderr)
	}
	return d, a
}
