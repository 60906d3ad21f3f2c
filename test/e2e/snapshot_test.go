//go:build e2e

package e2e

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/report"
)

// A snapshot gives the verdict that the cluster gave.
func TestSnapshotGivesTheLiveVerdict(t *testing.T) {
	for _, name := range []string{"kpr", "agent-down"} {
		t.Run(name, func(t *testing.T) {
			enter(t, name)
			file := filepath.Join(t.TempDir(), name+".tar.gz")
			if a := kpr(t, "snapshot", file); a.code != 0 && a.code != 3 {
				t.Fatalf("snapshot: exit code %d\n%s", a.code, a.stderr)
			}
			live, _ := document(t, "check")
			recorded, _ := document(t, "check", "--snapshot", file)
			if d := cmp.Diff(verdict(live), verdict(recorded)); d != "" {
				t.Errorf("check (-live +snapshot):\n%s", d)
			}
			live, _ = document(t, "status")
			recorded, _ = document(t, "status", "--snapshot", file)
			if d := cmp.Diff(live.Nodes, recorded.Nodes, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("nodes (-live +snapshot):\n%s", d)
			}
		})
	}
}

// said is what a report says, without when and from where.
type said struct {
	Exit     int
	Findings [][4]string
	Gaps     [][2]string
	Checks   []report.Check
}

func verdict(d report.Document) said {
	s := said{Exit: d.Verdict.ExitCode, Checks: d.Checks}
	for _, f := range d.Findings {
		s.Findings = append(s.Findings, [4]string{f.Severity, f.Rule, f.Subject, f.Node})
	}
	for _, g := range d.Gaps {
		s.Gaps = append(s.Gaps, [2]string{g.What, g.Node})
	}
	return s
}
