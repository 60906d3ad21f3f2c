// Package rules explains rules: what each means, how to prove it by hand, what
// to do, and what is read to judge it. The command explain prints it, and the
// pages of docs/rules are written from it.
package rules

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/internal/evidence"
	"github.com/kubectl-kpr/kubectl-kpr/internal/words"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/checks"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

//go:generate go run ./gen

// Entry is a rule with what judges it.
type Entry struct {
	*diag.Rule
	Check *diag.Check // nil for rules that no check of the list has
	Reads []Read
}

// Read is evidence that the rule's check reads.
type Read struct {
	Topic source.Topic
	How   string // the command or API path; "" if only recordings hold it
	Needs string // "Cilium 1.18 or later", "--host"
	Must  bool   // without it there is no verdict
}

// All lists every rule, sorted by name.
func All() []Entry {
	all := checks.All()
	var out []Entry
	for _, r := range checks.Rules() {
		e := Entry{Rule: r}
		if i := slices.IndexFunc(all, func(c *diag.Check) bool { return slices.Contains(c.Rules, r) }); i >= 0 {
			e.Check = all[i]
			e.Reads = reads(all[i])
		}
		out = append(out, e)
	}
	return out
}

// Find finds a rule by its name, however it is spelt.
func Find(name string) (Entry, bool) {
	name = strings.ReplaceAll(strings.ToLower(name), "_", "-")
	all := All()
	i := slices.IndexFunc(all, func(e Entry) bool { return e.Name == name })
	if i < 0 {
		return Entry{}, false
	}
	return all[i], true
}

// Near lists names that may have been meant, best first.
func Near(name string) []string {
	name = strings.ReplaceAll(strings.ToLower(name), "_", "-")
	type guess struct {
		name string
		far  int
	}
	var guesses []guess
	for _, e := range All() {
		far := words.Edits(name, e.Name)
		if name != "" && strings.Contains(e.Name, name) {
			far = 0
		}
		if far <= max(2, len(name)/3) {
			guesses = append(guesses, guess{e.Name, far})
		}
	}
	slices.SortStableFunc(guesses, func(a, b guess) int { return cmp.Compare(a.far, b.far) })
	var out []string
	for _, g := range guesses[:min(len(guesses), 5)] {
		out = append(out, g.name)
	}
	return out
}

func reads(c *diag.Check) []Read {
	var out []Read
	add := func(topics []source.Topic, must bool) {
		for _, t := range topics {
			if i := slices.IndexFunc(out, func(r Read) bool { return r.Topic == t }); i >= 0 {
				continue
			}
			it, ok := evidence.Of(t)
			if !ok {
				continue
			}
			out = append(out, Read{Topic: t, How: it.Live, Needs: it.Needs, Must: must})
		}
	}
	for _, n := range c.Needs {
		add(n.Topics(), true)
	}
	for _, n := range c.Wants {
		add(n.Topics(), false)
	}
	slices.SortStableFunc(out, func(a, b Read) int { return cmp.Compare(a.Topic, b.Topic) })
	return out
}
