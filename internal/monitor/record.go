package monitor

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
)

// Target is a pod that is watched.
type Target struct {
	Pod      string // namespace/name
	Node     string
	IPs      []netip.Addr
	Endpoint int
}

// Record is an event with names. It is one line of -o json.
type Record struct {
	Time     time.Time `json:"time"` // when it was read here
	Node     string    `json:"node"`
	Pod      string    `json:"pod"`
	FromName string    `json:"fromName,omitempty"`
	ToName   string    `json:"toName,omitempty"`
	// Services have the destination, or of an answer the source, as a backend.
	Services []string `json:"services,omitempty"`
	agent.Event
}

// Bad holds for what a policy or the datapath did not let through. What a
// kernel sends to find its neighbours never leaves a pod, and nobody misses it.
func (r Record) Bad() bool {
	switch r.Kind {
	case agent.Verdict:
		return r.Action == "deny"
	case agent.Dropped:
		return !r.From.Addr().IsLinkLocalUnicast() || !r.To.Addr().IsMulticast()
	}
	return false
}

// Name makes a record of an event of a target.
func (n *Names) Name(ctx context.Context, t Target, e agent.Event, at time.Time) Record {
	r := Record{Time: at, Node: t.Node, Pod: t.Pod, Event: e}
	if e.From.IsValid() {
		r.FromName = n.Of(ctx, e.From)
	}
	if e.To.IsValid() {
		r.ToName = n.Of(ctx, e.To)
	}
	if r.Services = n.Behind(e.To); len(r.Services) == 0 {
		r.Services = n.Behind(e.From)
	}
	return r
}

// Word is the record's first word: what became of the packet.
func (r Record) Word() string {
	switch r.Kind {
	case agent.Dropped:
		return "DROP"
	case agent.Verdict:
		return strings.ToUpper(r.Action)
	case agent.Translation:
		return "socket"
	case agent.Lost:
		return "lost"
	}
	return cmp.Or(r.State, "packet")
}

// Says is the record in words, without time and place.
func (r Record) Says() string {
	switch r.Kind {
	case agent.Lost:
		return fmt.Sprintf("the monitor could not keep up: %d events are missing", r.Count)
	case agent.Translation:
		return strings.TrimSpace(fmt.Sprintf("%s dials %s%s %s", r.Phase, r.To, named(r.ToName), r.Protocol))
	}
	s := fmt.Sprintf("%s%s -> %s%s %s", end(r.From), named(r.FromName), end(r.To), named(r.ToName), strings.TrimSpace(r.Protocol+" "+r.Flags))
	switch r.Kind {
	case agent.Dropped:
		s = r.Reason + ": " + s
		if r.Identities != "" {
			s += ", identities " + r.Identities
		}
	case agent.Verdict:
		s = r.Direction + ": " + s + ", matched " + r.Match
		if p := peer(r.Remote); p != "" {
			s += ", the other end is " + p
		}
	case agent.Traced:
		s = r.Point + ": " + s
	}
	if len(r.Services) > 0 {
		s += ", backend of " + few(r.Services)
	}
	return s
}

func end(at netip.AddrPort) string {
	if at.Port() == 0 {
		return at.Addr().String()
	}
	return at.String()
}

func named(name string) string {
	if name == "" {
		return ""
	}
	return " (" + name + ")"
}

func few(all []string) string {
	if len(all) > 3 {
		return strings.Join(all[:3], ", ") + fmt.Sprintf(" +%d more", len(all)-3)
	}
	return strings.Join(all, ", ")
}

// Sum counts what was seen.
type Sum struct {
	Events, Unread, Missing int
	Kinds                   map[agent.EventKind]int
	Denied                  []Tally // most first
}

// Tally is how often something was not let through.
type Tally struct {
	Says  string
	Pod   string
	Count int
}

// NewSum is an empty sum.
func NewSum() *Sum { return &Sum{Kinds: map[agent.EventKind]int{}} }

// Add counts a record.
func (s *Sum) Add(r Record) {
	if r.Kind == agent.Lost {
		s.Missing += r.Count
		return
	}
	s.Events++
	s.Kinds[r.Kind]++
	if !r.Bad() {
		return
	}
	what := r.Reason
	if r.Kind == agent.Verdict {
		what = "denied by policy, " + r.Direction
	}
	to := end(r.To)
	if r.ToName != "" {
		to = r.ToName + fmt.Sprintf(":%d", r.To.Port())
	}
	from := cmp.Or(r.FromName, r.From.Addr().String())
	says := fmt.Sprintf("%s: %s -> %s %s", what, from, to, r.Protocol)
	i := slices.IndexFunc(s.Denied, func(t Tally) bool { return t.Says == says })
	if i < 0 {
		i = len(s.Denied)
		s.Denied = append(s.Denied, Tally{Says: says, Pod: r.Pod})
	}
	s.Denied[i].Count++
}

// Sorted are what was not let through, most first.
func (s *Sum) Sorted() []Tally {
	out := slices.Clone(s.Denied)
	slices.SortStableFunc(out, func(a, b Tally) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Says, b.Says)) })
	return out
}
