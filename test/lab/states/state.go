// Package states holds the states the lab can be brought into, healthy ones
// and faults, each a value. A fault is entered on a healthy base and left
// again before the next, so any state is reached from any other.
package states

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/kubectl-kpr/kubectl-kpr/test/lab/cluster"
)

// State is one condition of the cluster.
type State struct {
	Name string
	Doc  string
	Base cluster.Base
	// Enter and Leave make and unmake the fault; nil for a healthy state. Leave
	// must also do after an Enter that failed half way.
	Enter, Leave func(context.Context, *cluster.Lab) error
	Expect       Expect
}

// Expect is what the plugin's check must say of a state.
type Expect struct {
	Exit int `json:"exit"`
	// Rule, Node and Subject are of the finding that must be there; Rule may be
	// one that is not built yet. An empty Node or Subject is not compared.
	Rule    string `json:"rule,omitempty"`
	Node    string `json:"node,omitempty"`
	Subject string `json:"subject,omitempty"`
	// Flags are what check takes to see it, beyond those of a healthy cluster.
	Flags []string `json:"flags,omitempty"`
	// Rules of errors that may be there beside it.
	Also []string `json:"also,omitempty"`
}

// All lists the states, healthy ones first.
func All() []State {
	return slices.Concat(bases(), agentFaults(), mapFaults(), serviceFaults(), configFaults(), networkFaults(), otherStates())
}

// Find finds a state by name.
func Find(name string) (State, error) {
	for _, s := range All() {
		if s.Name == name {
			return s, nil
		}
	}
	return State{}, fmt.Errorf("state %q: no such state; kpr-lab states lists them", name)
}

const file = "state.json"

type entered struct {
	Name string `json:"name"`
}

// Current is the name of the present state, "" before the first.
func Current(l *cluster.Lab) (string, error) {
	data, err := os.ReadFile(l.Dirs.Under(file))
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var e entered
	err = json.Unmarshal(data, &e)
	return e.Name, err
}

// Enter leaves the present state and brings the cluster into the one of that
// name.
func Enter(ctx context.Context, l *cluster.Lab, name string) error {
	next, err := Find(name)
	if err != nil {
		return err
	}
	now, err := Current(l)
	if err != nil {
		return err
	}
	if now != "" {
		if old, err := Find(now); err == nil && old.Leave != nil {
			if err := old.Leave(ctx, l); err != nil {
				return fmt.Errorf("state %s: not left: %w", now, err)
			}
			l.Say("left %s", now)
		}
	}
	base, err := l.Base()
	if err != nil {
		return err
	}
	if !base.Equal(next.Base) {
		if err := l.Converge(ctx, next.Base); err != nil {
			return fmt.Errorf("state %s: %w", name, err)
		}
	}
	// Written first: a fault that was made half way is to be left as well.
	data, err := json.Marshal(entered{Name: name})
	if err == nil {
		err = os.WriteFile(l.Dirs.Under(file), data, 0o644)
	}
	if err == nil && next.Enter != nil {
		err = next.Enter(ctx, l)
	}
	if err != nil {
		return fmt.Errorf("state %s: %w", name, err)
	}
	l.Say("entered %s", name)
	return nil
}
