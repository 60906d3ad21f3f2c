package redact_test

import (
	"testing"

	"github.com/kubectl-kpr/kubectl-kpr/internal/redact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// BenchmarkRedact learns from a recording of three nodes and replaces in it.
func BenchmarkRedact(b *testing.B) {
	src, err := source.OpenSnapshot("../../test/fixtures/lab-kpr-residue")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = src.Close() }()
	nodes, err := src.Nodes(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	qs := source.Everything(nodes)
	key := redact.NewKey()
	for b.Loop() {
		red, err := redact.Of(b.Context(), src, qs, key)
		if err != nil {
			b.Fatal(err)
		}
		n := int64(0)
		if err := red.Collect(b.Context(), red.Queries(qs), func(a source.Artifact, _ error) { n += int64(len(a.Data)) }); err != nil {
			b.Fatal(err)
		}
		b.SetBytes(n)
	}
}
