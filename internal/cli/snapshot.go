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
	"github.com/kubectl-kpr/kubectl-kpr/internal/version"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/report"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

func (a *app) snapshot() *cobra.Command {
	var from clusterFlags
	cmd := &cobra.Command{
		Use:     "snapshot [FILE]",
		GroupID: "more",
		Short:   "Record all evidence of a cluster into a file",
		Long: `Records everything that the checks read, and what could not be read and why, as a
.tar.gz. Every command that reads takes it with --snapshot. Without FILE the name is
kpr-CONTEXT-TIME.tar.gz; "-" is standard output. A file that exists is not touched.

A snapshot holds Services, EndpointSlices, nodes, Cilium's and kube-proxy's pods and
what the agents print. It holds no Secrets, no managedFields, and of other pods neither
env nor args. Names and addresses are in it as they are.

Exit codes: 0 all was read, 3 written, but something could not be read, 1 not written.`,
		Example: `  kubectl kpr snapshot
  kubectl kpr snapshot before-upgrade.tar.gz
  kubectl kpr snapshot - | ssh jump 'cat > kpr.tar.gz'
  kubectl kpr status --snapshot before-upgrade.tar.gz`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := from.validate(); err != nil {
				return err
			}
			return a.record(cmd.Context(), &from, args)
		},
	}
	from.add(cmd)
	return cmd
}

// record writes the archive and tells what is missing in it.
func (a *app) record(ctx context.Context, from *clusterFlags, args []string) error {
	src, err := from.cluster(a)
	if err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, from.deadline)
	defer cancel()
	qs, err := everything(bounded, src)
	if err != nil {
		return err
	}
	folder := source.SnapshotName(src.About().Context, a.env.Now())
	name := folder + ".tar.gz"
	if len(args) > 0 {
		name = args[0]
	}
	sum, err := a.writeTo(name, func(w io.Writer) (source.Summary, error) {
		tar := source.NewTarWriter(w, folder)
		heard := &versions{Source: src}
		sum, err := source.Record(bounded, heard, qs, tar, source.Info{
			Tool: "kubectl-kpr", Version: version.String(), Now: a.env.Now, Cilium: heard.sorted,
		})
		if err != nil {
			return sum, err
		}
		return sum, tar.Close()
	})
	from.progress.clear()
	if err != nil {
		return err
	}
	return a.tell(name, sum)
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

func (s *versions) sorted() []string { return slices.Sorted(maps.Keys(s.seen)) }

// everything is one query for each topic of the cluster and of each node.
func everything(ctx context.Context, src source.Source) ([]source.Query, error) {
	nodes, err := src.Nodes(ctx)
	if err != nil {
		return nil, fmt.Errorf("list of nodes: %w", err)
	}
	var qs []source.Query
	for _, spec := range source.Topics() {
		switch {
		case spec.TakesArg():
		case !spec.Node:
			qs = append(qs, source.Query{Topic: spec.Topic})
		default:
			for _, n := range nodes {
				qs = append(qs, source.Query{Topic: spec.Topic, Node: n.Name})
			}
		}
	}
	return qs, nil
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
	_, _ = fmt.Fprintf(a.env.ErrOut, "%s: %d files of %d nodes, %d bytes before packing\n", name, len(sum.Members), len(sum.Nodes), sum.Bytes)
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
		_, _ = fmt.Fprintf(a.env.ErrOut, "  not read on %s: %d topics: %s\n", render.Clean(where), len(w.topics), render.Clean(w.reason))
	}
	if lost {
		return ExitError{report.ExitUnknown}
	}
	return nil
}
