package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/internal/helm"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lint"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/report"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// settingsOf says what goes beside the agents' settings.
type settingsOf struct {
	files   configFiles
	release bool
}

// releases is a source that can read a Helm release: a running cluster.
type releases interface {
	HelmRelease(ctx context.Context, namespace, name string) (*helm.Release, string, error)
}

// beside reads the chart's values, judges the files as the version that runs,
// and adds what it found to the run.
func (s *settingsOf) beside(ctx context.Context, src source.Source, run *diag.Run) (*report.Chart, error) {
	if s.release {
		return s.installed(ctx, src, run)
	}
	if !s.files.given() {
		return nil, nil
	}
	in, err := s.files.read()
	if err != nil {
		return nil, err
	}
	if in.Version == "" {
		in.Version = versionOf(run)
	}
	run.Results = append(lint.Run(in, s.files.names()).Results, run.Results...)
	if in.Values == nil {
		return nil, nil
	}
	return &report.Chart{Said: strings.Join(s.files.values, ", "), Value: in.Values.Value}, nil
}

// versionOf is the version of the agents, where they agree.
func versionOf(run *diag.Run) string {
	version := ""
	for _, r := range fact.Status.Each(run.Store.Cluster()) {
		switch {
		case r.Value == nil:
		case version == "":
			version = r.Value.Version
		case version != r.Value.Version:
			return ""
		}
	}
	return version
}

// installed reads the release that the agents' DaemonSet says it belongs to.
// That it cannot be read is part of the report.
func (s *settingsOf) installed(ctx context.Context, src source.Source, run *diag.Run) (*report.Chart, error) {
	from, ok := src.(releases)
	if !ok {
		return nil, fmt.Errorf("--helm-values: %s has no release", src.About().Kind)
	}
	sets, err := fact.AgentSets.From(run.Store.Cluster())
	if err != nil {
		return &report.Chart{Err: err}, nil
	}
	set := sets[0]
	name, namespace := set.Annotations["meta.helm.sh/release-name"], set.Annotations["meta.helm.sh/release-namespace"]
	if name == "" || namespace == "" {
		return &report.Chart{Err: fmt.Errorf("daemonset %s/%s names no Helm release, it was installed by other means: %w", set.Namespace, set.Name, source.ErrAbsent)}, nil
	}
	release, _, err := from.HelmRelease(ctx, namespace, name)
	if err != nil {
		return &report.Chart{Err: err}, nil
	}
	return &report.Chart{Said: release.String(), Value: release.Value}, nil
}
