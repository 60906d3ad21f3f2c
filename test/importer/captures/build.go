package captures

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// Import makes every recipe's fixture from the recordings below in, and writes
// each into its own folder below out, in place of what was there.
func Import(in, out string, recipes []Recipe) error {
	for _, r := range recipes {
		files, err := Build(os.DirFS(in), r)
		if err != nil {
			return fmt.Errorf("fixture %s: %w", r.Name, err)
		}
		if err := write(filepath.Join(out, r.Name), files); err != nil {
			return fmt.Errorf("fixture %s: %w", r.Name, err)
		}
	}
	return nil
}

// Build makes one fixture: its files by slash-separated path. The same
// recording always gives the same bytes.
func Build(all fs.FS, r Recipe) (map[string][]byte, error) {
	rec, err := fs.Sub(all, r.From)
	if err != nil {
		return nil, err
	}
	if _, err := fs.Stat(rec, "."); err != nil {
		return nil, fmt.Errorf("recording %s: %w", r.From, err)
	}
	b := &build{rec: rec, recipe: r, started: map[string]bool{}}
	if err := b.cluster(); err != nil {
		return nil, err
	}
	if err := b.initLogs(); err != nil {
		return nil, err
	}
	if err := b.findNodes(); err != nil {
		return nil, err
	}
	for _, node := range b.nodes {
		if err := b.commands(node); err != nil {
			return nil, err
		}
	}
	if !slices.ContainsFunc(b.answers, func(a answer) bool { return a.err == nil }) {
		return nil, fmt.Errorf("recording %s: holds nothing that a topic names", r.From)
	}
	files := memory{}
	_, err = source.Record(context.Background(), b, b.queries(), files, source.Info{Tool: "importer", Cilium: b.versions})
	return files, err
}

// build is a fixture in the making.
type build struct {
	rec     fs.FS
	recipe  Recipe
	answers []answer
	nodes   []string // sorted
	pods    []object
	started map[string]bool // nodes whose agent's init containers left a log

	latest     time.Time // the last time that anything in the recording tells
	kubernetes string    // version, as the first answer says it
	cilium     string
}

// answer is what a recording says to one query: evidence, or why there is none.
type answer struct {
	source.Artifact
	err error
}

// gap is the reason why there is no answer, or no whole one.
type gap string

func (g gap) Error() string { return string(g) }

// Unwrap is source.ErrAbsent: a recording never holds what was not recorded.
func (gap) Unwrap() error { return source.ErrAbsent }

const notRecorded gap = "not recorded"

// cluster reads the lists of Kubernetes objects.
func (b *build) cluster() error {
	for _, spec := range source.Topics() {
		if spec.Node {
			continue
		}
		q := source.Query{Topic: spec.Topic}
		objs, from, err := objectsOf(b.rec, spec.Topic)
		if isAbsent(err) {
			b.lack(q, notRecorded)
			continue
		}
		if err != nil {
			return err
		}
		if only := partial(from); only != "" {
			b.lack(q, only)
		}
		b.learn(spec.Topic, objs)
		data, err := encode(objs)
		if err != nil {
			return fmt.Errorf("%s: %w", spec.Topic, err)
		}
		form, ok := formOf(spec, source.YAML)
		if !ok {
			return fmt.Errorf("%s: topic has no YAML form", spec.Topic)
		}
		if err := b.take(q, form, data, strings.Join(from, ", ")); err != nil {
			return err
		}
	}
	return nil
}

// partial says what a list leaves out when its recording was not of the whole
// cluster, "" when it was.
func partial(from []string) gap {
	switch {
	case slices.Contains(from, "endpointslices-web.json"):
		return "only the EndpointSlices of shop/web were recorded"
	case slices.Contains(from, "pods.yaml"):
		return "only the agents' pods were recorded"
	}
	return ""
}

// learn keeps what other parts of the fixture need of the objects.
func (b *build) learn(t source.Topic, objs []object) {
	for _, o := range objs {
		if chart, ok := strings.CutPrefix(o.text("metadata", "labels", "helm.sh/chart"), "cilium-"); ok && b.cilium == "" {
			b.cilium = chart
		}
		if b.kubernetes == "" {
			b.kubernetes = o.text("status", "nodeInfo", "kubeletVersion")
		}
	}
	if t == source.Pods {
		b.pods = objs
	}
}

// hostFolder holds what was read on the nodes themselves, a folder per node.
const hostFolder = "netfilter"

// findNodes finds the nodes of which anything was recorded.
func (b *build) findNodes() error {
	names := maps.Clone(b.started)
	if b.recipe.Node != "" {
		names[b.recipe.Node] = true
	}
	for _, spec := range source.Topics() {
		if !spec.Node {
			continue
		}
		for _, form := range spec.Forms {
			for _, glob := range []string{"*/", hostFolder + "/*/"} {
				found, err := fs.Glob(b.rec, glob+form.Stem+form.Ext)
				if err != nil {
					return err
				}
				for _, f := range found {
					names[path.Base(path.Dir(f))] = true
				}
			}
		}
	}
	b.nodes = slices.Sorted(maps.Keys(names))
	return nil
}

// commands reads what was recorded of one node.
func (b *build) commands(node string) error {
	for _, spec := range source.Topics() {
		if !spec.Node || spec.Topic == source.InitLog {
			continue
		}
		q := source.Query{Topic: spec.Topic, Node: node}
		had := map[source.Format]bool{}
		for _, form := range spec.Forms {
			if len(had) > 0 && (had[form.Format] || !slices.Contains(b.recipe.Both, spec.Topic)) {
				continue
			}
			data, from, err := b.output(node, form)
			if isAbsent(err) {
				continue
			}
			if err != nil {
				return err
			}
			had[form.Format] = true
			if spec.Topic == source.AgentLog {
				data = lastLines(data, logLines)
			}
			b.note(spec.Topic, data)
			if err := b.take(q, form, data, from); err != nil {
				return err
			}
		}
		if len(had) == 0 {
			b.lack(q, notRecorded)
		}
	}
	return nil
}

// output reads one form of a command's answer. What was read on the node goes
// before what its agent printed: both show the same tables, and the former
// was taken for all nodes in one go.
func (b *build) output(node string, form source.Form) (data []byte, from string, err error) {
	folders := []string{hostFolder + "/" + node, node}
	if b.recipe.Node == node {
		folders = append(folders, ".")
	}
	for _, folder := range folders {
		from := path.Join(folder, form.Stem+form.Ext)
		data, err := fs.ReadFile(b.rec, from)
		if isAbsent(err) || err == nil && len(data) == 0 {
			continue
		}
		return data, from, err
	}
	return nil, "", fs.ErrNotExist
}

// take keeps evidence; from names the files of the recording that hold it. It
// fails where a snapshot could not hold it: the recorder would only note a gap.
func (b *build) take(q source.Query, form source.Form, data []byte, from string) error {
	if _, err := form.File(q); err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	b.answers = append(b.answers, answer{Artifact: source.Artifact{
		Query: q, Format: form.Format, Stem: form.Stem, Data: data, Origin: b.recipe.From + ": " + from,
	}})
	return nil
}

// lack keeps the reason why a query has no answer, or not a whole one.
func (b *build) lack(q source.Query, why gap) {
	b.answers = append(b.answers, answer{source.Artifact{Query: q}, why})
}

// formOf is a topic's form in a format.
func formOf(spec source.Spec, format source.Format) (source.Form, bool) {
	i := slices.IndexFunc(spec.Forms, func(f source.Form) bool { return f.Format == format })
	if i < 0 {
		return source.Form{}, false
	}
	return spec.Forms[i], true
}

// isAbsent holds for the error of a file that is not there.
func isAbsent(err error) bool { return errors.Is(err, fs.ErrNotExist) }
