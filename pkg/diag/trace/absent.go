package trace

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/fact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

var zero4, zero6 = netip.IPv4Unspecified(), netip.IPv6Unspecified()

// absent says what an owner asks for and nodes do not serve by design, once
// for the nodes that agree.
func (t *tracer) absent(o owner) []Absent {
	out := []Absent{}
	for _, n := range t.at.nodes {
		for _, a := range n.desired.Absent {
			if a.Service != o.name || (a.Type == "HostPort") != o.pod {
				continue
			}
			one := Absent{Type: a.Type, State: Excluded, Text: a.Reason}
			if a.Cause == lb.FeatureOff {
				one.State, one.Text = n.otherwise(a.Reason)
			}
			i := slices.IndexFunc(out, func(b Absent) bool { return b.Type == one.Type && b.State == one.State && b.Text == one.Text })
			if i < 0 {
				i = len(out)
				out = append(out, one)
			}
			out[i].Nodes = uniq(append(out[i].Nodes, n.name))
		}
	}
	return out
}

// otherwise says who serves what Cilium does not.
func (n *node) otherwise(reason string) (State, string) {
	reason = strings.ReplaceAll(reason, " on this node", "")
	switch n.proxy.Running {
	case fact.Yes:
		return Elsewhere, reason + "; kube-proxy does, and its rules are not looked at here"
	case fact.No:
		return Nobody, reason + ", and kube-proxy does not run"
	}
	return Unknown, reason + "; whether kube-proxy runs is not known"
}

// stopsAt says why a client gets nowhere with this frontend by design, or that
// another than Cilium serves it; false if Cilium does.
func (t *tracer) stopsAt(i instance) (judgement, bool) {
	if i.life.Life == fact.Unwanted {
		return judgement{state: Elsewhere, text: "no Cilium here: " + i.life.Reason}, true
	}
	if len(t.at.kinds) > 1 {
		return judgement{}, false
	}
	k := t.at.kinds[0]
	who := "processes of the node"
	if k == anOutsider {
		who = "clients outside"
	}
	switch i.translates(k) {
	case byProxy, byNobody:
		state, text := i.otherwise("Cilium does not translate for " + who)
		return judgement{state: state, text: text, share: "all new connections", outcome: "fail"}.unless(state != Nobody), true
	case howUnknown:
		if k == aHost {
			return judgement{state: Unknown, text: "whether Cilium translates for " + who + " is not known: the agent's status was not read"}, true
		}
	}
	if k == anOutsider {
		return i.stopsOutside()
	}
	if i.guarded(k) {
		return judgement{state: Stops, text: guard}, true
	}
	return judgement{}, false
}

const guard = "socket LB leaves an externalIP alone that is no address of the node (unless disable-external-ip-mitigation is true): the packet leaves the node as it is"

// guarded holds for addresses that socket LB does not translate, since any user
// who may create Services can claim them (CVE-2020-8554): externalIPs and host
// ports at addresses that are not the node's own. Packets from outside are
// translated all the same.
func (i instance) guarded(k kind) bool {
	if k == anOutsider || i.translates(k) != bySocketLB || i.config["disable-external-ip-mitigation"] == "true" {
		return false
	}
	for _, r := range []*lb.Row{i.kernel, i.agent, i.desired} {
		if r == nil || r.Type == "" {
			continue
		}
		own := i.address.IP.IsUnspecified() || slices.Contains(i.view.Addresses, i.address.IP) || slices.Contains(i.view.Others, i.address.IP)
		return (r.Type == "ExternalIPs" || r.Type == "HostPort") && !own
	}
	return false
}

func (j judgement) unless(drop bool) judgement {
	if drop {
		j.share, j.outcome = "", ""
	}
	return j
}

func (i instance) stopsOutside() (judgement, bool) {
	r := i.kernel
	if r == nil {
		r = i.agent
	}
	if r == nil {
		r = i.desired
	}
	switch {
	case r == nil || r.Type != "ClusterIP":
		return judgement{}, false
	case i.kernelErr == nil && i.kernel != nil && !i.stiff[i.kernel.Address], i.config["bpf-lb-external-clusterip"] == "true":
		return judgement{}, false
	}
	return judgement{state: Stops, text: "a ClusterIP is non-routable for clients outside, unless bpf-lb-external-clusterip is true"}, true
}
