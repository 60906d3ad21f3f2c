package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-kpr/kubectl-kpr/internal/redact"
	"github.com/kubectl-kpr/kubectl-kpr/internal/render"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// recorder writes a snapshot of a cluster or of what is recorded already.
type recorder struct {
	app     *app
	from    sourceFlags
	all     bool
	redact  bool
	keyFile string
	names   string // file for the table that leads back
}

func (r *recorder) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.BoolVar(&r.all, "all", false, "record all there is: what --host asks the hosts, too")
	fs.BoolVar(&r.redact, "redact", false, "replace names and addresses, each everywhere by the same")
	fs.StringVar(&r.keyFile, "redact-key", "", "with --redact: the `FILE` with the key to replace with; made if it is not there")
	fs.StringVar(&r.names, "redact-names", "", "with --redact: write what stands for what to `FILE`, to read answers by; it is not for strangers")
	r.from.add(cmd)
	cmd.Flags().Lookup("snapshot").Usage = "take this recording (directory, .tar.gz or .zip) in place of a cluster"
	_ = cmd.Flags().MarkHidden("settle") // a recording does not judge
}

func (r *recorder) run(cmd *cobra.Command, args []string) error {
	switch {
	case (r.keyFile != "" || r.names != "") && !r.redact:
		return usageError(cmd, errors.New("--redact-key and --redact-names belong to --redact"))
	case r.all && r.from.snapshot != "":
		return usageError(cmd, errors.New("--all: asks a running cluster, which --snapshot is not"))
	}
	r.from.host = r.from.host || r.all
	src, err := r.from.open(r.app)
	if err != nil {
		return err
	}
	if c, ok := src.(io.Closer); ok {
		defer func() { _ = c.Close() }()
	}
	key, err := r.key()
	if err != nil {
		return err
	}
	bounded, cancel := cmd.Context(), func() {}
	if r.from.snapshot == "" { // what is recorded already is read for as long as it takes
		bounded, cancel = context.WithTimeout(bounded, r.from.deadline)
	}
	defer cancel()
	nodes, err := src.Nodes(bounded)
	if errors.Is(err, source.ErrUnreachable) && len(nodes) == 0 {
		return fmt.Errorf("list of nodes: %w", err)
	}
	job := recording{src: src, qs: source.Everything(nodes), key: key, folder: source.SnapshotName(r.context(src), r.time(src))}
	name := source.SnapshotName(r.context(src), r.app.env.Now()) + ".tar.gz"
	if len(args) > 0 {
		name = args[0]
	}
	sum, err := r.app.writeTo(name, func(w io.Writer) (source.Summary, error) {
		sum, err := r.write(cmd.Context(), bounded, job, w)
		if err == nil && len(sum.Members) == 0 {
			err = nothing(sum)
		}
		return sum, err
	})
	r.from.progress.clear()
	if err != nil {
		return err
	}
	if r.redact {
		_, _ = fmt.Fprintln(r.app.env.ErrOut, "names and addresses are replaced; look through it before you give it away")
		if r.keyFile == "" {
			_, _ = fmt.Fprintln(r.app.env.ErrOut, "the key is not kept: another snapshot will have other names (--redact-key FILE)")
		}
	}
	return r.app.tell(name, sum)
}

// nothing is the error for a recording that would be empty.
func nothing(sum source.Summary) error {
	for _, g := range sum.Gaps {
		if g.Class != source.Absent {
			return fmt.Errorf("nothing could be read: %s", render.Clean(g.Reason))
		}
	}
	return errors.New("nothing could be read: the source holds no evidence")
}

// key is the key to redact with: one that is kept, or one that nobody will know.
func (r *recorder) key() (redact.Key, error) {
	if r.keyFile == "" {
		return redact.NewKey(), nil
	}
	key, made, err := redact.KeyFile(r.keyFile)
	if err != nil {
		return key, fmt.Errorf("--redact-key: %w", err)
	}
	if made {
		_, _ = fmt.Fprintf(r.app.env.ErrOut, "kubectl kpr: made the key %s; who has it can try out names, so keep it to yourself\n", r.keyFile)
	}
	return key, nil
}

// context is what the file is named after. The context's name may be the first
// thing that strangers should not see.
func (r *recorder) context(src source.Source) string {
	if r.redact {
		return "redacted"
	}
	return src.About().Context
}

// time is when the evidence was read, as far as that is known.
func (r *recorder) time(src source.Source) time.Time {
	if at := src.About().Recorded; !at.IsZero() {
		return at
	}
	return r.app.env.Now()
}
