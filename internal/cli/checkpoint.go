package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/internal/baseline"
	"github.com/kubectl-kpr/kubectl-kpr/internal/checkpoint"
	"github.com/kubectl-kpr/kubectl-kpr/internal/kube"
	"github.com/kubectl-kpr/kubectl-kpr/internal/version"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/report"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/stage"
)

// staged is a lookup that asks whether a stage of the migration is reached.
type staged struct {
	lookup
	stage        int // -1: the one the cluster stands at
	baseline     string
	backupWithin time.Duration
}

// wanted is the stage of --stage.
func (l *staged) wanted() (stage.Stage, error) {
	if l.stage < 0 {
		return stage.Undecided(), nil
	}
	return stage.Of(l.stage)
}

// before is the baseline of --baseline, nil if there is none.
func (l *staged) before() (*stage.Baseline, error) {
	if l.baseline == "" {
		return nil, nil
	}
	f, err := os.Open(l.baseline)
	if err != nil {
		return nil, fmt.Errorf("--baseline: %w", err)
	}
	defer func() { _ = f.Close() }()
	return stage.ReadBaseline(l.baseline, f)
}

// ask looks at the cluster or snapshot once.
func (l *staged) ask(ctx context.Context, objects bool) (*checkpoint.Answer, error) {
	failOn, err := l.output.validate()
	if err != nil {
		return nil, err
	}
	o := checkpoint.Options{Settle: l.from.settle, BackupWithin: l.backupWithin}
	if o.Stage, err = l.wanted(); err != nil {
		return nil, fmt.Errorf("--stage: %w", err)
	}
	if o.Before, err = l.before(); err != nil {
		return nil, err
	}
	if o.Select, err = l.which.selection(); err != nil {
		return nil, err
	}
	src, err := l.from.open(l.app)
	if err != nil {
		return nil, err
	}
	if c, ok := src.(io.Closer); ok {
		defer func() { _ = c.Close() }()
	}
	if objects || o.Before != nil || o.BackupWithin > 0 {
		if err := l.objects(&o); err != nil {
			return nil, err
		}
	}
	o.Report = report.Options{Command: l.command, Tool: version.String(), Now: l.app.env.Now(), FailOn: failOn}
	bounded, cancel := context.WithTimeout(ctx, l.from.deadline)
	defer cancel()
	answer, err := checkpoint.Ask(bounded, src, o)
	l.from.progress.clear()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return answer, err
}

// objects makes the run look at the cluster's objects, which a snapshot does
// not hold.
func (l *staged) objects(o *checkpoint.Options) error {
	if l.from.snapshot != "" {
		return nil
	}
	config, err := l.app.flags.ToRESTConfig()
	if err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	client, err := kube.New(config)
	if err != nil {
		return err
	}
	o.Objects, o.Items = client, baseline.Defaults()
	return nil
}

// save writes a file that appears under its name only when it is whole.
func save(name string, write func(io.Writer) error) error {
	file, err := source.CreateFile(name)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if err := write(file); err != nil {
		return err
	}
	return file.Commit()
}
