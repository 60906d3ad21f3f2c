package e2e

import (
	"os"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/checks"
)

// pending is what pending.yaml holds: rules by state.
func pending(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile("pending.yaml")
	if err != nil {
		t.Fatal(err)
	}
	states := map[string]string{}
	if err := yaml.UnmarshalStrict(data, &states); err != nil {
		t.Fatalf("pending.yaml: %v", err)
	}
	return states
}

func built(rule string) bool {
	return slices.ContainsFunc(checks.Rules(), func(r *diag.Rule) bool { return r.Name == rule })
}

// A rule that has come takes its states out of the list: from then on they are
// tested for it.
func TestPendingRulesAreNotBuilt(t *testing.T) {
	for state, rule := range pending(t) {
		if built(rule) {
			t.Errorf("pending.yaml: state %s waits for rule %s, which exists: take the entry out", state, rule)
		}
	}
}
