package service

import "github.com/kubectl-kpr/kubectl-kpr/pkg/diag"

// Sync are the checks that compare the three layers row by row.
func Sync() []*diag.Check {
	return []*diag.Check{FrontendMissing(), Missing(), Stale(), State(), Unwritten()}
}
