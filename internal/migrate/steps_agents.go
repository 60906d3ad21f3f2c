package migrate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/internal/plan"
)

// Values changes the values of Cilium's release. Its methods are safe to call
// again, after they were killed too.
type Values interface {
	// Revision names the present state of the values, for Back.
	Revision(ctx context.Context) (string, error)
	// Set brings the change about and keeps everything else; it does nothing
	// where the values have it already.
	Set(ctx context.Context, c Change) error
	// Back brings back a revision; it does nothing where it is the present one.
	Back(ctx context.Context, c Change, revision string) error
}

// Agents is the agents' DaemonSet.
type Agents interface {
	// Generation is the DaemonSet's, which counts up with each change of it.
	Generation(ctx context.Context) (int64, error)
	// Restart rolls the agents once for a reason; the same reason twice in a row
	// rolls them once.
	Restart(ctx context.Context, reason string) error
	// Open says what keeps the roll from being finished, "" if nothing does.
	Open(ctx context.Context) (string, error)
}

// Eyes says what the nodes' agents say of themselves.
type Eyes interface {
	// See reads the given nodes. An error is of all of them; a node that could
	// not be seen is in Missing.
	See(ctx context.Context, nodes []string) (map[string]Seen, error)
}

// Seen is a node.
type Seen struct {
	Said    Want
	Proxy   string // yes, no; "" if it is not known
	Missing error  // why not all of it is known
}

// Pace is how long steps wait.
type Pace struct {
	Poll  time.Duration // between two looks, 3 s if zero
	Node  time.Duration // what one node may take, 4 min if zero
	Sleep func(context.Context, time.Duration) error
}

func (p Pace) orDefaults() Pace {
	if p.Poll <= 0 {
		p.Poll = 3 * time.Second
	}
	if p.Node <= 0 {
		p.Node = 4 * time.Minute
	}
	if p.Sleep == nil {
		p.Sleep = sleep
	}
	return p
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// until looks again and again until look gives "", and fails with its last
// word when so many looks have passed.
func (p Pace) until(ctx context.Context, most time.Duration, look func(context.Context) (string, error)) error {
	var word string
	for spent := time.Duration(0); ; spent += p.Poll {
		w, err := look(ctx)
		if err == nil && w == "" {
			return nil
		}
		if word = w; err != nil {
			word = err.Error()
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if spent >= most {
			if err != nil {
				return fmt.Errorf("after %s: %w: %w", most, plan.ErrUnverified, err)
			}
			return fmt.Errorf("after %s: %s", most, word)
		}
		if err := p.Sleep(ctx, p.Poll); err != nil {
			return err
		}
	}
}

// World is what the steps act on.
type World struct {
	Values  Values
	Agents  Agents
	Proxies Proxies
	Eyes    Eyes
	Command func(ctx context.Context, argv []string) error // of the operator's, for proxies by hand
	Pace    Pace
}

// before is what a step of the agents captured.
type before struct {
	Revision   string `json:"revision"`
	Generation int64  `json:"generation"`
	// Said is what each agent said before, by node.
	Said map[string]Want `json:"said"`
}

// agentStep is one change of Cilium's values, with exactly one roll.
func agentStep(w *World, c Change, nodes []string) plan.Step {
	input, _ := json.Marshal(c)
	s := &rolling{World: w, c: c, nodes: nodes}
	return plan.Step{
		Name: c.Name, Doc: c.Doc, Risk: c.Risk, Input: input,
		Ready: s.ready, Capture: s.capture, Apply: s.apply, Verify: s.verify, Undo: s.undo, Undone: s.undone,
	}
}

type rolling struct {
	*World
	c     Change
	nodes []string
}

// ready: two rolls at a time cannot be told apart.
func (s *rolling) ready(ctx context.Context) error {
	open, err := s.Agents.Open(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", plan.ErrUnverified, err)
	case open != "":
		return errors.New("a roll of the agents is under way: " + open)
	}
	return nil
}

func (s *rolling) capture(ctx context.Context) (plan.Record, error) {
	var b before
	var err error
	if b.Revision, err = s.Values.Revision(ctx); err != nil {
		return nil, err
	}
	if b.Generation, err = s.Agents.Generation(ctx); err != nil {
		return nil, err
	}
	seen, err := s.Eyes.See(ctx, s.nodes)
	if err != nil {
		return nil, err
	}
	b.Said = map[string]Want{}
	for node, x := range seen {
		b.Said[node] = x.Said
	}
	return json.Marshal(b)
}

func record(r plan.Record) (before, error) {
	var b before
	if err := json.Unmarshal(r, &b); err != nil || b.Revision == "" {
		return b, fmt.Errorf("the captured state cannot be read: %w", errors.Join(plan.ErrChanged, err))
	}
	return b, nil
}

// apply changes the values, and rolls the agents if that alone did not: a
// change of the pods' template rolls them by itself, one of the ConfigMap does
// not. An agent that says the right thing already needs neither.
func (s *rolling) apply(ctx context.Context, r plan.Record) error {
	b, err := record(r)
	if err != nil {
		return err
	}
	if err := s.Values.Set(ctx, s.c); err != nil {
		return err
	}
	return s.rollOnce(ctx, b.Generation, "apply-"+s.c.Name+"-"+b.Revision, s.c.Want)
}

func (s *rolling) rollOnce(ctx context.Context, was int64, reason string, want Want) error {
	now, err := s.Agents.Generation(ctx)
	if err != nil {
		return err
	}
	if now != was {
		return nil
	}
	if want != (Want{}) && s.lacking(ctx, want) == "" {
		return nil
	}
	return s.Agents.Restart(ctx, reason)
}

// lacking says which node does not say what is wanted.
func (s *rolling) lacking(ctx context.Context, want Want) string {
	seen, err := s.Eyes.See(ctx, s.nodes)
	if err != nil {
		return err.Error()
	}
	for _, node := range s.nodes {
		x, ok := seen[node]
		switch {
		case !ok:
			return node + ": not seen"
		case want.missing(x.Said) != "" && x.Missing != nil:
			return node + ": " + x.Missing.Error()
		case want.missing(x.Said) != "":
			return node + ": " + want.missing(x.Said)
		}
	}
	return ""
}

// verify waits for the roll, and then asks every node.
func (s *rolling) verify(ctx context.Context, _ plan.Record) error {
	p := s.Pace.orDefaults()
	most := p.Node * time.Duration(len(s.nodes))
	if err := p.until(ctx, most, s.Agents.Open); err != nil {
		return fmt.Errorf("the roll of the agents does not finish, which stops it before more nodes are reached: %w", err)
	}
	return p.until(ctx, p.Node, func(ctx context.Context) (string, error) { return s.lacking(ctx, s.c.Want), nil })
}

func (s *rolling) undo(ctx context.Context, r plan.Record) error {
	b, err := record(r)
	if err != nil {
		return err
	}
	was, err := s.Agents.Generation(ctx)
	if err != nil {
		return err
	}
	if err := s.Values.Back(ctx, s.c, b.Revision); err != nil {
		return err
	}
	if s.returned(ctx, b) == "" {
		return nil
	}
	now, err := s.Agents.Generation(ctx)
	if err != nil || now != was {
		return err
	}
	return s.Agents.Restart(ctx, "undo-"+s.c.Name+"-"+b.Revision)
}

// returned says which node does not say again what it said before.
func (s *rolling) returned(ctx context.Context, b before) string {
	seen, err := s.Eyes.See(ctx, s.nodes)
	if err != nil {
		return err.Error()
	}
	for _, node := range s.nodes {
		old, ok := b.Said[node]
		x := seen[node]
		if ok && x.Said != old {
			if x.Missing != nil {
				return node + ": " + x.Missing.Error()
			}
			return node + ": " + old.missing(x.Said)
		}
	}
	return ""
}

func (s *rolling) undone(ctx context.Context, r plan.Record) error {
	b, err := record(r)
	if err != nil {
		return err
	}
	p := s.Pace.orDefaults()
	if err := p.until(ctx, p.Node*time.Duration(len(s.nodes)), s.Agents.Open); err != nil {
		return err
	}
	return p.until(ctx, p.Node, func(ctx context.Context) (string, error) { return s.returned(ctx, b), nil })
}
