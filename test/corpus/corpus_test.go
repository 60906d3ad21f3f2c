package corpus

import (
	"os"
	"slices"
	"testing"
)

// tally counts what became of the expectations of one rule or case.
type tally struct{ expected, met int }

// done holds when all that was expected was met.
func (t tally) done() bool { return t.expected > 0 && t.met == t.expected }

func TestCorpus(t *testing.T) {
	cases := os.DirFS(".")
	names, err := Cases(cases)
	if err != nil {
		t.Fatal(err)
	}
	pending, err := ReadPending(cases)
	if err != nil {
		t.Fatal(err)
	}
	byRule, byCase := map[string]tally{}, map[string]tally{}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			spec, err := ReadSpec(cases, name)
			if err != nil {
				t.Fatal(err)
			}
			score, ran := judge(t, name, spec, pending)
			if !ran {
				return
			}
			byCase[name] = tally{len(spec.Expected), len(score.Met)}
			if slices.Contains(pending.Cases, name) {
				return
			}
			for _, e := range spec.Expected {
				c := byRule[RuleOf(e.Code)]
				c.expected++
				if slices.Contains(score.Met, e) {
					c.met++
				}
				byRule[RuleOf(e.Code)] = c
			}
		})
	}
	for _, stale := range overdue(pending, byRule, byCase, registered()) {
		t.Error(stale)
	}
}

// judge runs one case and reports what is wrong with it. It is false where
// there is nothing to judge: a pending case may be unreadable.
func judge(t *testing.T, name string, spec Spec, pending Pending) (Score, bool) {
	t.Helper()
	waits := slices.Contains(pending.Cases, name)
	found, err := run(t.Context(), name)
	if err != nil {
		if !waits {
			t.Errorf("not run: %v", err)
		}
		return Score{}, false
	}
	score := Judge(spec, found)
	for _, e := range score.Missed {
		if !waits && !slices.Contains(pending.Rules, RuleOf(e.Code)) {
			t.Errorf("missing: %s %s at %s: %s", e.Level, e.Code, e.Where, e.Says)
		}
	}
	for _, f := range score.Forbidden {
		t.Errorf("forbidden: %s", f)
	}
	for _, f := range score.Extra {
		t.Errorf("extra: %s", f)
	}
	if t.Failed() {
		for _, f := range found {
			t.Logf("found: %s", f)
		}
	}
	return score, true
}

// overdue says what must leave the list of what is pending.
func overdue(p Pending, byRule, byCase map[string]tally, registered []string) []string {
	var out []string
	for _, rule := range p.Rules {
		switch {
		case slices.Contains(registered, rule):
			out = append(out, "pending.yaml: rule "+rule+" is registered: remove it from the list")
		case byRule[rule].done():
			out = append(out, "pending.yaml: rule "+rule+" is met wherever it is expected: remove it from the list")
		}
	}
	for _, name := range p.Cases {
		if byCase[name].done() {
			out = append(out, "pending.yaml: case "+name+" is met: remove it from the list")
		}
	}
	return out
}
