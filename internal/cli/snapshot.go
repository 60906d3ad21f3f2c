package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-kpr/kubectl-kpr/internal/cilium"
	"github.com/kubectl-kpr/kubectl-kpr/internal/render"
	"github.com/kubectl-kpr/kubectl-kpr/internal/words"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/report"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

func (a *app) snapshot() *cobra.Command {
	r := recorder{app: a}
	cmd := &cobra.Command{
		Use:     "snapshot [FILE]",
		GroupID: "more",
		Short:   "Record all evidence of a cluster into a file",
		Long: `Records everything that the checks read, and what could not be read and why, as a
.tar.gz. Every command that reads takes it with --snapshot. Without FILE the name is
kpr-CONTEXT-TIME.tar.gz; "-" is standard output. A file that exists is not touched.
A cluster that is broken is recorded as far as it answers.

A snapshot holds Services, EndpointSlices, nodes, Cilium's and kube-proxy's pods and
what the agents print, the last lines of their logs among it; with --all also what only
the hosts know, as --host does. It holds no Secrets, no managedFields, and of other pods
neither env nor args.

Names and addresses are in it as they are. With --redact they are replaced, so that it can
be shown to strangers: everywhere in the same way, subnets and families kept, and the
checks find the same in it. Two snapshots made with one --redact-key line up, and
--redact-names keeps the table that leads back. With --snapshot a recording that is there
already is redacted, or copied.

Exit codes: 0 all was read, 3 written, but something could not be read, 1 not written.`,
		Example: `  kubectl kpr snapshot
  kubectl kpr snapshot --all before-upgrade.tar.gz
  kubectl kpr snapshot - | ssh jump 'cat > kpr.tar.gz'
  kubectl kpr status --snapshot before-upgrade.tar.gz

  # for a bug report
  kubectl kpr snapshot --redact for-the-report.tar.gz

  # the same of a recording, with a key that the next one uses too
  kubectl kpr snapshot --snapshot before-upgrade.tar.gz --redact --redact-key kpr.key shown.tar.gz`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.run(cmd, args)
		},
	}
	r.add(cmd)
	return cmd
}

// versions is a source that notes the agents' versions as they pass by.
type versions struct {
	source.Source
	seen map[string]bool
}

// Collect hands everything on.
func (s *versions) Collect(ctx context.Context, qs []source.Query, yield func(source.Artifact, error)) error {
	s.seen = map[string]bool{}
	return s.Source.Collect(ctx, qs, func(a source.Artifact, err error) {
		if a.Query.Topic == source.Version && err == nil {
			if v, err := cilium.DecodeVersionJSON(a.Data); err == nil {
				s.seen[v.Daemon] = true
			}
		}
		yield(a, err)
	})
}

// sorted are the versions that were heard, else those that a recording tells.
func (s *versions) sorted() []string {
	if len(s.seen) == 0 {
		return s.About().Cilium
	}
	return slices.Sorted(maps.Keys(s.seen))
}

// writeTo gives f standard output or a new file, which appears under its name
// only when it is whole.
func (a *app) writeTo(name string, f func(io.Writer) (source.Summary, error)) (source.Summary, error) {
	if name == "-" {
		if _, tty := a.env.Terminal(a.env.Out); tty {
			return source.Summary{}, fmt.Errorf("snapshot -: standard output is a terminal; name a file or redirect it")
		}
		return f(a.env.Out)
	}
	file, err := source.CreateFile(name)
	if err != nil {
		return source.Summary{}, err
	}
	defer func() { _ = file.Close() }()
	sum, err := f(file)
	if err != nil {
		return sum, err
	}
	return sum, file.Commit()
}

// tell says on standard error what was written and what is missing.
func (a *app) tell(name string, sum source.Summary) error {
	_, _ = fmt.Fprintf(a.env.ErrOut, "%s: %s of %s, %d bytes before packing\n", name, words.Count(len(sum.Members), "file"), words.Count(len(sum.Nodes), "node"), sum.Bytes)
	lost := false
	type why struct {
		reason string
		topics []source.Topic
		nodes  []string
	}
	var whys []*why
	for _, g := range sum.Gaps {
		if g.Class == source.Absent {
			continue
		}
		lost = true
		i := slices.IndexFunc(whys, func(w *why) bool { return w.reason == g.Reason })
		if i < 0 {
			i = len(whys)
			whys = append(whys, &why{reason: g.Reason})
		}
		if !slices.Contains(whys[i].topics, g.Topic) {
			whys[i].topics = append(whys[i].topics, g.Topic)
		}
		if g.Node != "" && !slices.Contains(whys[i].nodes, g.Node) {
			whys[i].nodes = append(whys[i].nodes, g.Node)
		}
	}
	for _, w := range whys {
		where := "cluster"
		if len(w.nodes) > 0 {
			where = strings.Join(w.nodes, ", ")
		}
		_, _ = fmt.Fprintf(a.env.ErrOut, "  not read on %s: %s: %s\n", render.Clean(where), words.Count(len(w.topics), "topic"), render.Clean(w.reason))
	}
	if lost {
		return ExitError{report.ExitUnknown}
	}
	return nil
}
