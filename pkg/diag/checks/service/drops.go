package service

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// dropReason is the rule about packets that the datapath dropped.
var dropReason = &diag.Rule{
	Name: "drop-reason", Severity: diag.Error,
	Title: "packets to a Service were dropped, and this is why",
	Doc: `The agent's monitor names a reason for each packet that the datapath drops. It does not say which Service was meant, nor
whether that is a fault: this joins the two.

"Service backend not found" at a frontend of a Local policy on a node without an endpoint is how the policy works. "Denied by LB src
range check" is loadBalancerSourceRanges doing its work on somebody who should perhaps be let in: it guards the NodePorts too. A policy that
denies an address of a Service, in place of one of its backends, is the consequence of a translation that did not happen: the address is judged as
one of the world. Full maps show as "CT: Map insertion failed" and "No mapping for NAT masquerade".`,
	Proof: []string{
		"kubectl kpr exec NODE -- timeout 30 cilium-dbg monitor --type drop",
		"kubectl kpr trace ADDRESS:PORT --from outside",
	},
	Remedy:  `Follow the rule that the message names. A drop that is explained as meant needs no remedy but a client that goes elsewhere.`,
	Sources: []string{"cilium/cilium#27061", "cilium/cilium#39358", "cilium/cilium#42334"},
}

// policyDenied is the rule about policies in the way of a Service.
var policyDenied = &diag.Rule{
	Name: "policy-denied", Severity: diag.Error,
	Title: "a policy denies what a Service sends",
	Doc: `Policies are judged after the translation, at the backend: by its address and port, not the Service's. And they are judged by the source
that the packet has by then. A NodePort or LoadBalancer request that another node forwarded with SNAT comes from that node (identity
remote-node, or host on the same one), one from outside as world, whatever the client was.

A verdict in the monitor proves what the policy did with that packet. It proves nothing about translation, which was over by then.`,
	Proof: []string{
		"kubectl kpr exec NODE -- timeout 30 cilium-dbg monitor --type policy-verdict --type drop",
		"kubectl get ciliumnetworkpolicies,networkpolicies -n NAMESPACE",
	},
	Remedy: `Allow the source as the packet has it: fromEntities remote-node and host for NodePorts with SNAT, world for clients outside with externalTrafficPolicy Local,
and the backend's port in toPorts, not the Service's.`,
}

// Drops checks what the monitor saw.
func Drops() *diag.Check {
	return &diag.Check{
		Name: dropReason.Name, Doc: "dropped packets, joined to Services and to the rule that explains them",
		Scope: diag.OfNode, Rules: []*diag.Rule{dropReason, policyDenied},
		Needs: []fact.Named{fact.Drops},
		Wants: []fact.Named{fact.Asked, fact.Held},
		Applies: func(v *fact.View) string {
			if _, err := fact.Drops.From(v); errors.Is(err, source.ErrAbsent) {
				return "no drops were recorded"
			}
			return ""
		},
		Run: judgeDrops,
	}
}

// drops are equal ones.
type drops struct {
	agent.Drop
	from []string
	n    int
}

func judgeDrops(p *diag.Pass) error {
	all, _ := fact.Drops.From(p.View())
	var order []*drops
	for _, d := range all {
		i := slices.IndexFunc(order, func(o *drops) bool { return o.Reason == d.Reason && o.To == d.To && o.Protocol == d.Protocol })
		if i < 0 {
			i = len(order)
			order = append(order, &drops{Drop: d})
		}
		order[i].n++
		if ip := d.From.Addr().String(); !slices.Contains(order[i].from, ip) {
			order[i].from = append(order[i].from, ip)
		}
	}
	want, _ := fact.Asked.From(p.View())
	held, _ := fact.Held.From(p.View())
	for _, d := range order {
		d.judge(p, want, held)
	}
	return nil
}

func (d *drops) judge(p *diag.Pass, want, held lb.Table) {
	severity, why := diag.Error, ""
	row := rowFor(d.To, want)
	if row == nil {
		row = rowFor(d.To, held)
	}
	reason := strings.ToLower(d.Reason)
	switch {
	case strings.Contains(reason, "src range"):
		why = "the source is outside loadBalancerSourceRanges, which guard NodePorts too (source-range)"
	case strings.Contains(reason, "backend not found") || strings.Contains(reason, "no service"):
		severity, why = nobodyThere(row, rowFor(d.To, held))
	case strings.HasPrefix(reason, "policy denied") && row != nil:
		severity, why = diag.Info, "a consequence: the address is a Service's and was not translated, so the policy judged it as an address of the world"
	case strings.HasPrefix(reason, "policy denied"):
		d.denied(p, want, held)
		return
	case strings.Contains(reason, "map insertion failed"), strings.Contains(reason, "no mapping for nat"):
		why = "a map of the datapath is full (map-pressure)"
	default:
		if row == nil {
			return
		}
		severity, why = diag.Warning, "no rule here explains it"
	}
	subject := "node/" + p.Node()
	if row != nil && row.Service != (lb.Name{}) {
		subject = "service/" + row.Service.String()
	}
	p.Find(dropReason, diag.Report{
		Subject: subject, Address: d.Reason + " " + d.To.String(), Severity: severity, Proof: []fact.Named{fact.Drops},
		Message: fmt.Sprintf("%q for %s to %s from %s: %s", d.Reason, packets(d.n), socketOf(d.To, d.Protocol), few(d.from), why),
	})
}

// denied reports a policy to each Service that has the address as a backend;
// where none has, no Service is concerned.
func (d *drops) denied(p *diag.Pass, want, held lb.Table) {
	identities := ""
	if d.Identities != "" {
		identities = ", identities " + d.Identities
	}
	for _, s := range backedBy(d.To, want, held) {
		p.Find(policyDenied, diag.Report{
			Subject: "service/" + s.String(), Address: d.Reason + " " + d.To.String(), Severity: diag.Error, Proof: []fact.Named{fact.Drops},
			Message: fmt.Sprintf("%q for %s to the backend %s from %s%s: the policy judges the source as it is after the translation", d.Reason, packets(d.n), socketOf(d.To, d.Protocol), few(d.from), identities),
			Next:    []string{"kubectl", "get", "ciliumnetworkpolicies,networkpolicies", "-n", s.Namespace},
		})
	}
}

// nobodyThere explains a frontend without a backend.
func nobodyThere(want, held *lb.Row) (diag.Severity, string) {
	switch {
	case want == nil:
		return diag.Error, "no Service that is known has a frontend there"
	case want.Cause == lb.NoneLocal:
		return diag.Info, "meant so: the traffic policy is Local and the node has no endpoint (local-no-local-backend)"
	case len(want.Entries) == 0:
		return diag.Error, "the Service has no endpoint (api-no-backends)"
	case held != nil && len(held.Entries) == 0:
		return diag.Error, fmt.Sprintf("the API has %d endpoints for it and the node none (backend-missing)", len(want.Entries))
	}
	return diag.Warning, "there are backends now; the packet met a connection to one that left, or a lost row (ct-stale, agent-vs-bpf)"
}

// rowFor is the row of a socket, or of the port at 0.0.0.0 or [::].
func rowFor(at netip.AddrPort, t lb.Table) *lb.Row {
	var surrogate *lb.Row
	for i := range t.Rows {
		r := &t.Rows[i]
		switch {
		case r.Wildcard || r.Address.Port != at.Port() || r.Address.Scope != lb.External:
		case r.Address.IP == at.Addr():
			return r
		case r.Address.IP.IsUnspecified() && r.Address.IP.Is4() == at.Addr().Is4() && r.Address.Port >= 1024:
			surrogate = r
		}
	}
	return surrogate
}

// backedBy are the Services with the socket among their backends, by the first
// of the tables that has any, sorted.
func backedBy(at netip.AddrPort, tables ...lb.Table) []lb.Name {
	for _, t := range tables {
		var names []lb.Name
		for i := range t.Rows {
			if name := t.Rows[i].Service; name != (lb.Name{}) && !slices.Contains(names, name) &&
				slices.ContainsFunc(t.Rows[i].Entries, func(e lb.Entry) bool { return e.Address.IP == at.Addr() && e.Address.Port == at.Port() }) {
				names = append(names, name)
			}
		}
		if len(names) > 0 {
			slices.SortFunc(names, func(a, b lb.Name) int { return strings.Compare(a.String(), b.String()) })
			return names
		}
	}
	return nil
}

func packets(n int) string {
	if n == 1 {
		return "1 packet"
	}
	return fmt.Sprintf("%d packets", n)
}

func socketOf(at netip.AddrPort, protocol string) string {
	if at.Port() == 0 {
		return at.Addr().String()
	}
	if protocol == "" {
		return at.String()
	}
	return at.String() + "/" + strings.ToUpper(protocol)
}

func few(all []string) string {
	slices.Sort(all)
	if len(all) > 3 {
		return fmt.Sprintf("%s and %d more", strings.Join(all[:3], ", "), len(all)-3)
	}
	return strings.Join(all, ", ")
}
