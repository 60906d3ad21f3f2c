package service

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/internal/words"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// excluded is the rule about Services that are not for Cilium.
var excluded = &diag.Rule{
	Name: "service-excluded", Severity: diag.Info,
	Title: "a Service is, wholly or in part, not for Cilium to serve",
	Doc: `A label or an annotation keeps the Service, some of its frontends or some of the nodes away from Cilium:

service.kubernetes.io/service-proxy-name gives it to another proxy (an agent that is itself started with
k8s-service-proxy-name serves the Services of that name and no others); service.cilium.io/type leaves one kind
of its frontends; service.cilium.io/node and node-selector leave some nodes.

No frontend is missing then. With kube-proxy gone nobody serves what is left out, unless that other proxy is
there. Headless Services and those of type ExternalName never have a frontend, under any proxy, and are not
told of.`,
	Proof: []string{
		"kubectl get service -n NAMESPACE NAME -o jsonpath='{.metadata.labels} {.metadata.annotations}'",
		"kubectl get configmap -n kube-system cilium-config -o jsonpath='{.data.k8s-service-proxy-name}'",
	},
	Remedy: "None, if it is meant. Else take the label or annotation off the Service.",
}

// Excluded tells of Services that are not for Cilium.
func Excluded() *diag.Check {
	return &diag.Check{
		Name: excluded.Name, Doc: "Services that labels or annotations keep from Cilium",
		Scope: diag.OfCluster, Rules: []*diag.Rule{excluded},
		Needs: []fact.Named{fact.Index},
		Wants: []fact.Named{fact.Desired, fact.Held, fact.Services},
		Run:   judgeExcluded,
	}
}

// exclusion is one reason for which nodes leave out a Service or a kind of its
// frontends.
type exclusion struct {
	service lb.Name
	cause   lb.Cause
	reason  string
	types   []string
	nodes   []string
}

func judgeExcluded(p *diag.Pass) error {
	services, err := fact.Services.From(p.View())
	if err != nil {
		return err
	}
	only := map[lb.Name]string{}
	for _, s := range services {
		if typ := s.Annotations["service.cilium.io/type"]; typ != "" {
			only[lb.Name{Namespace: s.Namespace, Name: s.Name}] = typ
		}
	}
	all, nodes := exclusions{}, 0
	for node, t := range fact.Desired.Each(p.View()) {
		if t.Err != nil {
			p.On(node).Unknown(fact.Desired.ID(), t.Err)
			continue
		}
		nodes++
		for _, a := range t.Value.Absent {
			all.add(node, a)
		}
		have, err := fact.Held.From(p.View().On(node))
		for _, r := range t.Value.Rows {
			// Where it is not known whether the version honours the annotation, its rows tell.
			if typ := only[r.Service]; typ != "" && r.Type != typ && strings.HasPrefix(r.Optional, "service.cilium.io/type") && !r.Expansion && err == nil {
				if _, there := find(have, r.Address); !there {
					all.add(node, lb.Absence{Service: r.Service, Type: r.Type, Cause: lb.TypeAnnotation, Reason: "annotation service.cilium.io/type is " + typ})
				}
			}
		}
	}
	all.report(p, nodes)
	return nil
}

type exclusions map[[3]string]*exclusion

// add counts what a node leaves out, by Service and reason. Services without a
// label, where the agents are for another name, are one exclusion together.
func (x exclusions) add(node string, a lb.Absence) {
	switch a.Cause {
	case lb.OtherProxy, lb.TypeAnnotation, lb.NodeAnnotation:
	default:
		return
	}
	key := [3]string{a.Service.Namespace, a.Service.Name, a.Reason}
	e := x[key]
	if e == nil {
		e = &exclusion{service: a.Service, cause: a.Cause, reason: a.Reason}
		x[key] = e
	}
	if a.Type != "" && !slices.Contains(e.types, a.Type) {
		e.types = append(e.types, a.Type)
	}
	if len(e.nodes) == 0 || e.nodes[len(e.nodes)-1] != node {
		e.nodes = append(e.nodes, node)
	}
}

// report tells of each Service; of those that an agent started for one name
// leaves to others it tells once, as they may be all.
func (x exclusions) report(p *diag.Pass, nodes int) {
	var others []string
	reason := ""
	for _, e := range x.sorted() {
		if e.cause == lb.OtherProxy && strings.HasPrefix(e.reason, "no label") {
			others, reason = append(others, e.service.String()), e.reason
			continue
		}
		p.Find(excluded, diag.Report{
			Subject: "service/" + e.service.String(), Address: string(e.cause), Severity: diag.Info,
			Message: e.message(nodes), Proof: []fact.Named{fact.Services},
		})
	}
	if len(others) > 0 {
		p.Find(excluded, diag.Report{
			Subject: "cluster", Severity: diag.Info, Proof: []fact.Named{fact.Services},
			Message: fmt.Sprintf("left to another proxy are %s (%s): %s", words.Count(len(others), "Service"), reason, listed(others)),
		})
	}
}

func (x exclusions) sorted() []*exclusion {
	var all []*exclusion
	for _, e := range x {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b *exclusion) int {
		return cmp.Or(cmp.Compare(a.service.String(), b.service.String()), cmp.Compare(a.reason, b.reason))
	})
	return all
}

func (e *exclusion) message(nodes int) string {
	what := "it"
	if len(e.types) > 0 {
		slices.Sort(e.types)
		what = "its " + strings.Join(e.types, " and ") + " frontends"
	}
	if len(e.nodes) == nodes {
		return fmt.Sprintf("%s, so Cilium serves %s on no node", e.reason, what)
	}
	return fmt.Sprintf("%s, so %d of %d nodes (%s) do not serve %s", e.reason, len(e.nodes), nodes, listed(e.nodes), what)
}
