package diag

import (
	"fmt"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// Severity is how bad a finding is.
type Severity uint8

// The severities, in rising order.
const (
	Info Severity = iota
	Warning
	Error
)

// String is "info", "warning" or "error".
func (s Severity) String() string { return [...]string{"info", "warning", "error"}[min(s, Error)] }

// ParseSeverity reads the word that String gives.
func ParseSeverity(s string) (Severity, error) {
	for _, v := range []Severity{Info, Warning, Error} {
		if s == v.String() {
			return v, nil
		}
	}
	return 0, fmt.Errorf("severity %q: want info, warning or error", s)
}

// Rule is one thing that can be wrong. Its name is stable: waivers, baselines
// and scripts use it.
type Rule struct {
	Name     string
	Severity Severity // the usual one; a finding may say otherwise
	Title    string   // what is wrong, in a line
	Doc      string   // what it means and how it comes about, in paragraphs
	Proof    []string // commands that prove it by hand
	Remedy   string   // what to do
	Sources  []string // public reports and documents behind it: "cilium/cilium#28094"
	// Settles says that what changes by itself may look like it: on a running
	// cluster a finding counts only when a second look has it too.
	Settles bool
}

// Finding is a rule found broken.
type Finding struct {
	Key      string // rule, subject, node and address: the same fault has the same key in every run
	Rule     *Rule
	Severity Severity
	Subject  string // "node/w-1", "service/shop/web", "daemonset/kube-system/cilium", "cluster"
	Node     string // where it shows, "" if it is of the cluster
	Address  string // the backend or frontend it is about, "" if none
	Message  string
	Next     []string // argv of a command that leads on, shell-quoted when printed
	Refs     []fact.Ref
}

// key builds a finding's stable key. Its parts cannot hold a '|': they are
// names of Kubernetes objects, addresses and rules.
func key(parts ...string) string { return strings.Join(parts, "|") }

// Outcome is how a check ended.
type Outcome uint8

// The outcomes.
const (
	OK Outcome = iota
	Found
	NotApplicable
	Unknown
)

// String is the outcome in the words of reports.
func (o Outcome) String() string {
	return [...]string{"ok", "found", "not applicable", "unknown"}[min(o, Unknown)]
}

// Gap is something that a verdict needed and that could not be had.
type Gap struct {
	What   fact.ID
	Topic  source.Topic // the evidence that is missing, "" where it is not that simple
	Node   string
	Class  string   // absent, forbidden, unreachable, cut, agent-down or undecided
	Reason string   // without topic and node
	Checks []string // the checks that are unknown because of it
}
