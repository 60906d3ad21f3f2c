package service

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/kubectl-kpr/kubectl-kpr/internal/netfilter"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// HostFlows checks the UDP flows that netfilter keeps: kube-proxy's part in
// connections that outlive it.
func HostFlows() *diag.Check {
	return &diag.Check{
		Name: "ct-stale-host", Doc: "UDP flows that the host keeps on backends that left, or on nobody",
		Scope: diag.OfNode, Rules: []*diag.Rule{ctStale},
		Needs: []fact.Named{fact.HostFlows},
		Wants: []fact.Named{fact.Asked, fact.EndpointAddresses, fact.KubeProxy, fact.Status},
		Applies: func(v *fact.View) string {
			if _, err := fact.HostFlows.From(v); errors.Is(err, source.ErrAbsent) {
				return "the host's connection tracking was not read (--host)"
			}
			return ""
		},
		Run: judgeFlows,
	}
}

// fate is what becomes of a flow to a Service.
type fate uint8

const (
	fine    fate = iota
	lost         // sent to an address that is no endpoint any more
	carried      // translated by kube-proxy's rules, which nobody keeps
	nobody       // sent as it was, to a ClusterIP, and not answered
)

func judgeFlows(p *diag.Pass) error {
	v := p.View()
	flows, _ := fact.HostFlows.From(v)
	want, err := fact.Asked.From(v)
	if err != nil {
		p.Unknown(fact.Asked.ID(), err)
		return nil
	}
	endpoints, err := fact.EndpointAddresses.From(v)
	if err != nil {
		p.Unknown(fact.EndpointAddresses.ID(), err)
		return nil
	}
	alone := replaced(v)
	type pin struct {
		frontend lb.Address
		service  lb.Name
		answers  netip.AddrPort
		fate     fate
	}
	count := map[pin]int{}
	var order []pin
	for _, f := range flows {
		row, ok := dialledBy(want, f)
		if !ok {
			continue
		}
		k := pin{row.Address, row.Service, f.Answers, fateOf(f, row, endpoints, alone)}
		if k.fate == nobody {
			k.answers = netip.AddrPort{}
		}
		if k.fate == fine {
			continue
		}
		if count[k]++; count[k] == 1 {
			order = append(order, k)
		}
	}
	for _, k := range order {
		at := fault{service: k.service, what: k.frontend, deltas: []lb.Delta{{Frontend: k.frontend}}}
		severity, words := diag.Warning, ""
		switch k.fate {
		case lost:
			words = fmt.Sprintf("are kept on %s by the host's netfilter, which is no endpoint any more: what they send is lost until they pause for as long as the entry lives", k.answers)
		case carried:
			severity = diag.Info
			words = fmt.Sprintf("still go to %s by kube-proxy's translation, though kube-proxy is gone: sockets from before. They are cut when the entry expires; their clients have to dial anew", k.answers)
		case nobody:
			words = "leave the node as they were sent, and nobody answers: neither Cilium nor kube-proxy translates them. Sockets from before socket LB have to dial anew"
		}
		r := at.report(severity, fmt.Sprintf("UDP flows to %s (%d) %s", k.frontend, count[k], words), fact.HostFlows, fact.EndpointAddresses)
		r.Address = k.frontend.String() + ">netfilter"
		if k.answers.IsValid() {
			r.Address += ">" + k.answers.String()
		}
		p.Find(ctStale, r)
	}
	return nil
}

// replaced holds where Cilium alone has to translate: nobody else's entries are
// right there.
func replaced(v *fact.View) bool {
	st, _ := fact.Status.From(v)
	proxy, _ := fact.KubeProxy.From(v)
	return st != nil && st.Mode == agent.ModeTrue && proxy.Running == fact.No
}

// dialledBy finds the frontend that a flow was sent to.
func dialledBy(want lb.Table, f netfilter.Flow) (lb.Row, bool) {
	protocol, err := lb.ParseProtocol(f.Proto)
	if err != nil || protocol != lb.UDP {
		return lb.Row{}, false
	}
	for _, r := range atSocket(want, lb.Address{IP: f.To.Addr(), Port: f.To.Port()}) {
		if r.Service != (lb.Name{}) && (r.Address.Protocol == lb.UDP || r.Address.Protocol == lb.ANY) {
			return r, true
		}
	}
	return lb.Row{}, false
}

// fateOf leaves alone what a Service without a ready endpoint does: nobody
// serves it any better. A ClusterIP that answers without a translation is bound
// on the node, as node-local DNS caches do.
func fateOf(f netfilter.Flow, row lb.Row, endpoints fact.Addresses, alone bool) fate {
	service := row.Service.String()
	switch {
	case f.Translated() && !endpoints.Has(service, f.Answers):
		return lost
	case f.Translated() && alone:
		return carried
	case !f.Translated() && !f.Replied && row.Type == "ClusterIP" && endpoints.Ready(service):
		return nobody
	}
	return fine
}
