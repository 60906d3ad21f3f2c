package cli

import (
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

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
	fs.StringVar(&f.baseline, "baseline", "", "count and show only what an earlier report of -o json, `FILE`, does not hold")
	complete(cmd, "ignore", ruleNames())
}

// read fails on rules that do not exist and on files that are no report, before
// anything is asked of a cluster.
func (f *waiverFlags) read() ([]report.Waiver, *report.Baseline, error) {
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
	file, err := os.Open(f.baseline)
	if err != nil {
		return nil, nil, fmt.Errorf("--baseline: %w", err)
	}
	defer func() { _ = file.Close() }()
	baseline, err := report.ReadBaseline(f.baseline, file)
	if err != nil {
		return nil, nil, fmt.Errorf("--baseline: %w", err)
	}
	return waivers, baseline, nil
}
