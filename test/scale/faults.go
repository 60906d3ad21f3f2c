package main

import (
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/internal/live/livetest"
)

// faults are how many nodes misbehave in which way. They are taken from the
// last node on, each node has one.
type faults struct {
	slow      int // answers after a minute
	hung      int // the connection stands and nothing comes
	cut       int // the connection breaks in the middle, on the first exec only
	forbidden int // pods/exec is refused
	lost      int // a backend is missing in the backend map
	stale     int // agent and map hold a backend that no endpoint has
}

func (f faults) sum() int { return f.slow + f.hung + f.cut + f.forbidden + f.lost + f.stale }

// of says what is wrong with a node.
func (f faults) of(nodes, node int) string {
	at := nodes - 1 - node
	for _, kind := range []struct {
		name  string
		count int
	}{{"slow", f.slow}, {"hung", f.hung}, {"cut", f.cut}, {"forbidden", f.forbidden}, {"lost", f.lost}, {"stale", f.stale}} {
		if at < kind.count {
			return kind.name
		}
		at -= kind.count
	}
	return ""
}

func (f faults) delay(nodes, node int) time.Duration {
	if f.of(nodes, node) == "slow" {
		return time.Minute
	}
	return 0
}

// damage is to the Services that are not Local, so that it is the same on all
// nodes that have it.
func (f faults) damage(w world, node int) damage {
	const service = 20 // a NodePort, which has rows at node addresses
	switch f.of(w.nodes, node) {
	case "lost":
		return damage{lost: 100 + service*w.backends}
	case "stale":
		return damage{stale: service}
	}
	return damage{}
}

// arm gives an agent its fault.
func (f faults) arm(a *livetest.Agent, nodes, node int) {
	switch f.of(nodes, node) {
	case "hung":
		a.Fault = livetest.Hang
	case "forbidden":
		a.Fault = livetest.Refuse
	case "cut":
		a.Fault, a.Faults, a.BreakAfter = livetest.Break, 1, 20_000
	}
}
