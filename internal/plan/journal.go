package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Event is what an entry tells.
type Event string

// The events. Opened is the first of every journal and Session begins each run
// or rollback; the others are about a stage or a step.
const (
	Opened    Event = "opened"
	Session   Event = "session"
	Gated     Event = "gated"     // the stage's gate let it pass
	Begun     Event = "begun"     // captured; the step may have had effects since
	Done      Event = "done"      // and verified
	Failed    Event = "failed"    // told only; the step stays where it was
	Passed    Event = "passed"    // the stage's checkpoint
	Returning Event = "returning" // the gate of the way back let the stage pass
	Undoing   Event = "undoing"   // the step may be half undone since
	Undone    Event = "undone"    // and verified
	Returned  Event = "returned"  // the checkpoint of the way back
	Closed    Event = "closed"    // nothing is resumed or undone any more
)

// Entry is one line of a journal.
type Entry struct {
	Seq   int    `json:"seq"` // from 0, without a gap
	Event Event  `json:"event"`
	Stage string `json:"stage,omitempty"`
	Step  string `json:"step,omitempty"` // its key
	// Time is the client's clock, Server the API server's by its last answer.
	Time   time.Time  `json:"time"`
	Server *time.Time `json:"server,omitempty"`
	// Record is what Begun captured.
	Record Record `json:"record,omitempty"`
	// Text is why it failed, what a gate noted, or the operator's own note.
	Text string `json:"text,omitempty"`
	// Accepted are stops that were let pass, with the operator's reasons.
	Accepted []Accepted `json:"accepted,omitempty"`
	// Of Opened and Session.
	Plan     *Opening  `json:"plan,omitempty"`
	Operator *Operator `json:"operator,omitempty"`
	Verb     string    `json:"verb,omitempty"` // run, rollback, close
}

// Opening is what a journal's first entry says of the plan.
type Opening struct {
	ID     string          `json:"id"` // the journal's
	Kind   string          `json:"kind"`
	Target string          `json:"target"`
	Digest string          `json:"digest"`
	Tool   string          `json:"tool"` // version of the program that opened it
	Inputs json.RawMessage `json:"inputs,omitempty"`
}

// Operator is who runs a plan.
type Operator struct {
	User string `json:"user"` // by the API server's word, else by the machine's
	Host string `json:"host,omitempty"`
	Tool string `json:"tool,omitempty"`
}

// Accepted is a stop that the operator let pass.
type Accepted struct {
	Rule    string `json:"rule"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Journal keeps entries, in order. An entry is there for good when Append has
// returned nil; where it fails, the entry may be there or not.
type Journal interface {
	// Append adds an entry. It wraps ErrConflict where the entry's Seq is not
	// the next one: somebody else has written. It wraps ErrFull where there is
	// no room.
	Append(context.Context, Entry) error
	// Entries are all of them. A journal that is not there yet has none.
	Entries(context.Context) ([]Entry, error)
}

// Memory is a journal that ends with its process: for tests and for dry runs.
// It is safe for concurrent use.
type Memory struct {
	mu      sync.Mutex
	entries []Entry
}

// Append is part of Journal.
func (m *Memory) Append(_ context.Context, e Entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := inOrder(e, len(m.entries)); err != nil {
		return err
	}
	m.entries = append(m.entries, e)
	return nil
}

// Entries is part of Journal.
func (m *Memory) Entries(context.Context) ([]Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.entries), nil
}

func inOrder(e Entry, next int) error {
	if e.Seq != next {
		return fmt.Errorf("entry %d (%s): the next one is %d: %w", e.Seq, e.Event, next, ErrConflict)
	}
	return nil
}

// Copied is a journal with a copy. The first one counts; the copy is brought up
// to date when it is read, and an entry is written only when it is in both.
type Copied struct{ Main, Copy Journal }

// Append is part of Journal.
func (c Copied) Append(ctx context.Context, e Entry) error {
	if err := c.Main.Append(ctx, e); err != nil {
		return err
	}
	if err := c.Copy.Append(ctx, e); err != nil {
		return fmt.Errorf("copy of the journal: %w", err)
	}
	return nil
}

// Entries is part of Journal.
func (c Copied) Entries(ctx context.Context) ([]Entry, error) {
	all, err := c.Main.Entries(ctx)
	if err != nil {
		return nil, err
	}
	have, err := c.Copy.Entries(ctx)
	if err != nil {
		return nil, fmt.Errorf("copy of the journal: %w", err)
	}
	if len(have) > len(all) || len(have) > 0 && !same(have[0], all[0]) {
		return nil, fmt.Errorf("copy of the journal: it is of another run; name another file: %w", ErrChanged)
	}
	for _, e := range all[len(have):] {
		if err := c.Copy.Append(ctx, e); err != nil {
			return nil, fmt.Errorf("copy of the journal: %w", err)
		}
	}
	return all, nil
}

// same holds for first entries of the same journal.
func same(a, b Entry) bool {
	return a.Plan != nil && b.Plan != nil && a.Plan.ID == b.Plan.ID && a.Plan.Digest == b.Plan.Digest
}
