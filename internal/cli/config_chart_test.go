package cli

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/kubectl-kpr/kubectl-kpr/internal/helm"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/report"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// recorded is a snapshot that has a release beside it, as a cluster does.
type recorded struct {
	source.Source
	release *helm.Release
	err     error
	asked   string
}

func (r *recorded) HelmRelease(_ context.Context, namespace, name string) (*helm.Release, string, error) {
	r.asked = namespace + "/" + name
	return r.release, "", r.err
}

// TestChartOfTheRelease asks for the release that the DaemonSet names; that it
// is refused is a gap, and the exit code is 3.
func TestChartOfTheRelease(t *testing.T) {
	release, err := helm.DecodeRelease([]byte("eyJuYW1lIjoiY2lsaXVtIiwibmFtZXNwYWNlIjoia3ViZS1zeXN0ZW0iLCJ2ZXJzaW9uIjo0LCJjaGFydCI6eyJtZXRhZGF0YSI6eyJuYW1lIjoiY2lsaXVtIiwidmVyc2lvbiI6IjEuMjAuMiJ9fSwiY29uZmlnIjp7ImxvYWRCYWxhbmNlciI6eyJhbGdvcml0aG0iOiJtYWdsZXYifX19"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, snapshot string
		release        *helm.Release
		err            error
		chart, mark    string
		outcome        report.Outcome
	}{
		{"read", "lab-kpr", release, nil, "release kube-system/cilium, revision 4 (chart cilium 1.20.2)", "the chart says maglev, cilium-config does not have the key", report.OK},
		{"refused", "lab-kpr", nil, errors.Join(source.ErrForbidden, errors.New("secrets is forbidden")), "not read: ", "", report.Unknown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			snapshot, err := source.OpenSnapshot("../../test/fixtures/" + tt.snapshot)
			if err != nil {
				t.Fatal(err)
			}
			src := &recorded{Source: snapshot, release: tt.release, err: tt.err}
			run, err := diag.Do(t.Context(), src, diag.Selection{}, nil, report.SettingFacts()...)
			if err != nil {
				t.Fatal(err)
			}
			chart, err := (&settingsOf{release: true}).beside(t.Context(), src, run)
			if err != nil {
				t.Fatal(err)
			}
			d := report.Build(run, report.Options{Settings: true, Chart: chart})
			if src.asked != "kube-system/cilium" {
				t.Errorf("asked for %q", src.asked)
			}
			if !strings.HasPrefix(d.Settings.Chart, tt.chart) || d.Verdict.Outcome != tt.outcome {
				t.Errorf("%s, %s", d.Settings.Chart, d.Verdict.Outcome)
			}
			var why []string
			for _, r := range d.Settings.Rows {
				for _, m := range r.Marks {
					why = append(why, m.Why)
				}
			}
			if got := strings.Join(why, "; "); got != tt.mark {
				t.Errorf("marks %q, want %q", got, tt.mark)
			}
		})
	}
}
