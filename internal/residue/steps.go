package residue

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/internal/plan"
)

// Clean and Restored are the kinds of plans.
const (
	KindClean   = "residue-clean"
	KindRestore = "residue-restore"
)

// Cleaner makes plans that change what nodes have of kube-proxy.
type Cleaner struct {
	// Open gives a shell on a node.
	Open func(ctx context.Context, node string) (Shell, error)
	// Ready fails unless it is proven that a node needs nothing of kube-proxy's
	// any more: it does not run there, and KPR is True.
	Ready  func(ctx context.Context, node string) error
	ID     string // of the journal; backups are named after it
	Target string
	Folder string // of the operator's copies
	Now    func() time.Time

	node string // of the shell that is open
	sh   Shell
	at   time.Time
}

// shellLife is for how long a shell is used before another is opened: less
// than its pod lives.
const shellLife = 3 * time.Minute

// Inputs are what a plan is made from.
type Inputs struct {
	Nodes []Input `json:"nodes"`
}

// Input is a node of a plan.
type Input struct {
	Node    string `json:"node"`
	Kubelet bool   `json:"kubeletSharesChains,omitempty"`
	// Proposed is a digest of all that was to go when the plan was made. To
	// restore, it is the digest of the backup.
	Proposed string `json:"proposed"`
	// Unlooked is what could not be looked at there, in words.
	Unlooked string `json:"unlooked,omitempty"`
}

// RuleUnlooked is the rule whose stops can be accepted: what only the host's
// nft shows was not looked at.
const RuleUnlooked = "nft-table"

// gate stops where something on a node could not be looked at.
func (in Inputs) gate(context.Context) (plan.GateResult, error) {
	var r plan.GateResult
	for _, n := range in.Nodes {
		if n.Unlooked != "" {
			r.Stops = append(r.Stops, plan.Stop{Rule: RuleUnlooked, Unknown: true, Message: fmt.Sprintf("node %s: not looked at: %s", n.Node, n.Unlooked)})
		}
	}
	return r, nil
}

// Clean is the plan that cleans nodes, one after the other.
func (c *Cleaner) Clean(in Inputs) (*plan.Plan, error) {
	data, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	stage := plan.Stage{Name: "clean", Gate: in.gate}
	for _, n := range in.Nodes {
		stage.Steps = append(stage.Steps, c.clean(n))
	}
	return &plan.Plan{Kind: KindClean, Target: c.Target, Inputs: data, Stages: []plan.Stage{stage}}, nil
}

// InputsOf reads what a journal says that a plan was made from.
func InputsOf(o *plan.Opening) (Inputs, error) {
	var in Inputs
	if err := json.Unmarshal(o.Inputs, &in); err != nil || len(in.Nodes) == 0 {
		return in, fmt.Errorf("journal %s: not of a plan for nodes: %w", o.ID, err)
	}
	return in, nil
}

func (c *Cleaner) clean(n Input) plan.Step {
	return plan.Step{
		Name: "clean", Node: n.Node,
		Doc:  "removes kube-proxy's chains, jumps, nftables tables, IPVS servers and IP sets, and nothing else",
		Risk: "connections that still go through kube-proxy's rules break",
		Ready: func(ctx context.Context) error {
			return c.Ready(ctx, n.Node)
		},
		Capture: func(ctx context.Context) (plan.Record, error) { return c.capture(ctx, n) },
		Apply: func(ctx context.Context, _ plan.Record) error {
			return c.on(ctx, n.Node, func(sh Shell) error { return Remove(ctx, sh, n.Kubelet) })
		},
		Verify: func(ctx context.Context, _ plan.Record) error {
			return c.on(ctx, n.Node, func(sh Shell) error {
				h, err := Look(ctx, sh, n.Kubelet)
				if err == nil && !h.Empty() {
					err = fmt.Errorf("node %s has still %s", n.Node, h.Words())
				}
				return err
			})
		},
		Undo:   func(ctx context.Context, r plan.Record) error { return c.undo(ctx, n, r) },
		Undone: func(ctx context.Context, r plan.Record) error { return c.undone(ctx, n, r) },
	}
}

// Restore is the plan that gives nodes back what backups have.
func (c *Cleaner) Restore(backups []*Backup) (*plan.Plan, error) {
	in := Inputs{}
	stage := plan.Stage{Name: "restore"}
	for _, b := range backups {
		data, err := json.Marshal(b)
		if err != nil {
			return nil, err
		}
		n := Input{Node: b.Node, Kubelet: b.Kubelet, Proposed: digest(data)}
		in.Nodes = append(in.Nodes, n)
		step := c.clean(n)
		step.Name, step.Doc = "restore", "puts back kube-proxy's chains, jumps and tables as the backup has them"
		step.Risk = "rules that nobody keeps up to date act on packets again"
		step.Apply = func(ctx context.Context, _ plan.Record) error {
			return c.on(ctx, n.Node, func(sh Shell) error { return GiveBack(ctx, sh, b) })
		}
		step.Verify = func(ctx context.Context, _ plan.Record) error { return c.same(ctx, b) }
		stage.Steps = append(stage.Steps, step)
	}
	data, err := json.Marshal(in)
	return &plan.Plan{Kind: KindRestore, Target: c.Target, Inputs: data, Stages: []plan.Stage{stage}}, err
}

func (c *Cleaner) capture(ctx context.Context, n Input) (record plan.Record, err error) {
	err = c.on(ctx, n.Node, func(sh Shell) error {
		h, err := Look(ctx, sh, n.Kubelet)
		if err != nil {
			return err
		}
		k, err := backupOf(c.Target, n.Node, n.Kubelet, h, c.Now()).keep(ctx, sh, c.file(), c.local(n.Node))
		if err != nil {
			return err
		}
		for _, s := range h.Saves {
			chains, rows := s.Removal.Count()
			k.Chains, k.Rows = k.Chains+chains, k.Rows+rows
		}
		record, err = json.Marshal(k)
		return err
	})
	return record, err
}

func (c *Cleaner) file() string { return c.ID + ".json" }

func (c *Cleaner) local(node string) string { return filepath.Join(c.Folder, node+".json") }

// backup is the one that a record tells of.
func (c *Cleaner) backup(ctx context.Context, sh Shell, n Input, r plan.Record) (*Backup, error) {
	var k Kept
	if err := json.Unmarshal(r, &k); err != nil || len(k.SHA256) != 64 {
		return nil, fmt.Errorf("the journal's record of %s names no backup: %w", n.Node, err)
	}
	b, err := fetch(ctx, sh, c.file(), c.local(n.Node), k.SHA256)
	if err != nil {
		return nil, err
	}
	if b.Node != n.Node || b.Target != c.Target {
		return nil, fmt.Errorf("the backup is of node %s of %s", b.Node, b.Target)
	}
	return b, nil
}

func (c *Cleaner) undo(ctx context.Context, n Input, r plan.Record) error {
	return c.on(ctx, n.Node, func(sh Shell) error {
		b, err := c.backup(ctx, sh, n, r)
		if err != nil {
			return err
		}
		return GiveBack(ctx, sh, b)
	})
}

func (c *Cleaner) undone(ctx context.Context, n Input, r plan.Record) error {
	var b *Backup
	err := c.on(ctx, n.Node, func(sh Shell) (err error) {
		b, err = c.backup(ctx, sh, n, r)
		return err
	})
	if err != nil {
		return err
	}
	return c.same(ctx, b)
}

// same fails unless a node has what the backup has.
func (c *Cleaner) same(ctx context.Context, b *Backup) error {
	return c.on(ctx, b.Node, func(sh Shell) error {
		want, err := b.holding()
		if err != nil {
			return err
		}
		h, err := Look(ctx, sh, b.Kubelet)
		if err == nil && !h.Same(want) {
			err = fmt.Errorf("node %s has %s, its backup %s", b.Node, h.Words(), want.Words())
		}
		return err
	})
}

// on runs do with a shell on the node, the one that is open if it is there.
func (c *Cleaner) on(ctx context.Context, node string, do func(Shell) error) error {
	if c.sh != nil && (c.node != node || c.Now().Sub(c.at) > shellLife) {
		c.Close(ctx)
	}
	if c.sh == nil {
		sh, err := c.Open(ctx, node)
		if err != nil {
			return fmt.Errorf("node %s: %w", node, err)
		}
		c.node, c.sh, c.at = node, sh, c.Now()
	}
	err := do(c.sh)
	if err != nil { // the next try has a fresh one
		c.Close(ctx)
		return fmt.Errorf("node %s: %w", node, err)
	}
	return nil
}

// Close ends the shell that is open.
func (c *Cleaner) Close(ctx context.Context) {
	if c.sh != nil {
		c.sh.Close(ctx)
		c.sh = nil
	}
}
