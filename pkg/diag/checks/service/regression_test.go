package service

import (
	"testing"

	"github.com/kubectl-kpr/kubectl-kpr/internal/cilium"
)

// TestConditions holds that each bug of the table can be recognised, and that
// there is no condition without a bug.
func TestConditions(t *testing.T) {
	left := conditions()
	for _, b := range cilium.Bugs() {
		if _, ok := left[b.Issue]; !ok {
			t.Errorf("%s: nothing tells which objects it can hit", b.Issue)
		}
		delete(left, b.Issue)
	}
	for issue := range left {
		t.Errorf("%s: a condition, and no bug of that number", issue)
	}
}
