// Package script_test runs the plugin as its user would, from scripts in
// testdata: what goes in on the command line, what comes out, and the exit
// code. Refresh the expected output with -update and read the difference.
package script_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kubectl-kpr/kubectl-kpr/internal/cli"
	"github.com/kubectl-kpr/kubectl-kpr/internal/cli/act"
)

var update = flag.Bool("update", false, "write the output that the commands give into the scripts")

// now is when every run takes place, so that ages stay the same.
var now = time.Date(2026, 12, 1, 6, 0, 0, 0, time.UTC)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"kubectl-kpr": func() {
			env := cli.System()
			env.Now = func() time.Time { return now }
			env.Acts = act.Commands
			if columns, err := strconv.Atoi(os.Getenv("TEST_COLUMNS")); err == nil {
				env.Terminal = func(w io.Writer) (int, bool) { return columns, w == env.Out }
			}
			os.Exit(cli.Execute(context.Background(), env, os.Args[1:]))
		},
	})
}

func TestScripts(t *testing.T) {
	fixtures, err := filepath.Abs("../fixtures")
	if err != nil {
		t.Fatal(err)
	}
	corpus, err := filepath.Abs("../corpus")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:           "testdata",
		UpdateScripts: *update,
		Setup: func(e *testscript.Env) error {
			e.Setenv("LANG", "C.UTF-8")
			e.Setenv("CORPUS", corpus) // never in a golden: it is a path of this machine
			e.Setenv("KUBECONFIG", filepath.Join(e.WorkDir, "no-such-kubeconfig"))
			return os.CopyFS(filepath.Join(e.WorkDir, "fixtures"), os.DirFS(fixtures))
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
}

// exits runs a command that has to end with the given code: exits CODE ARGV…
// Its output is compared like that of exec.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE ARGV...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	path := args[1]
	if !strings.Contains(path, "/") {
		path = filepath.Join(strings.SplitN(ts.Getenv("PATH"), string(os.PathListSeparator), 2)[0], path)
	}
	cmd := exec.Command(path, args[2:]...)
	cmd.Dir = ts.Getenv("WORK")
	cmd.Env = environ(ts)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		ts.Check(err)
	}
	_, _ = ts.Stdout().Write(stdout.Bytes())
	_, _ = ts.Stderr().Write(stderr.Bytes())
	if got := cmd.ProcessState.ExitCode(); got != want {
		ts.Fatalf("exit code %d, want %d\n%s%s", got, want, stdout.String(), stderr.String())
	}
}

func environ(ts *testscript.TestScript) []string {
	var out []string
	for _, name := range []string{"PATH", "HOME", "LANG", "TERM", "NO_COLOR", "KUBECONFIG", "TEST_COLUMNS", "TMPDIR"} {
		if v := ts.Getenv(name); v != "" {
			out = append(out, name+"="+v)
		}
	}
	return out
}
