package live

import (
	"bytes"
	"os/exec"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The script itself, in the shells that images have: dash as sh in Cilium's,
// bash in some others, and busybox.
func TestScriptInEveryShell(t *testing.T) {
	sh := func(args ...string) []string { return append([]string{"sh", "-c"}, args...) }
	commands := []command{
		{[]string{"printf", "[%s]", "", "a b", `"$(id)"`, "`id`;'", "*", "\n", "é", "8", "9", "10", "11", "-n"}, 1000, time.Second},
		{sh("echo out; echo err >&2; exit 42"), 1000, time.Second},
		{sh("cat; echo $#"), 1000, time.Second}, // stdin is empty, the arguments of others are not there
		{[]string{"no-such-command-here"}, 1000, time.Second},
		{sh("printf 123456789; exit 5"), 4, time.Second},
		{sh("sleep 30"), 1000, 30 * time.Second}, // eats up what is left
		{[]string{"echo", "never"}, 1000, time.Second},
	}
	type result struct {
		Out, Err    string
		Code        int
		Ended, Late bool
	}
	want := []result{
		{Out: "[][a b][\"$(id)\"][`id`;'][*][\n][é][8][9][10][11][-n]", Ended: true},
		{Out: "out\n", Err: "err\n", Code: 42, Ended: true},
		{Out: "0\n", Ended: true},
		{Code: 127, Ended: true},
		{Out: "1234", Code: 5, Ended: true},
		{Code: 124, Ended: true},
		{Ended: true, Late: true},
	}
	for _, shell := range [][]string{{"dash"}, {"bash"}, {"bash", "--posix"}, {"busybox", "sh"}} {
		path, err := exec.LookPath(shell[0])
		if err != nil {
			continue
		}
		t.Run(shell[len(shell)-1], func(t *testing.T) {
			t.Parallel()
			argv := append(shell[1:], scriptArgv(testNonce, 2*time.Second, commands)[1:]...)
			cmd := exec.CommandContext(t.Context(), path, argv...)
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			if err := cmd.Run(); err != nil {
				t.Fatalf("%v\n%s", err, stderr.Bytes())
			}
			out, _ := frames(stdout.Bytes(), testNonce, len(commands))
			errs, _ := frames(stderr.Bytes(), testNonce, len(commands))
			var got []result
			for i := range commands {
				r := result{string(out[i].data), string(errs[i].data), out[i].code, out[i].ended && errs[i].ended, out[i].late}
				if r.Code == 127 {
					r.Err = "" // every timeout words it in its own way
				}
				got = append(got, r)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}
