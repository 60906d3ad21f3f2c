package sysdump

import (
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// Recorded is evidence in a folder or archive.
type Recorded interface {
	source.Source
	io.Closer
}

// OpenRecorded opens a snapshot or a cilium sysdump; content tells which.
func OpenRecorded(file string) (Recorded, error) {
	a, err := source.OpenArchive(file, Limits())
	if err != nil || isSnapshot(a) {
		if err == nil {
			_ = a.Close()
		}
		return source.OpenSnapshot(file)
	}
	dump, err := In(a)
	if err == nil {
		return dump, nil
	}
	_ = a.Close()
	snapshot, other := source.OpenSnapshot(file)
	if other == nil {
		return snapshot, nil
	}
	if errors.Is(other, source.ErrNotSnapshot) && errors.Is(err, ErrNotSysdump) {
		return nil, fmt.Errorf("%w; %w", other, err)
	}
	return nil, other
}

func isSnapshot(a *source.Archive) bool {
	for _, m := range a.Members() {
		if path.Base(m.Name) == "snapshot.yaml" {
			return true
		}
	}
	return false
}
