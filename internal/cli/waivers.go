package cli

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/report"
)

// waiverFlags say which findings do not count.
type waiverFlags struct {
	ignore   []string
	baseline string
}

func (f *waiverFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringArrayVar(&f.ignore, "ignore", nil, "do not count findings of `RULE[=SUBJECT]`, such as map-pressure=node/w-*; repeats")
	fs.StringVar(&f.baseline, "baseline", "", "count and show only what is not in `PATH`: a snapshot, or an earlier report of -o json")
	complete(cmd, "ignore", ruleNames())
}

// read fails on rules that do not exist and on files that are neither report
// nor recording, before anything is asked of a cluster. A recording is judged
// by the same checks.
func (f *waiverFlags) read(ctx context.Context, a *app, checks []*diag.Check) ([]report.Waiver, *report.Baseline, error) {
	var waivers []report.Waiver
	for _, s := range f.ignore {
		w, err := report.ParseWaiver(s)
		if err != nil {
			return nil, nil, fmt.Errorf("--ignore %s: %w", s, err)
		}
		if !slices.Contains(ruleNames(), w.Rule) {
			return nil, nil, unknownRule("--ignore", w.Rule)
		}
		if !slices.Contains(waivers, w) {
			waivers = append(waivers, w)
		}
	}
	if f.baseline == "" {
		return waivers, nil, nil
	}
	baseline, err := f.known(ctx, a, checks)
	if err != nil {
		return nil, nil, fmt.Errorf("--baseline: %w", err)
	}
	return waivers, baseline, nil
}

// known tells a report from a recording by how it begins.
func (f *waiverFlags) known(ctx context.Context, a *app, checks []*diag.Check) (*report.Baseline, error) {
	file, err := os.Open(f.baseline)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err != nil || !info.IsDir() {
		begin := bufio.NewReader(file)
		if head, _ := begin.Peek(512); utf8.Valid(head) && !bytes.Contains(head, []byte{0}) { // archives are not text
			return report.ReadBaseline(f.baseline, begin)
		}
	}
	from := sourceFlags{clusterFlags: clusterFlags{concurrency: 1, nodeTimeout: time.Second, deadline: time.Second}, snapshot: f.baseline}
	src, err := from.open(a)
	if err != nil {
		return nil, err
	}
	if c, ok := src.(io.Closer); ok {
		defer func() { _ = c.Close() }()
	}
	run, err := diag.Do(ctx, src, diag.Selection{}, checks, report.Facts(false)...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.baseline, err)
	}
	return report.BaselineOf(f.baseline, report.Build(run, report.Options{Command: "check", Now: a.env.Now()})), nil
}
