package act

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kubectl-kpr/kubectl-kpr/internal/plan"
	"github.com/kubectl-kpr/kubectl-kpr/internal/residue"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
)

// begin makes a new plan, shows it, asks and carries it out.
func (c *cleaning) begin(ctx context.Context, backups []*residue.Backup) error {
	id := newID(c.kind(), c.share.Env().Now())
	cleaner := c.cleaner(id)
	defer cleaner.Close(ctx)
	sel, err := c.selection(backups)
	if err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, c.cluster.Deadline())
	defer cancel()
	candidates, err := residue.Candidates(bounded, c.op.src, sel)
	c.cluster.Clear()
	if err != nil {
		return err
	}
	if err := residue.Judge(residue.Stops(candidates)); err != nil {
		return fmt.Errorf("%w\nnothing was changed; look closer: kubectl kpr residue; leave such nodes out with --node", err)
	}
	var view *view
	if len(backups) > 0 {
		if c.plan, err = cleaner.Restore(backups); err == nil {
			err = c.sameTarget(backups)
		}
		view = c.viewOfBackups(backups)
	} else {
		view, err = c.survey(ctx, cleaner, candidates)
	}
	if err != nil {
		return err
	}
	view.Digest = c.plan.Digest()
	if err := c.show(view); err != nil || c.dryRun {
		return err
	}
	if len(c.plan.Stages[0].Steps) == 0 {
		if c.accept[residue.RuleUnlooked] != "" {
			return nil
		}
		return view.unlooked()
	}
	question := "Remove it?"
	if len(backups) > 0 {
		question = "Put it back?"
	}
	if err := c.ask(ctx, question); err != nil {
		return err
	}
	engine, err := c.op.engine(c.kind(), id, c.progress())
	if err != nil {
		return err
	}
	return c.carryOut(ctx, engine, cleaner)
}

func (c *cleaning) selection(backups []*residue.Backup) (diag.Selection, error) {
	if len(backups) == 0 {
		return c.nodes.Selection()
	}
	var sel diag.Selection
	for _, b := range backups {
		sel.Nodes = append(sel.Nodes, b.Node)
	}
	return sel, nil
}

// sameTarget refuses backups of another cluster.
func (c *cleaning) sameTarget(backups []*residue.Backup) error {
	for _, b := range backups {
		if b.Target != c.op.target {
			return fmt.Errorf("the backup of node %s is of another cluster (kube-system is %s there, %s here): %w", b.Node, b.Target, c.op.target, plan.ErrRefused)
		}
	}
	return nil
}

// survey looks at the nodes and plans for those that have something.
func (c *cleaning) survey(ctx context.Context, cleaner *residue.Cleaner, candidates []residue.Candidate) (*view, error) {
	var nodes []residue.Input
	for _, x := range candidates {
		if !x.Stand.Apart {
			nodes = append(nodes, x.Input)
		}
	}
	_, _ = fmt.Fprintf(c.share.Env().ErrOut, "kubectl kpr: looking at %d nodes through a privileged pod on each, which ends by itself within %s\n", len(nodes), podLife)
	proposals, errs := residue.Survey(ctx, nodes, 8, c.shell("look"))
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("%w\nnothing was changed", err)
	}
	var in residue.Inputs
	for _, p := range proposals {
		if !p.Empty() {
			in.Nodes = append(in.Nodes, p.Input)
		}
	}
	var err error
	c.plan, err = cleaner.Clean(in)
	return &view{Command: "residue clean", Looked: len(nodes), Nodes: slices.Clone(proposals)}, err
}
