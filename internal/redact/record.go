package redact

import (
	"context"
	"os"
	"path/filepath"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// Record writes what is left of a recording to w, and closes it. The table that
// leads back stays with whoever recorded.
func Record(ctx context.Context, src source.Source, qs []source.Query, key Key, w source.SnapshotWriter, info source.Info) (sum source.Summary, back []Pair, err error) {
	red, err := Of(ctx, src, qs, key)
	if err != nil {
		return source.Summary{}, nil, err
	}
	info.Redacted = true
	if sum, err = source.Record(ctx, red, red.Queries(qs), w, info); err != nil {
		return sum, nil, err
	}
	return sum, red.Redactor().Pairs(), w.Close()
}

// Keep records a running cluster as it is, in a folder that only its owner can
// read: names are learnt from all of the evidence before any of it is written,
// and a cluster does not answer the same twice. Whoever calls it calls done,
// which removes the folder.
func Keep(ctx context.Context, src source.Source, qs []source.Query, info source.Info) (kept *source.Snapshot, done func(), err error) {
	dir, err := os.MkdirTemp("", "kpr-")
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(dir)
		}
	}()
	name := filepath.Join(dir, "recording.tar.gz")
	file, err := source.CreateFile(name)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = file.Close() }()
	w := source.NewTarWriter(file, "recording")
	if _, err = source.Record(ctx, src, qs, w, info); err != nil {
		return nil, nil, err
	}
	if err = w.Close(); err != nil {
		return nil, nil, err
	}
	if err = file.Commit(); err != nil {
		return nil, nil, err
	}
	if kept, err = source.OpenSnapshot(name); err != nil {
		return nil, nil, err
	}
	return kept, func() {
		_ = kept.Close()
		_ = os.RemoveAll(dir)
	}, nil
}
