package act

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-kpr/kubectl-kpr/internal/cli"
	"github.com/kubectl-kpr/kubectl-kpr/internal/host"
	"github.com/kubectl-kpr/kubectl-kpr/internal/plan"
	"github.com/kubectl-kpr/kubectl-kpr/internal/residue"
)

// podLife is how long a pod on a node lives if nobody removes it.
const podLife = 5 * time.Minute

// cleaning is a run of residue clean, or of residue restore where there are files.
type cleaning struct {
	share cli.Share
	change
	cluster cli.ClusterFlags
	nodes   cli.NodeFlags
	format  string
	backup  string
	undo    bool
	files   []string
	accept  map[string]string

	hosts *host.Runner
	op    *operation
	plan  *plan.Plan
}

func (c *cleaning) add(cmd *cobra.Command) {
	c.change.add(cmd)
	c.cluster.Add(cmd)
	for _, name := range []string{"host", "probe-api", "drops"} { // of looking, and this always uses the host
		if f := cmd.Flags().Lookup(name); f != nil {
			f.Hidden = true
		}
	}
	cmd.Flags().StringVarP(&c.format, "output", "o", "text", "output format: text, wide, json")
	cmd.Flags().StringVar(&c.backup, "backup", "", "folder for the backups; kpr-ID in the current one if not given")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"text", "wide", "json"}, cobra.ShellCompDirectiveNoFileComp))
}

func (c *cleaning) kind() string {
	if len(c.files) > 0 {
		return residue.KindRestore
	}
	return residue.KindClean
}

func (c *cleaning) run(ctx context.Context) error {
	if c.format != "text" && c.format != "wide" && c.format != "json" {
		return fmt.Errorf("--output: output format %q: want text, wide or json", c.format)
	}
	var err error
	if c.accept, err = c.accepted(func(rule string) bool { return rule == residue.RuleUnlooked }); err != nil {
		return err
	}
	backups, err := readBackups(c.files)
	if err != nil {
		return err
	}
	if err := c.reach(ctx); err != nil {
		return err
	}
	found, err := c.op.open(ctx, c.kind())
	if err != nil {
		return err
	}
	switch {
	case len(found) > 1:
		return fmt.Errorf("%d plans of this kind are open in %s (%s, %s, …): finish or remove all but one", len(found), c.op.namespace, found[0].ID, found[1].ID)
	case len(found) == 1:
		return ended(ctx, c.share.Env(), c.goOn(ctx, found[0].ID, backups))
	case c.undo:
		return errors.New("--undo: no clean-up is open; what one has done is taken back by: kubectl kpr residue restore FILE")
	}
	return ended(ctx, c.share.Env(), c.begin(ctx, backups))
}

// reach connects, and prepares to act on hosts.
func (c *cleaning) reach(ctx context.Context) error {
	var err error
	if c.op, err = c.connect(ctx, c.share, &c.cluster); err != nil {
		return err
	}
	config, err := c.share.Config()
	if err != nil {
		return err
	}
	c.hosts, err = host.NewRunner(config)
	return err
}

func (c *cleaning) cleaner(id string) *residue.Cleaner {
	folder := c.backup
	if folder == "" {
		folder = "kpr-" + id
	}
	return &residue.Cleaner{
		Open: c.shell("residue"), Ready: residue.ReadyBy(c.op.src), ID: id, Target: c.op.target, Folder: folder, Now: c.share.Env().Now,
	}
}

// shell is a pod on a node. Of those that change something there is one at a
// time, under the lease: any other is what a killed process has left.
func (c *cleaning) shell(purpose string) func(context.Context, string) (residue.Shell, error) {
	return func(ctx context.Context, node string) (residue.Shell, error) {
		on, err := c.op.src.HostNode(ctx, node)
		if err != nil {
			return nil, err
		}
		starting, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		if purpose != "look" {
			c.hosts.Sweep(starting, on.Namespace, purpose)
		}
		return c.hosts.Open(starting, on, purpose, podLife)
	}
}

// goOn resumes or takes back the plan of an open journal.
func (c *cleaning) goOn(ctx context.Context, id string, backups []*residue.Backup) error {
	opening, err := c.op.opening(ctx, id)
	if err != nil {
		return err
	}
	cleaner := c.cleaner(id)
	defer cleaner.Close(ctx)
	if len(backups) > 0 {
		c.plan, err = cleaner.Restore(backups)
	} else {
		var in residue.Inputs
		if in, err = residue.InputsOf(opening); err == nil {
			c.plan, err = cleaner.Clean(in)
		}
	}
	if err != nil {
		return err
	}
	engine, err := c.op.engine(c.kind(), id, c.progress())
	if err != nil {
		return err
	}
	stand, err := engine.Stand(ctx, c.plan)
	if err != nil {
		return err
	}
	c.cluster.Clear()
	c.tellStand(id, stand)
	if c.dryRun {
		return nil
	}
	question := "Go on with it?"
	if c.undo {
		question = "Take it back?"
	}
	if err := c.ask(ctx, question); err != nil {
		return err
	}
	return c.carryOut(ctx, engine, cleaner)
}

func (c *cleaning) ask(ctx context.Context, question string) error {
	about := c.op.src.About()
	return c.confirm(ctx, c.share.Env(), proposal{Context: about.Context, Server: about.Server, Nodes: c.op.nodes, Digest: c.plan.Digest(), Question: question})
}

// carryOut runs the plan, or takes it back, and closes its journal.
func (c *cleaning) carryOut(ctx context.Context, engine *plan.Engine, cleaner *residue.Cleaner) error {
	verb := engine.Run
	if c.undo {
		verb = engine.Rollback
	}
	stand, err := verb(ctx, c.plan, plan.Options{Note: c.note, Accept: c.accept})
	if err == nil {
		_, err = engine.Close(ctx, c.plan, plan.Options{Note: c.note})
	}
	c.tellResult(engine.ID, cleaner.Folder, stand, err)
	return err
}

// readBackups reads the files of residue restore.
func readBackups(files []string) ([]*residue.Backup, error) {
	var out []*residue.Backup
	seen := map[string]string{}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		b, err := residue.Read(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if other := seen[b.Node]; other != "" {
			return nil, fmt.Errorf("%s and %s are both of node %s", other, name, b.Node)
		}
		seen[b.Node] = name
		out = append(out, b)
	}
	return out, nil
}

func joined(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s +%d more", strings.Join(names[:most], ", "), len(names)-most)
}
