package diag

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// Incomplete is the rule that every check shares: it is broken where evidence
// for a verdict is missing.
var Incomplete = &Rule{
	Name: "incomplete", Severity: Warning,
	Title: "evidence for a verdict is missing",
	Doc: `Something that a check needs could not be read, so the check has no verdict there.
That is neither good nor bad news: the exit code is 3 unless something else was found.

The message says what is missing, why, and which checks stay without an answer. The
usual reasons are a node whose agent does not run, a node that did not answer in time,
a permission that the user lacks, or a snapshot that does not hold the evidence.`,
	Proof:  []string{"kubectl kpr check -o json | jq .gaps"},
	Remedy: "Remove the reason that the message names, then look again. With a snapshot, record it anew: kubectl kpr snapshot.",
}

var incompleteCheck = &Check{
	Name: "incomplete", Doc: "evidence needed for a verdict could not be read",
	Rules: []*Rule{Incomplete}, Run: func(*Pass) error { return nil },
}

// incomplete turns the gaps of all checks into one finding for each node, and
// one for the cluster.
func incomplete(results []Result) Result {
	res := Result{Check: incompleteCheck}
	byNode := map[string][]Gap{}
	var nodes []string
	for _, g := range Gaps(results) {
		if byNode[g.Node] == nil {
			nodes = append(nodes, g.Node)
		}
		byNode[g.Node] = append(byNode[g.Node], g)
	}
	for _, node := range nodes {
		var why, checks []string
		topics := map[string][]string{}
		for _, g := range byNode[node] {
			why = append(why, g.Reason)
			topics[g.Reason] = append(topics[g.Reason], string(g.Topic))
			checks = append(checks, g.Checks...)
		}
		why = unique(why)
		for i, reason := range why { // one reason often concerns several topics
			if of := slices.DeleteFunc(unique(topics[reason]), func(t string) bool { return t == "" }); len(of) > 0 {
				why[i] = strings.Join(of, ", ") + ": " + reason
			}
		}
		f := Finding{Rule: Incomplete, Severity: Warning, Node: node, Subject: "cluster"}
		if node != "" {
			f.Subject = "node/" + node
		}
		f.Key = key(Incomplete.Name, f.Subject, node, "")
		f.Message = fmt.Sprintf("no verdict of %s: %s", strings.Join(unique(checks), ", "), strings.Join(why, "; "))
		res.Findings = append(res.Findings, f)
	}
	if len(res.Findings) > 0 {
		res.Outcome = Found
	}
	return res
}

// unlisted is the result of a list of nodes that may not be whole.
func unlisted(err error) Result {
	c := &Check{Name: "nodes", Doc: "the list of nodes is whole", Rules: []*Rule{Incomplete}}
	return Result{Check: c, Outcome: Unknown, Gaps: []Gap{{What: "nodes", Topic: source.Nodes, Class: class(err), Reason: err.Error(), Checks: []string{c.Name}}}}
}

// Gaps merges the gaps of several checks: what is missing is listed once for
// each node, with every check that it concerns, sorted by node.
func Gaps(results []Result) []Gap {
	type at struct {
		what fact.ID
		node string
	}
	merged := map[at]int{}
	var out []Gap
	for _, r := range results {
		for _, g := range r.Gaps {
			i, seen := merged[at{g.What, g.Node}]
			if !seen {
				merged[at{g.What, g.Node}] = len(out)
				g.Checks = slices.Clone(g.Checks)
				out = append(out, g)
				continue
			}
			out[i].Checks = unique(append(out[i].Checks, g.Checks...))
		}
	}
	slices.SortStableFunc(out, func(a, b Gap) int { return strings.Compare(a.Node, b.Node) })
	return out
}

// unique keeps the first of equal strings, in order.
func unique(in []string) []string {
	var out []string
	for _, s := range in {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
