package diag

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// Scope says how often a check runs.
type Scope uint8

// The scopes: once, or once for each node.
const (
	OfCluster Scope = iota
	OfNode
)

// Check is one question to the cluster.
type Check struct {
	Name  string
	Doc   string
	Scope Scope
	Rules []*Rule
	// Needs are the facts without which there is no verdict.
	Needs []fact.Named
	// Wants are facts that sharpen the verdict.
	Wants []fact.Named
	// Applies, if set, is asked first; a reason makes the check not applicable.
	// It may read what the check needs or wants.
	Applies func(*fact.View) (reason string)
	Run     func(*Pass) error
}

// Facts are all facts that the check may read.
func (c *Check) Facts() []fact.Named { return append(slices.Clone(c.Needs), c.Wants...) }

// Result is what became of one check.
type Result struct {
	Check    *Check
	Outcome  Outcome
	Findings []Finding
	Gaps     []Gap
	Notes    []string
	Reads    []fact.ID // facts read directly, sorted: declared ones, or the check has a fault
}

// Pass is one run of a check, over the cluster or over one node.
type Pass struct {
	check *Check
	view  *fact.View
	node  string
	res   *Result
	na    bool
	ok    bool
}

// View shows the facts, from the node for checks of nodes.
func (p *Pass) View() *fact.View { return p.view }

// Node is the node being checked, "" for checks of the cluster.
func (p *Pass) Node() string { return p.node }

// On is the same pass, speaking of one node: for checks of the cluster that
// walk over nodes.
func (p *Pass) On(node string) *Pass {
	q := *p
	q.node, q.view = node, p.view.On(node)
	return &q
}

// Report is how a check describes a finding.
type Report struct {
	Subject  string
	Address  string // what tells two findings of one rule and subject apart, else ""
	Severity Severity
	Message  string
	Next     []string
	Proof    []fact.Named // the facts whose evidence proves it
}

// Find reports a broken rule. The rule has to be one of the check's.
func (p *Pass) Find(rule *Rule, r Report) {
	f := Finding{
		Key: key(rule.Name, r.Subject, p.node, r.Address), Rule: rule, Severity: r.Severity,
		Subject: r.Subject, Node: p.node, Address: r.Address, Message: r.Message, Next: r.Next,
	}
	for _, k := range r.Proof {
		f.Refs = append(f.Refs, p.view.Refs(k)...)
	}
	p.res.Findings = append(p.res.Findings, f)
}

// Unknown says that what could not be had, so the check has no full verdict.
func (p *Pass) Unknown(what fact.ID, err error) {
	topic, reason := plain(err, p.node)
	p.res.Gaps = append(p.res.Gaps, Gap{
		What: what, Topic: topic, Node: p.node, Class: class(err), Reason: reason, Checks: []string{p.check.Name},
	})
}

// Reason is an error of a node in words that do not name the node, so that one
// reason for many nodes can be told once.
func Reason(err error, node string) string {
	topic, reason := plain(err, node)
	if topic == "" {
		return reason
	}
	return string(topic) + ": " + reason
}

// plain takes apart what a source says of a query, "TOPIC on NODE: REASON", so
// that one reason for several topics and nodes can be told once.
func plain(err error, node string) (source.Topic, string) {
	text := strings.ReplaceAll(err.Error(), "\n", "; ")
	if node != "" {
		text = strings.ReplaceAll(strings.ReplaceAll(text, " on "+node+":", ":"), " of "+node+":", ":")
	}
	head, rest, ok := strings.Cut(text, ": ")
	if _, known := source.SpecOf(source.Topic(head)); ok && known {
		return source.Topic(head), rest
	}
	return "", text
}

// Note adds a remark that changes no verdict.
func (p *Pass) Note(format string, args ...any) {
	p.res.Notes = append(p.res.Notes, fmt.Sprintf(format, args...))
}

// class is the class of a source's error, or "undecided" where evidence was
// read and gave no answer.
func class(err error) string {
	for _, known := range []error{source.ErrAbsent, source.ErrForbidden, source.ErrUnreachable, source.ErrCut} {
		if errors.Is(err, known) {
			return string(source.ClassOf(err))
		}
	}
	return "undecided"
}

// Judge runs a check over the facts of a store.
func Judge(c *Check, s *fact.Store) Result {
	res := Result{Check: c}
	cluster := s.Cluster().Watched(func(id fact.ID) { res.Reads = append(res.Reads, id) })
	var passes []*Pass
	if c.Scope == OfCluster {
		passes = append(passes, &Pass{check: c, view: cluster, res: &res})
	} else {
		for _, n := range cluster.Nodes() {
			passes = append(passes, &Pass{check: c, view: cluster.On(n.Name), node: n.Name, res: &res})
		}
	}
	for _, p := range passes {
		p.run()
	}
	slices.Sort(res.Reads)
	res.Reads = slices.Compact(res.Reads)
	res.Outcome = outcome(&res, passes)
	return res
}

func (p *Pass) run() {
	gaps := len(p.res.Gaps)
	if p.check.Applies != nil {
		if reason := p.check.Applies(p.view); reason != "" {
			p.na = true
			return
		}
	}
	for _, need := range p.check.Needs {
		if err := p.view.Err(need); err != nil {
			p.Unknown(need.ID(), err)
		}
	}
	if len(p.res.Gaps) > gaps {
		return
	}
	if err := p.check.Run(p); err != nil {
		p.Unknown(fact.ID(p.check.Name), err)
	}
	p.ok = len(p.res.Gaps) == gaps
}

func outcome(res *Result, passes []*Pass) Outcome {
	switch {
	case len(res.Findings) > 0:
		return Found
	case len(res.Gaps) > 0:
		return Unknown
	case slices.ContainsFunc(passes, func(p *Pass) bool { return p.ok }):
		return OK
	case len(passes) == 0 && res.Check.Scope == OfNode:
		return Unknown
	}
	return NotApplicable
}

// Valid tells what is wrong with the declaration of a check: it is for the
// tests of those who write checks.
func (c *Check) Valid() error {
	var faults []string
	if c.Name == "" || c.Doc == "" || c.Run == nil {
		faults = append(faults, "name, doc and run are needed")
	}
	if len(c.Rules) == 0 {
		faults = append(faults, "it has no rule")
	}
	for _, r := range c.Rules {
		if r.Title == "" || r.Doc == "" || r.Remedy == "" {
			faults = append(faults, "rule "+r.Name+" lacks title, doc or remedy")
		}
	}
	for _, n := range c.Facts() {
		if c.Scope == OfCluster && n.PerNode() && slices.Contains(c.Needs, n) {
			faults = append(faults, string(n.ID())+" is a fact of nodes, a check of the cluster cannot need it")
		}
	}
	if len(faults) > 0 {
		return fmt.Errorf("check %q: %s", c.Name, strings.Join(faults, "; "))
	}
	return nil
}
