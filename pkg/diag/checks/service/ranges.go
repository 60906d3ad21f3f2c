package service

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// sourceRange is the rule about who may use a LoadBalancer address.
var sourceRange = &diag.Rule{
	Name: "source-range", Severity: diag.Error, Settles: true,
	Title: "loadBalancerSourceRanges are not enforced as the Service asks, or shut out who should come in",
	Doc: `A Service with loadBalancerSourceRanges admits clients of these ranges alone to its LoadBalancer addresses. Its rows in the
map carry the flag "check source-range" and a map of its own holds the ranges. Without the flag everybody comes
in; with ranges that differ, the wrong ones do. Where the ranges name one address family only, nobody comes in
through an address of the other.

From 1.18 on NodePort rows can carry the flag too. A balancer outside the cluster that does not keep the client's
address then comes with its own, which has to be in the ranges as well; the packets it sends are dropped with
"Denied by LB src range check".`,
	Proof: []string{
		"kubectl get service -n NAMESPACE NAME -o jsonpath='{.spec.loadBalancerSourceRanges}'",
		"kubectl kpr exec NODE -- cilium-dbg bpf lb list",
		"kubectl kpr exec NODE -- cilium-dbg bpf lb list --source-ranges",
		"kubectl kpr exec NODE -- cilium-dbg monitor --type drop",
	},
	Remedy: `Where the map differs from the Service, restart the agent of the node and look into its log for a full map. Where a
balancer is shut out, add its subnet to the ranges, let it keep client addresses, or let it do the check itself and
take the ranges off the Service.`,
}

// SourceRange checks that source ranges are enforced as Services ask.
func SourceRange() *diag.Check {
	return &diag.Check{
		Name: sourceRange.Name, Doc: "source ranges of Services are enforced, and shut out nobody who is known to come in",
		Scope: diag.OfNode, Rules: []*diag.Rule{sourceRange},
		Needs:   []fact.Named{fact.Services},
		Wants:   []fact.Named{fact.AgentOf, fact.MapFlags, fact.Config, fact.Asked, fact.KernelTable, fact.Drops},
		Applies: noAgentMeant,
		Run:     judgeRanges,
	}
}

func judgeRanges(p *diag.Pass) error {
	v := p.View()
	ds, err := fact.MapFlags.From(v)
	if err != nil && anyService(v, func(s corev1.Service) bool { return len(s.Spec.LoadBalancerSourceRanges) > 0 }) {
		p.Unknown(fact.MapFlags.ID(), err)
	}
	cfg, _ := fact.Config.From(v)
	for _, f := range perService(ds, func(d lb.Delta) bool { return d.Expected == "" && claimFlag(d) == sourceRange.Name }) {
		severity, message := diag.Error, ""
		switch d := f.deltas[0]; {
		case d.Detail == "source ranges":
			message = fmt.Sprintf("the Service admits %s and the map of the node %s, on %s", orNobody(d.A), orNobody(d.B), f.on())
		case d.A == lb.No.String():
			message = fmt.Sprintf("the Service has no loadBalancerSourceRanges and the rows of %s check them: clients are dropped", f.on())
		case cfg.Data["enable-svc-source-range-check"] == "false":
			severity = diag.Warning
			message = fmt.Sprintf("loadBalancerSourceRanges are not enforced on %s: enable-svc-source-range-check is false, so everybody is admitted", f.on())
		default:
			message = fmt.Sprintf("loadBalancerSourceRanges are not enforced on %s: its rows lack the check, so everybody is admitted", f.on())
		}
		r := f.report(severity, message, fact.EndpointSlices, fact.MapRows, fact.MapRanges)
		r.Address = ""
		p.Find(sourceRange, r)
	}
	tellShutFamilies(p)
	tellNodePorts(p, tellShutOut(p))
	return nil
}

func orNobody(ranges string) string {
	if ranges == "" {
		return "nobody"
	}
	return strings.ReplaceAll(ranges, " ", ", ")
}

// tellShutFamilies warns of addresses whose family the ranges do not name.
func tellShutFamilies(p *diag.Pass) {
	maps, _ := fact.KernelTable.From(p.View())
	want, _ := fact.Asked.From(p.View())
	services, _ := fact.Services.From(p.View())
	for _, w := range want.Rows {
		if w.Type != "LoadBalancer" || w.Flags.SourceCheck != lb.Yes || len(w.Flags.Ranges) > 0 || w.Address.Scope != lb.External {
			continue
		}
		if r, ok := find(maps, w.Address); !ok || r.Flags.SourceCheck != lb.Yes {
			continue
		}
		if _, deny := rangesOf(services, w.Service); deny {
			continue // what is not to be denied is admitted
		}
		p.Find(sourceRange, diag.Report{
			Subject: "service/" + w.Service.String(), Address: w.Address.String(), Severity: diag.Warning,
			Proof:   []fact.Named{fact.MapRows},
			Message: fmt.Sprintf("no range of loadBalancerSourceRanges is of the family of %s, so nobody is admitted there", w.Address),
		})
	}
}

// tellShutOut explains drops that were seen: who came, on which frontend, and
// which ranges it is not in. It returns the Services that it spoke of.
func tellShutOut(p *diag.Pass) map[lb.Name]bool {
	v := p.View()
	drops, _ := fact.Drops.From(v)
	want, _ := fact.Asked.From(v)
	services, _ := fact.Services.From(v)
	type at struct{ from, to netip.AddrPort }
	seen := map[at]int{}
	var order []at
	told := map[lb.Name]bool{}
	for _, d := range drops {
		if !strings.Contains(d.Reason, "LB src range check") {
			continue
		}
		k := at{netip.AddrPortFrom(d.From.Addr(), 0), d.To}
		if seen[k]++; seen[k] == 1 {
			order = append(order, k)
		}
	}
	for _, k := range order {
		row, ok := rowAt(want, k.to)
		if !ok {
			continue
		}
		what := row.Type
		if row.Type == "NodePort" {
			what = fmt.Sprintf("NodePort %d", row.Address.Port)
		}
		told[row.Service] = true
		p.Find(sourceRange, diag.Report{
			Subject: "service/" + row.Service.String(), Address: k.from.Addr().String() + ">" + row.Address.String(), Severity: diag.Error,
			Proof:   []fact.Named{fact.Drops, fact.MapRows},
			Message: fmt.Sprintf("%s is denied at %s (%s): %s", k.from.Addr(), k.to, what, whyDenied(services, row.Service)),
		})
	}
	return told
}

// tellNodePorts informs of NodePorts that check the ranges of the balancer.
func tellNodePorts(p *diag.Pass, told map[lb.Name]bool) {
	maps, _ := fact.KernelTable.From(p.View())
	want, _ := fact.Asked.From(p.View())
	services, _ := fact.Services.From(p.View())
	for _, w := range want.Rows {
		if w.Type != "NodePort" || w.Expansion || told[w.Service] {
			continue
		}
		r, ok := find(maps, w.Address)
		if !ok || r.Flags.SourceCheck != lb.Yes {
			continue
		}
		ranges, _ := rangesOf(services, w.Service)
		if len(ranges) == 0 {
			continue
		}
		told[w.Service] = true
		p.Find(sourceRange, diag.Report{
			Subject: "service/" + w.Service.String(), Address: w.Address.String(), Severity: diag.Info, Proof: []fact.Named{fact.MapRows},
			Message: fmt.Sprintf("its NodePort %d checks loadBalancerSourceRanges too: a balancer that comes with an address of its own has to be in them (%s)", w.Address.Port, strings.Join(ranges, ", ")),
		})
	}
}

// whyDenied words what the ranges of a Service mean to one that was denied.
func whyDenied(services []corev1.Service, n lb.Name) string {
	ranges, deny := rangesOf(services, n)
	if deny {
		return fmt.Sprintf("loadBalancerSourceRanges %s are those to be denied, and they are enforced there too", strings.Join(ranges, ", "))
	}
	return fmt.Sprintf("it is not admitted by loadBalancerSourceRanges %s, which are enforced there too. A balancer that comes with its own address has to be in the ranges", strings.Join(ranges, ", "))
}

// rowAt finds the desired row of a packet's destination; the row of a node
// address that was not known is that of 0.0.0.0 or [::].
func rowAt(t lb.Table, to netip.AddrPort) (lb.Row, bool) {
	for _, ip := range []netip.Addr{to.Addr(), unspecified(to.Addr())} {
		if rows := atSocket(t, lb.Address{IP: ip, Port: to.Port()}); len(rows) > 0 {
			return rows[0], true
		}
	}
	return lb.Row{}, false
}

func unspecified(ip netip.Addr) netip.Addr {
	if ip.Is4() {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

// rangesOf gives a Service's ranges, and whether they are to be denied (an
// annotation of 1.17 and later).
func rangesOf(services []corev1.Service, n lb.Name) (ranges []string, deny bool) {
	i := slices.IndexFunc(services, func(s corev1.Service) bool { return s.Namespace == n.Namespace && s.Name == n.Name })
	if i < 0 {
		return nil, false
	}
	return services[i].Spec.LoadBalancerSourceRanges, services[i].Annotations["service.cilium.io/src-ranges-policy"] == "deny"
}
