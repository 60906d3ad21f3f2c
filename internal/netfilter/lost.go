package netfilter

import "strings"

// Lost is a row that lacks the match which made it harmless. It comes about
// when an iptables reads rows that a newer one wrote, does not understand one
// of their matches, and writes them back without.
type Lost struct {
	Table, Chain string
	Kind         LostKind
	N            int // rows of this kind in the chain
}

// LostKind is what such a row does now.
type LostKind uint8

// The kinds, the worst first.
const (
	// DropsAll: the kubelet's row against packets to 127/8 from elsewhere, or
	// the one that drops marked packets, drops every packet.
	DropsAll LostKind = iota
	// ProxiesAll: a TPROXY row of Cilium takes all traffic of the node.
	ProxiesAll
	// MasqueradesAll: a MASQUERADE or SNAT row rewrites all traffic.
	MasqueradesAll
	// MasqueradesNone: the row by which unmarked packets leave KUBE-POSTROUTING
	// lets all of them leave.
	MasqueradesNone
	// AcceptsAll: an ACCEPT row lets all traffic pass the rows behind it.
	AcceptsAll
)

// lost finds such rows in chains whose rows are known word for word.
func lost(r *Ruleset) []Lost {
	var out []Lost
	guarded := map[string]bool{} // by table: packets return from KUBE-POSTROUTING first
	for i := range r.Rules {
		rule := &r.Rules[i]
		kind, bad := faultOf(rule, guarded[rule.Table])
		if rule.Chain == "KUBE-POSTROUTING" && rule.Target == "RETURN" && (rule.Mark || rule.Conditions == 0) {
			guarded[rule.Table] = true
		}
		if !bad {
			continue
		}
		table, chain := rule.Table, rule.Chain
		if n := len(out) - 1; n >= 0 && out[n].Table == table && out[n].Chain == chain && out[n].Kind == kind {
			out[n].N++
			continue
		}
		out = append(out, Lost{strings.Clone(table), strings.Clone(chain), kind, 1})
	}
	return out
}

func faultOf(r *Rule, guarded bool) (LostKind, bool) {
	cilium := strings.HasPrefix(r.Chain, "CILIUM_")
	switch r.Target {
	case "DROP":
		// Up to 1.26 a second row drops packets that carry a mark.
		return DropsAll, r.Chain == "KUBE-FIREWALL" && !r.Mark && r.Dst == "" && r.Src == ""
	case "RETURN":
		return MasqueradesNone, r.Chain == "KUBE-POSTROUTING" && r.Conditions == 0
	case "TPROXY":
		return ProxiesAll, cilium && !r.Mark
	case "MASQUERADE":
		return MasqueradesAll, !r.Mark && (r.Chain == "KUBE-POSTROUTING" && !guarded || cilium && r.Conditions == 0)
	case "SNAT":
		return MasqueradesAll, cilium && r.Conditions == 0
	case "ACCEPT":
		return AcceptsAll, r.Conditions == 0 && (cilium || r.Chain == "KUBE-FORWARD")
	}
	return 0, false
}
