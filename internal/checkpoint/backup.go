package checkpoint

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-kpr/kubectl-kpr/internal/baseline"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/stage"
)

const backups = "backups.velero.io"

// backedUp demands a fresh backup. Where none can be seen there is none.
func backedUp(ctx context.Context, o Options) *diag.Check {
	return &diag.Check{
		Name:  "backup",
		Doc:   "whether a backup of Velero was completed in time",
		Scope: diag.OfCluster,
		Rules: []*diag.Rule{stage.BackupRule()},
		Run: func(p *diag.Pass) error {
			if o.Objects == nil {
				p.Unknown(fact.ID(backups), fmt.Errorf("recorded evidence does not hold them: %w", source.ErrAbsent))
				return nil
			}
			var done []baseline.Backup
			err := o.Objects.Objects(ctx, backups, "", func(u *unstructured.Unstructured) error {
				if b, ok := baseline.CompletedBackup(u); ok {
					done = append(done, b)
				}
				return nil
			})
			if err != nil && !errors.Is(err, source.ErrAbsent) {
				p.Unknown(fact.ID(backups), err)
				return nil
			}
			name, fresh := baseline.Fresh(done, o.Report.Now, o.BackupWithin)
			r := diag.Report{Subject: "cluster", Severity: diag.Error, Next: []string{"velero", "backup", "get"}}
			switch {
			case fresh:
				return nil
			case errors.Is(err, source.ErrAbsent):
				r.Message = "no backup is there: the cluster has no resource " + backups
			case name == "":
				r.Message = "no backup of Velero is Completed"
			default:
				r.Message = fmt.Sprintf("the newest Completed backup, %s, is older than %s", name, o.BackupWithin)
			}
			p.Find(stage.BackupRule(), r)
			return nil
		},
	}
}
