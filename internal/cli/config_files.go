package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/kubectl-kpr/kubectl-kpr/internal/cilium"
	"github.com/kubectl-kpr/kubectl-kpr/internal/helm"
	"github.com/kubectl-kpr/kubectl-kpr/internal/rancher"
	"github.com/kubectl-kpr/kubectl-kpr/internal/version"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lint"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/report"
)

// configFiles are the files that config looks at before they are merged.
type configFiles struct {
	values  []string
	rancher string
	version string
}

func (f configFiles) given() bool { return len(f.values) > 0 || f.rancher != "" }

func (f configFiles) names() []string {
	names := f.values
	if f.rancher != "" {
		names = append(names[:len(names):len(names)], f.rancher)
	}
	return names
}

// read reads what the flags name. A version that nobody can read is misuse.
func (f configFiles) read() (lint.Input, error) {
	in := lint.Input{Version: f.version}
	if f.version != "" && cilium.CapabilitiesOf(f.version) == (cilium.Capabilities{}) {
		return in, fmt.Errorf("--cilium-version %q: want one such as 1.19.3", f.version)
	}
	var files []helm.File
	for _, name := range f.values {
		data, err := os.ReadFile(name)
		if err != nil {
			return in, fmt.Errorf("--values: %w", err)
		}
		files = append(files, helm.File{Name: name, Data: data})
	}
	var err error
	if len(files) > 0 {
		if in.Values, err = helm.ReadValues(files); err != nil {
			return in, fmt.Errorf("--values: %w", err)
		}
	}
	if f.rancher != "" {
		files, err := rancher.Files(f.rancher)
		if err == nil {
			in.Rancher, err = rancher.Merge(files)
		}
		if err != nil {
			return in, fmt.Errorf("--k3s-config: %w", err)
		}
	}
	return in, nil
}

// lint judges the files alone. No cluster is asked.
func (f configFiles) lint(l *lookup) error {
	failOn, err := l.output.validate()
	if err != nil {
		return err
	}
	in, err := f.read()
	if err != nil {
		return err
	}
	return l.output.write(l.app.env, report.Build(lint.Run(in, f.names()), report.Options{
		Command: l.command, Tool: version.String(), Now: l.app.env.Now(), FailOn: failOn,
	}))
}

// misuse says which flags do not go together.
func (f configFiles) misuse(snapshot string, live, release bool) error {
	switch {
	case release && len(f.values) > 0:
		return errors.New("--helm-values and --values: both are the chart's values; give one of them")
	case release && snapshot != "":
		return errors.New("--helm-values: a snapshot never holds the release; give the values with --values")
	case live && snapshot != "":
		return errors.New("--live and --snapshot: give one of them")
	case release && f.rancher != "" && !live:
		return errors.New("--helm-values reads a cluster and --k3s-config alone does not: add --live")
	case f.version != "" && !f.given():
		return errors.New("--cilium-version: is for --values and --k3s-config; a cluster tells its own")
	}
	return nil
}
