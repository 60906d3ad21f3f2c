//go:build e2e

package e2e

import (
	"slices"
	"testing"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/report"
)

// core are the faults that every run raises.
func core() []string { return []string{"kpr", "agent-down", "backend-lost", "kpr-residue"} }

// TestStates raises every state that is not healthy. Where the rule for it is
// built, it must be found, and no other error; where it is pending, nothing
// wrong may be said.
func TestStates(t *testing.T) {
	waiting := pending(t)
	for _, s := range theLab.states {
		if slices.Contains(healthy(), s.Name) {
			continue
		}
		if !full() && !slices.Contains(core(), s.Name) {
			t.Logf("state %s is raised by make e2e-full only", s.Name)
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			enter(t, s.Name)
			d, a := document(t, append([]string{"check"}, s.Expect.Flags...)...)
			t.Logf("exit code %d in %s: %s", a.code, a.took, d.Verdict.Text)
			for _, f := range d.Findings {
				t.Logf("%s %s, node %q, %s: %s", f.Severity, f.Rule, f.Node, f.Subject, f.Message)
			}
			rule, pend := waiting[s.Name]
			switch {
			case pend && rule != s.Expect.Rule:
				t.Errorf("pending.yaml says %s, kpr-lab expects %s", rule, s.Expect.Rule)
			case pend:
				t.Logf("pending: %s will find this", rule)
			case s.Expect.Rule != "" && !built(s.Expect.Rule):
				t.Errorf("rule %s is not built: the state belongs into pending.yaml", s.Expect.Rule)
			default:
				judge(t, s, d, a)
			}
			onlyExpected(t, s, d)
		})
	}
	enter(t, "kpr")
}

// judge demands the finding that the state is about.
func judge(t *testing.T, s state, d report.Document, a answer) {
	t.Helper()
	if a.code != s.Expect.Exit {
		t.Errorf("exit code %d, want %d\n%s", a.code, s.Expect.Exit, a.stderr)
	}
	if s.Expect.Rule == "" {
		return
	}
	for _, f := range d.Findings {
		if f.Rule == s.Expect.Rule && (s.Expect.Node == "" || f.Node == s.Expect.Node) && (s.Expect.Subject == "" || f.Subject == s.Expect.Subject) {
			return
		}
	}
	t.Errorf("no finding %s on node %q about %q", s.Expect.Rule, s.Expect.Node, s.Expect.Subject)
}

// onlyExpected demands that no other rule is at error level.
func onlyExpected(t *testing.T, s state, d report.Document) {
	t.Helper()
	for _, f := range d.Findings {
		expected := f.Rule == s.Expect.Rule && (s.Expect.Node == "" || f.Node == s.Expect.Node)
		if f.Severity == "error" && !expected && !slices.Contains(s.Expect.Also, f.Rule) {
			t.Errorf("unexpected error %s, node %q, %s: %s", f.Rule, f.Node, f.Subject, f.Message)
		}
	}
}
