//go:build e2e

package e2e

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A baseline is taken while all is well; afterwards an ExternalSecret turns bad
// and an Application is gone.
func TestBaselineNamesWhatGotWorse(t *testing.T) {
	if !full() {
		t.Log("state foreign-objects is raised by make e2e-full only")
		return
	}
	enter(t, "foreign-objects")
	file := filepath.Join(t.TempDir(), "before.json")
	if a := kpr(t, "preflight", "--save", file, "--require-backup", "1h"); a.code != 2 {
		t.Fatalf("preflight of a cluster at stage 2: exit code %d\n%s%s", a.code, a.stdout, a.stderr)
	}
	compare := func() []string {
		d, a := document(t, "verify", "--stage", "2", "--baseline", file)
		var worse []string
		for _, f := range d.Findings {
			if f.Rule == "baseline" {
				worse = append(worse, f.Subject)
			} else if f.Severity == "error" {
				t.Errorf("unexpected error %s: %s", f.Rule, f.Message)
			}
		}
		if want := map[bool]int{true: 0, false: 2}[len(worse) == 0]; a.code != want {
			t.Errorf("exit code %d, want %d: %s", a.code, want, d.Verdict.Text)
		}
		slices.Sort(worse)
		return worse
	}
	if worse := compare(); len(worse) > 0 {
		t.Errorf("nothing was changed, and this is worse: %q", worse)
	}
	theLab.kubectl(t, "-n", "shop", "patch", "externalsecrets.external-secrets.io/db", "--subresource=status", "--type=merge",
		"-p", `{"status":{"conditions":[{"type":"Ready","status":"False","reason":"SecretSyncedError"}]}}`)
	theLab.kubectl(t, "-n", "shop", "delete", "applications.argoproj.io/shop")
	want := []string{"applications.argoproj.io/shop/shop", "externalsecrets.external-secrets.io/shop/db"}
	if diff := cmp.Diff(want, compare()); diff != "" {
		t.Errorf("worse (-want +got):\n%s", diff)
	}
	enter(t, "kpr")
}

// Every base stands at its stage, and at no other.
func TestStagesOfTheLab(t *testing.T) {
	for name, stage := range map[string]string{"kube-proxy": "0", "kpr-with-kube-proxy": "1", "kpr": "2"} {
		if name == "kpr-with-kube-proxy" && !full() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			enter(t, name)
			d, a := document(t, "verify")
			if a.code != 0 || d.Stage == nil || string('0'+rune(d.Stage.Number)) != stage || !d.Stage.Reached {
				t.Errorf("exit code %d, stage %+v, want stage %s reached: %s", a.code, d.Stage, stage, d.Verdict.Text)
			}
			code := 2
			if stage == "0" {
				code = 0
			}
			if a := kpr(t, "preflight"); a.code != code {
				t.Errorf("preflight: exit code %d, want %d\n%s", a.code, code, a.stdout)
			}
		})
	}
	enter(t, "kpr")
}
