package service

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// claim names the rule that a difference between the API and an agent belongs
// to, "" where it is as it should be.
func claim(v *fact.View, d lb.Delta) string {
	switch {
	case d.Expected != "":
		return ""
	case mixedProtocols(v, d) || sharedRow(v, d):
		return protocol.Name
	case byTopology(v, d):
		return topology.Name
	case d.Cause == lb.Contended:
		return conflict.Name
	}
	switch d.Kind {
	case lb.BackendMissing:
		return missing.Name
	case lb.BackendExtra:
		return stale.Name
	case lb.BackendLost, lb.CountDiffers:
		return unwritten.Name // the maps stood in for the agent
	case lb.StateDiffers:
		return state.Name
	case lb.FrontendMissing:
		return frontendMissing.Name
	case lb.FrontendExtra:
		return stale.Name
	case lb.FlagDiffers:
		return claimFlag(d)
	}
	return ""
}

// claimFlag names the rule that a setting of a frontend belongs to.
func claimFlag(d lb.Delta) string {
	switch {
	case strings.Contains(d.Detail, "affinity"):
		return affinity.Name
	case strings.Contains(d.Detail, "source"):
		return sourceRange.Name
	}
	return ""
}

// fault is one backend, or one frontend, of a Service that is wrong on a node,
// with every frontend on which it is.
type fault struct {
	service lb.Name
	what    lb.Address // the backend; the frontend where the fault is the frontend's
	deltas  []lb.Delta
}

// faults joins the deltas that pick chooses by Service and backend.
func faults(ds []lb.Delta, pick func(lb.Delta) bool) []fault {
	type at struct {
		service lb.Name
		what    lb.Address
	}
	index := map[at]int{}
	var out []fault
	for _, d := range ds {
		if !pick(d) {
			continue
		}
		what := d.Backend
		if !what.IP.IsValid() {
			what = d.Frontend
		}
		k := at{d.Service, what}
		i, ok := index[k]
		if !ok {
			i = len(out)
			index[k] = i
			out = append(out, fault{service: d.Service, what: what})
		}
		out[i].deltas = append(out[i].deltas, d)
	}
	return out
}

// subject names the Service, or the frontend where nobody is known to own it.
func (f fault) subject() string {
	if f.service == (lb.Name{}) {
		return "frontend/" + f.deltas[0].Frontend.String()
	}
	return "service/" + f.service.String()
}

// on lists the frontends: "10.96.0.1:443/TCP, 0.0.0.0:30080/TCP".
func (f fault) on() string {
	var names []string
	for _, d := range f.deltas {
		if s := d.Frontend.String(); !slices.Contains(names, s) {
			names = append(names, s)
		}
	}
	return listed(names)
}

// maxNamed bounds what one message lists.
const maxNamed = 20

func listed(names []string) string {
	if len(names) > maxNamed {
		return fmt.Sprintf("%s +%d more", strings.Join(names[:maxNamed], ", "), len(names)-maxNamed)
	}
	return strings.Join(names, ", ")
}

// report is the finding about a fault.
func (f fault) report(severity diag.Severity, message string, proof ...fact.Named) diag.Report {
	r := diag.Report{
		Subject: f.subject(), Address: f.what.String(), Severity: severity, Message: message, Proof: proof,
	}
	if f.service != (lb.Name{}) {
		r.Next = []string{"kubectl", "kpr", "trace", "svc/" + f.service.Name, "-n", f.service.Namespace}
	}
	return r
}

// ofNode is what the checks that compare the API with an agent have in common.
func ofNode(name, doc string, rule *diag.Rule, run func(*diag.Pass) error) *diag.Check {
	return &diag.Check{
		Name: name, Doc: doc, Scope: diag.OfNode, Rules: []*diag.Rule{rule},
		Needs:   []fact.Named{fact.Behind},
		Wants:   []fact.Named{fact.AgentOf, fact.Held, fact.Desired, fact.Capabilities},
		Applies: noAgentMeant,
		Run:     run,
	}
}

func noAgentMeant(v *fact.View) string {
	if a, err := fact.AgentOf.From(v); err == nil && a.Life == fact.Unwanted {
		return a.Reason
	}
	return ""
}
