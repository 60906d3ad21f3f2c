package service

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// lrp is the rule about local redirect policies.
var lrp = &diag.Rule{
	Name: "lrp", Severity: diag.Error, Settles: true,
	Title: "a local redirect policy does not redirect, or redirects to nothing",
	Doc: `A CiliumLocalRedirectPolicy sends the traffic for an address or a Service to a pod on the same node, such as a node-local DNS
cache. Where it is in effect the frontend's type is LocalRedirect. While it is still ClusterIP, requests go to the
Service's own backends: everything works, the cache is idle and the Service bears the load. The type is what counts;
lrp list has shown the right target while nothing was redirected.

On a node without a ready pod of the policy the Service's own backends serve, which is as it should be. Some releases
of 1.18 made an empty LocalRedirect frontend there instead, and connections to it fail.

A resolver that listens on a link-local address, 169.254.20.10 by custom, is reached there only from its own pod if
that has a network namespace of its own: without a policy for the address nobody gets an answer. In the host's
namespace it answers on that address, but queries for the ClusterIP of the DNS Service are translated before they
reach it.`,
	Proof: []string{
		"kubectl get ciliumlocalredirectpolicies -A",
		"kubectl kpr exec NODE -- cilium-dbg lrp list",
		"kubectl kpr exec NODE -- cilium-dbg service list",
	},
	Remedy: `See that local redirect policies are enabled (enable-local-redirect-policy in cilium-config) and that the policy's ports match
those of the Service and the pod by name and protocol; name them under redirectFrontend too. Then restart the agent
of the node, and look into its log for a frontend that is already owned by another service.`,
}

// LRP checks that local redirect policies redirect.
func LRP() *diag.Check {
	return &diag.Check{
		Name: lrp.Name, Doc: "local redirect policies redirect to a pod on the node",
		Scope: diag.OfNode, Rules: []*diag.Rule{lrp},
		Wants:   []fact.Named{fact.AgentOf, fact.Redirects, fact.Held, fact.Config, fact.Resolvers, fact.Status},
		Applies: noAgentMeant,
		Run:     judgeRedirects,
	}
}

func judgeRedirects(p *diag.Pass) error {
	v := p.View()
	policies, err := fact.Redirects.From(v)
	if err != nil && !errors.Is(err, source.ErrAbsent) {
		p.Unknown(fact.Redirects.ID(), err)
	}
	resolvers, _ := fact.Resolvers.From(v)
	if len(policies)+len(resolvers) == 0 {
		return nil
	}
	have, err := fact.Held.From(v)
	if err != nil {
		p.Unknown(fact.Held.ID(), err)
		return nil
	}
	cfg, _ := fact.Config.From(v)
	for _, r := range policies {
		judgePolicy(p, r, have, cfg)
	}
	judgeResolvers(p, resolvers, policies, have)
	return nil
}

// judgePolicy sorts the frontends of a policy by what the node made of them.
func judgePolicy(p *diag.Pass, r fact.Redirect, have lb.Table, cfg fact.Settings) {
	var not, empty []string
	types := map[string]bool{}
	targeted := false
	for _, f := range r.Frontends {
		row, ok := find(have, f)
		targeted = targeted || r.Targets[f]
		switch {
		case ok && row.Redirect == lb.LocalRedirect && len(row.Entries) > 0:
		case ok && row.Redirect == lb.LocalRedirect:
			empty = append(empty, f.String())
		case ok:
			not = append(not, f.String())
			types[row.Type] = true
		case r.Service == (lb.Name{}):
			not = append(not, f.String())
		}
	}
	report := func(severity diag.Severity, address, message string) {
		p.Find(lrp, diag.Report{
			Subject: "ciliumlocalredirectpolicy/" + r.Policy.String(), Address: address, Severity: severity, Message: message,
			Proof: []fact.Named{fact.Redirects, fact.AgentFrontends},
		})
	}
	switch {
	case len(empty) == 0:
	case r.Local:
		report(diag.Error, "empty", fmt.Sprintf("%s redirect to nothing, though a ready pod of the policy runs on the node: connections to them fail", listed(empty)))
	case r.Service != (lb.Name{}):
		report(diag.Error, "empty", fmt.Sprintf("%s redirect to nothing, and no ready pod of the policy is known on the node: connections fail that the Service's own backends should serve", listed(empty)))
	case r.PodsRead:
		report(diag.Warning, "empty", fmt.Sprintf("nobody answers on %s here: no ready pod of the policy runs on the node", listed(empty)))
	}
	if len(not) == 0 {
		return
	}
	still := "not redirected: nobody answers there"
	if len(types) > 0 {
		still = fmt.Sprintf("still %s, not LocalRedirect: requests go to the Service's own backends", listed(slices.Sorted(maps.Keys(types))))
	}
	switch {
	case cfg.Data["enable-local-redirect-policy"] == "false" || cfg.Data["enable-local-redirect-policies"] == "false":
		report(diag.Error, "", fmt.Sprintf("local redirect policies are switched off in the agent, so %s are %s", listed(not), still))
	case targeted:
		report(diag.Error, "", fmt.Sprintf("the agent lists a target for it, and %s are %s", listed(not), still))
	case r.Local && r.Listed:
		report(diag.Error, "", fmt.Sprintf("it matches %s and a ready pod of it runs on the node, but the agent has no target for it, and they are %s", listed(not), still))
	case r.Local:
		report(diag.Error, "", fmt.Sprintf("it matches %s and a ready pod of it runs on the node, but they are %s", listed(not), still))
	case r.PodsRead && !r.Elsewhere && !r.Listed:
		report(diag.Warning, "", fmt.Sprintf("no pod that it selects was seen on any node, and %s are %s", listed(not), still))
	}
}

// judgeResolvers looks for resolvers on link-local addresses that no policy
// leads to.
func judgeResolvers(p *diag.Pass, resolvers []fact.Resolver, policies []fact.Redirect, have lb.Table) {
	status, _ := fact.Status.From(p.View())
	for _, r := range resolvers {
		var unled []string
		for _, ip := range r.LinkLocal {
			if !ledTo(policies, have, func(a lb.Address) bool { return a.IP == ip }) {
				unled = append(unled, ip.String())
			}
		}
		switch {
		case len(unled) > 0 && !r.HostNetwork:
			p.Find(lrp, diag.Report{
				Subject: r.Subject, Address: unled[0], Severity: diag.Error, Proof: []fact.Named{fact.Resolvers, fact.AgentFrontends},
				Message: fmt.Sprintf("it listens on %s in a network namespace of its own, and no local redirect policy leads there: queries to that address get no answer", listed(unled)),
			})
		case r.HostNetwork && status != nil && status.Mode == agent.ModeTrue && status.SocketLB != agent.Off:
			for _, ip := range r.Others {
				row, ok := rowOfIP(have, ip)
				if !ok || row.Redirect == lb.LocalRedirect || row.Type == "" {
					continue
				}
				p.Find(lrp, diag.Report{
					Subject: r.Subject, Address: ip.String(), Severity: diag.Warning, Proof: []fact.Named{fact.Resolvers, fact.AgentFrontends},
					Message: fmt.Sprintf("it listens on the Service address %s in the host's network namespace, and queries to that address are translated to the Service's backends before they reach it: the cache is passed by. A local redirect policy needs it in a namespace of its own", ip),
				})
			}
		}
	}
}

// ledTo holds where a policy names the address or the agent redirects it.
func ledTo(policies []fact.Redirect, have lb.Table, is func(lb.Address) bool) bool {
	for _, r := range policies {
		for _, f := range r.Frontends {
			if is(f) {
				return true
			}
		}
	}
	for _, r := range have.Rows {
		if r.Redirect == lb.LocalRedirect && is(r.Address) {
			return true
		}
	}
	return false
}

func rowOfIP(t lb.Table, ip netip.Addr) (lb.Row, bool) {
	i := slices.IndexFunc(t.Rows, func(r lb.Row) bool { return r.Address.IP == ip && !r.Wildcard })
	if i < 0 {
		return lb.Row{}, false
	}
	return t.Rows[i], true
}
