package service

import (
	"fmt"
	"slices"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// regression is the rule about known bugs of the version that runs.
var regression = &diag.Rule{
	Name: "known-regression", Severity: diag.Warning,
	Title: "this version of Cilium has a known bug that something here can hit",
	Doc: `A short table holds bugs of Cilium that were reported in public, each with the versions that have it and the
first that is fixed. A bug is told only where this cluster has what it takes: a Service, a row or a setting of the
kind that it befell others with. That it can strike does not mean that it has.

The table is dated; a version that is not in it is not a version without bugs. Where no fixed version is named,
none was known when the table was written.`,
	Proof: []string{
		"kubectl kpr exec NODE -- cilium-dbg version",
		"the issue that the message names, at https://github.com/cilium/cilium/issues",
	},
	Remedy: `Go to the version that the message names, or to a later one of the same minor. Where there is none, read the issue for
what others did in the meantime.`,
}

// Regression tells of known bugs that the objects of this cluster can hit.
func Regression() *diag.Check {
	return &diag.Check{
		Name: regression.Name, Doc: "no object here can hit a known bug of the version that runs",
		Scope: diag.OfNode, Rules: []*diag.Rule{regression},
		Needs: []fact.Named{fact.Bugs},
		Wants: []fact.Named{
			fact.AgentOf, fact.AgentVersion, fact.Desired, fact.Held, fact.KernelTable, fact.Behind, fact.NodeView,
			fact.Capabilities, fact.KubeProxy, fact.APIServer,
		},
		Applies: func(v *fact.View) string {
			if reason := noAgentMeant(v); reason != "" {
				return reason
			}
			version, _ := fact.AgentVersion.From(v)
			if bugs, err := fact.Bugs.From(v); err == nil && len(bugs) == 0 {
				return "no bug of Cilium " + version + " is in the table"
			}
			return ""
		},
		Run: judgeBugs,
	}
}

func judgeBugs(p *diag.Pass) error {
	v := p.View()
	bugs, _ := fact.Bugs.From(v)
	version, _ := fact.AgentVersion.From(v)
	gaps := map[fact.ID]bool{}
	for _, b := range bugs {
		hit, ok := conditions()[b.Issue]
		if !ok {
			continue
		}
		known := true
		for _, f := range hit.reads {
			if err := v.Err(f); err != nil {
				known = false
				if !gaps[f.ID()] {
					p.Unknown(f.ID(), err)
				}
				gaps[f.ID()] = true
			}
		}
		if !known {
			continue
		}
		subjects, err := hit.subjects(v)
		if err != nil {
			p.Unknown(fact.Bugs.ID(), err)
		}
		for _, subject := range unique(subjects) {
			p.Find(regression, diag.Report{
				Subject: subject, Address: b.Issue, Severity: diag.Warning, Message: bugMessage(version, b), Proof: append(hit.reads, fact.Bugs),
			})
		}
	}
	return nil
}

func bugMessage(version string, b agent.Bug) string {
	cure := "fixed in " + b.Fixed
	if b.Fixed == "" {
		cure = "no fixed version before " + b.Before + " is known"
	}
	return fmt.Sprintf("Cilium %s has a bug that can strike here: %s (%s, %s)", version, b.What, b.Issue, cure)
}

func unique(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// condition tells which objects a bug can hit.
type condition struct {
	reads    []fact.Named
	subjects func(*fact.View) ([]string, error)
}

// conditions has one for each bug in the table.
func conditions() map[string]condition {
	return map[string]condition{
		"cilium/cilium#39358": {[]fact.Named{fact.Held}, keptBesideInternal},
		"cilium/cilium#41022": {[]fact.Named{fact.Desired}, safeguarded},
		"cilium/cilium#44436": {[]fact.Named{fact.KernelTable}, onLinkLocal},
		"cilium/cilium#44464": {[]fact.Named{fact.KubeProxy}, besideIPVS},
		"cilium/cilium#44730": {[]fact.Named{fact.Held}, overHostPort},
		"cilium/cilium#45198": {[]fact.Named{fact.Behind}, leftBehind},
		"cilium/cilium#45252": {[]fact.Named{fact.Desired}, localElsewhere},
	}
}

// subjectAt names the Service whose frontend stands at an address.
func subjectAt(v *fact.View, r lb.Row) string {
	name := r.Service
	if want, err := fact.Desired.From(v); err == nil && name == (lb.Name{}) {
		for _, w := range want.Rows {
			if w.Address.IP == r.Address.IP && w.Address.Port == r.Address.Port {
				name = w.Service
			}
		}
	}
	return fault{service: name, deltas: []lb.Delta{{Frontend: r.Address}}}.subject()
}

// keptBesideInternal: a row without protocol, and one for internal clients of
// the same address that has its protocol.
func keptBesideInternal(v *fact.View) (subjects []string, err error) {
	have, _ := fact.Held.From(v)
	for _, r := range have.Rows {
		if r.Address.Scope != lb.Internal || r.Address.Protocol == lb.ANY {
			continue
		}
		kept := r.Address
		kept.Scope, kept.Protocol = lb.External, lb.ANY
		if _, ok := have.Find(kept); ok {
			subjects = append(subjects, subjectAt(v, r))
		}
	}
	return subjects, nil
}

// safeguarded: hints fit no endpoint, or not all endpoints have one, so that
// all are to be used.
func safeguarded(v *fact.View) (subjects []string, err error) {
	want, _ := fact.Desired.From(v)
	if view, _ := fact.NodeView.From(v); view.Topology != lb.Yes {
		return nil, nil
	}
	for _, r := range want.Rows {
		if r.Cause == lb.TopologyUnmet {
			subjects = append(subjects, "service/"+r.Service.String())
		}
	}
	return subjects, nil
}

func onLinkLocal(v *fact.View) (subjects []string, err error) {
	have, _ := fact.KernelTable.From(v)
	for _, r := range have.Rows {
		if r.Type == "NodePort" && r.Address.IP.Is6() && r.Address.IP.IsLinkLocalUnicast() {
			return []string{"node/" + v.Node()}, nil
		}
	}
	return nil, nil
}

func besideIPVS(v *fact.View) (subjects []string, err error) {
	proxy, _ := fact.KubeProxy.From(v)
	if proxy.Running != fact.Yes || proxy.Mode != "ipvs" {
		return nil, nil
	}
	api, err := fact.APIServer.From(v)
	if err != nil || api.Host != "" {
		return nil, err
	}
	return []string{"node/" + v.Node()}, nil
}

// overHostPort: a host port of the same number as that of an address which is
// the node's own.
func overHostPort(v *fact.View) (subjects []string, err error) {
	have, _ := fact.Held.From(v)
	view, _ := fact.NodeView.From(v)
	for _, r := range have.Rows {
		own := slices.Contains(view.Addresses, r.Address.IP) || slices.Contains(view.Others, r.Address.IP)
		if !own || r.Type != "LoadBalancer" && r.Type != "ExternalIPs" {
			continue
		}
		for _, h := range have.Rows {
			if h.Type == "HostPort" && h.Address.Port == r.Address.Port && h.Address.Protocol == r.Address.Protocol {
				subjects = append(subjects, subjectAt(v, r))
			}
		}
	}
	return subjects, nil
}

func leftBehind(v *fact.View) (subjects []string, err error) {
	ds, _ := fact.Behind.From(v)
	for _, d := range ds {
		if d.Kind == lb.BackendExtra && claim(v, d) == stale.Name {
			subjects = append(subjects, fault{service: d.Service, deltas: []lb.Delta{d}}.subject())
		}
	}
	return subjects, nil
}

// localElsewhere: inside the cluster every endpoint is to be reached, and none
// is on this node.
func localElsewhere(v *fact.View) (subjects []string, err error) {
	want, _ := fact.Desired.From(v)
	for _, r := range want.Rows {
		if r.Type == "LoadBalancer" && r.Address.Scope == lb.External && r.Cause == lb.NoneLocal && r.Flags.Internal != lb.Local {
			subjects = append(subjects, "service/"+r.Service.String())
		}
	}
	return subjects, nil
}
