package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/kubectl-kpr/kubectl-kpr/internal/redact"
	"github.com/kubectl-kpr/kubectl-kpr/internal/version"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// recording is what is to be written.
type recording struct {
	src    source.Source
	qs     []source.Query
	key    redact.Key
	folder string
}

// write asks the source within bounded, and takes its time for the rest.
func (r *recorder) write(ctx, bounded context.Context, job recording, w io.Writer) (source.Summary, error) {
	heard := &versions{Source: job.src}
	info := source.Info{Tool: "kubectl-kpr", Version: version.String(), Now: r.app.env.Now, Cilium: heard.sorted}
	tar := source.NewTarWriter(w, job.folder)
	if !r.redact {
		sum, err := source.Record(bounded, heard, job.qs, tar, info)
		if err != nil {
			return sum, err
		}
		return sum, tar.Close()
	}
	if r.from.snapshot == "" {
		kept, done, err := redact.Keep(bounded, heard, job.qs, info)
		if err != nil {
			return source.Summary{}, err
		}
		defer done()
		heard.Source = kept
	}
	sum, back, err := redact.Record(ctx, heard, job.qs, job.key, tar, info)
	if err != nil || r.names == "" {
		return sum, err
	}
	return sum, save(r.names, func(w io.Writer) error { return table(w, back) })
}

// table writes what stands for what, parted by tabs.
func table(w io.Writer, back []redact.Pair) error {
	for _, p := range back {
		if _, err := fmt.Fprintf(w, "%s\t%s\n", p.Replacement, p.Original); err != nil {
			return err
		}
	}
	return nil
}
