package service

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// conflict is the rule about addresses that two owners want.
var conflict = &diag.Rule{
	Name: "frontend-conflict", Severity: diag.Error,
	Title: "two owners claim one address, port and protocol",
	Doc: `Two Services, or a Service and a pod's host port, ask for the same address, port and protocol: two externalIPs,
an externalIP that is another Service's LoadBalancer address, a host port on a node address that a balancer
handed out as its own. The maps hold one row for it, so the other gets none of its traffic, and which of them it
is can change when either is written again.

From 1.20 on an address's own frontend wins over NodePorts and host ports of the node; before, the latter
overwrite it every half hour. k3s and RKE2 make such pairs on purpose, a host port and a LoadBalancer address of
one and the same Service: these are told as information.

A host port can also be held by the pod that had it before, of the same name: the agent's log says that the
frontend is already owned by another service.`,
	Proof: []string{
		"kubectl get services -A -o wide",
		"kubectl kpr exec NODE -- cilium-dbg service list",
	},
	Remedy: `Give one of the two another address or port. Where a pod that is gone still owns the frontend, restart the agent of
the node.`,
}

// Conflict checks that each address, port and protocol has one owner.
func Conflict() *diag.Check {
	return &diag.Check{
		Name: conflict.Name, Doc: "each address, port and protocol has one owner",
		Scope: diag.OfNode, Rules: []*diag.Rule{conflict},
		Needs:   []fact.Named{fact.Asked},
		Wants:   []fact.Named{fact.AgentOf, fact.Held, fact.KernelTable, fact.Capabilities, fact.AgentLog},
		Applies: noAgentMeant,
		Run:     judgeConflicts,
	}
}

// contest is one address with all that want it.
type contest struct {
	at     lb.Address
	claims []lb.Claim
	// yields: one of the claims is a NodePort or host port, which answers on all
	// of the node's addresses.
	yields bool
}

func judgeConflicts(p *diag.Pass) error {
	v := p.View()
	want, _ := fact.Asked.From(v)
	list, listErr := fact.Held.From(v)
	held, err := fact.KernelTable.From(v)
	if err != nil {
		held = list
	}
	can, _ := fact.Capabilities.From(v)
	for _, c := range contests(want, held, list) {
		winner := c.winner(held)
		r := diag.Report{
			Subject: "service/" + c.claims[0].Service.String(), Address: c.at.String(), Severity: diag.Error,
			Message: fmt.Sprintf("%s is claimed by %s", c.at, c.owners()), Proof: []fact.Named{fact.Asked, fact.Held},
		}
		switch {
		case c.balancerPod():
			r.Severity = diag.Info
			r.Message += "; these are the Service and its own balancer pod, so both lead to it"
		case c.yields && can.NodesSpared == lb.Yes && winner != "HostPort" && winner != "NodePort":
			r.Severity = diag.Info
			r.Message += "; the address's own frontend wins, the other answers on the node's other addresses"
		case winner != "":
			r.Message += fmt.Sprintf("; the node serves the %s there, and the other gets no traffic", winner)
		default:
			r.Message += "; only one of them is served there"
		}
		p.Find(conflict, r)
	}
	ownedByOthers(p)
	if listErr != nil && len(want.Rows) > 0 {
		p.Unknown(fact.Held.ID(), listErr) // host ports of pods that were not read
	}
	return nil
}

// contests are those that the API shows, and those that the node does: host
// ports of pods that were not read.
func contests(want, held, list lb.Table) []contest {
	var out []contest
	for _, r := range want.Rows {
		switch {
		case r.Address.Scope != lb.External:
		case len(r.Claims) > 1:
			yields := slices.ContainsFunc(r.Claims, func(c lb.Claim) bool { return everywhere(c.Type) })
			out = append(out, contest{r.Address, r.Claims, yields && !r.Address.Surrogate()})
		case r.Type == "LoadBalancer" || r.Type == "ExternalIPs":
			for _, t := range []lb.Table{held, list} {
				other, ok := intruder(t, r)
				if !ok {
					continue
				}
				out = append(out, contest{r.Address, []lb.Claim{{Service: r.Service, Type: r.Type}, {Service: intruderOf(want, other), Type: other.Type}}, true})
				break
			}
		}
	}
	return out
}

func everywhere(typ string) bool { return typ == "NodePort" || typ == "HostPort" }

// intruderOf is who has the row, the zero Name for the host port of a pod that
// was not read.
func intruderOf(want lb.Table, r lb.Row) lb.Name {
	if r.Service != (lb.Name{}) || r.Type == "HostPort" {
		return r.Service
	}
	r.Address.IP = unspecified(r.Address.IP)
	return ownerOf(want, r)
}

// intruder finds the NodePort or host port that stands at a Service's own
// address, or at this port of all of the node's addresses. The latter says
// nothing of an address that is not the node's; where that has rows of such a
// kind, it is.
func intruder(t lb.Table, r lb.Row) (lb.Row, bool) {
	if at, ok := find(t, r.Address); ok && everywhere(at.Type) {
		return at, true
	}
	all := r.Address
	all.IP = unspecified(all.IP)
	other, ok := find(t, all)
	if !ok || !everywhere(other.Type) || other.Service == r.Service && r.Service != (lb.Name{}) {
		return lb.Row{}, false
	}
	own := slices.ContainsFunc(t.Rows, func(o lb.Row) bool { return o.Expansion && o.Address.IP == r.Address.IP })
	return other, own
}

func (c contest) owners() string {
	owners := make([]string, len(c.claims))
	for i, claim := range c.claims {
		owners[i] = claim.Type + " of " + claim.Service.String()
		if claim.Service == (lb.Name{}) {
			owners[i] = "the " + claim.Type + " of a pod"
		}
	}
	return strings.Join(owners, " and by ")
}

// balancerPod holds for a Service and the pod that ServiceLB of k3s and RKE2
// runs for it: svclb-NAME-…, with a host port for each of its ports.
func (c contest) balancerPod() bool {
	if len(c.claims) != 2 {
		return false
	}
	a, b := c.claims[0], c.claims[1]
	if a.Type == "HostPort" {
		a, b = b, a
	}
	return a.Type == "LoadBalancer" && b.Type == "HostPort" && strings.HasPrefix(b.Service.Name, "svclb-"+a.Service.Name+"-")
}

// winner is the type that the node serves at the address, if that tells the
// owners apart.
func (c contest) winner(held lb.Table) string {
	r, ok := find(held, c.at)
	n := 0
	for _, claim := range c.claims {
		if claim.Type == r.Type {
			n++
		}
	}
	if !ok || n != 1 {
		return ""
	}
	return r.Type
}

// owned is what an agent logs, twice a second, while a frontend belongs to a
// Service or host port that it still keeps.
var owned = regexp.MustCompile(`frontend already owned by another service: (\S+) is owned by ([^\s:"]+/[^\s:"]+)`)

func ownedByOthers(p *diag.Pass) {
	log, _ := fact.AgentLog.From(p.View())
	seen := map[string]bool{}
	for _, line := range log {
		m := owned.FindStringSubmatch(line.Message + " " + line.Error())
		if m == nil || seen[m[1]] || len(seen) == maxNamed {
			continue
		}
		at, err := lb.ParseAddress(m[1])
		if err != nil {
			continue
		}
		seen[m[1]] = true
		p.Find(conflict, diag.Report{
			Subject: "service/" + m[2], Address: at.String(), Severity: diag.Error, Proof: []fact.Named{fact.AgentLog},
			Message: fmt.Sprintf("the agent keeps %s for %s and refuses it to the one that claims it now: connections to it go to the old owner", at, m[2]),
		})
	}
}
