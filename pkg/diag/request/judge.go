package request

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Judge sums up the tries of a path: its state, who answered, what translated
// the address, and whether that is what was predicted. It leaves the State of a
// path that could not be tried.
func Judge(p *Path) {
	p.sum()
	p.conclude()
}

// JudgeCounted judges a path of which only some tries were kept: good and bad
// are how many there were.
func JudgeCounted(p *Path, good, bad int) {
	p.sum()
	p.Good, p.Bad = good, bad
	p.conclude()
	// What a trace said at the beginning was true then; the change came later.
	p.Predicted.Contradicts, p.Predicted.How = false, ""
}

func (p *Path) sum() {
	p.Good, p.Bad, p.Spread, p.Latency = 0, 0, nil, nil
	var took []time.Duration
	for _, t := range p.Tries {
		if t.OK {
			p.Good++
			took = append(took, t.Took)
		} else {
			p.Bad++
		}
		if t.Backend.IsValid() && (t.Backend != p.Address || p.Predicts(t.Backend)) {
			p.count(t)
		}
	}
	slices.SortStableFunc(p.Spread, func(a, b Share) int {
		return cmp.Or(cmp.Compare(b.Good+b.Bad, a.Good+a.Bad), a.Address.Compare(b.Address))
	})
	if len(took) > 0 {
		slices.Sort(took)
		p.Latency = &Span{took[0], took[len(took)/2], took[len(took)-1]}
	}
	p.translated()
}

func (p *Path) conclude() {
	switch {
	case p.State == Unknown:
		return
	case p.Good+p.Bad == 0:
		p.State, p.Text = Unknown, "no request was made"
		return
	case p.silent():
		p.State, p.Text = Unknown, "nothing came back, which over UDP proves neither way; ask what it speaks with --protocol"
		return
	case p.Bad == 0:
		p.State = OK
	case p.Good == 0:
		p.State = Failed
	default:
		p.State = Some
	}
	p.compare()
	p.Text = p.words()
}

// silent holds where datagrams that need not be answered were not: whoever is
// there may not have understood them. A refusal is an answer.
func (p *Path) silent() bool {
	if p.Ask != Echo || p.Good > 0 {
		return false
	}
	return !p.dropped() && !slices.ContainsFunc(p.Tries, func(t Try) bool { return !t.Late })
}

func (p *Path) dropped() bool {
	return slices.ContainsFunc(p.Events, func(e Event) bool { return e.Kind == "drop" })
}

// Unanswered holds where a try failed.
func (p *Path) Unanswered() bool {
	return slices.ContainsFunc(p.Tries, func(t Try) bool { return !t.OK })
}

// Predicts holds for a backend that new connections may reach.
func (p *Path) Predicts(a netip.AddrPort) bool {
	return slices.ContainsFunc(p.Predicted.Backends, func(b Backend) bool { return b.at() == a })
}

// at is the backend's address without its protocol.
func (b Backend) at() netip.AddrPort {
	s, _, _ := strings.Cut(b.Address, "/")
	a, _ := netip.ParseAddrPort(s)
	return a
}

func (p *Path) count(t Try) {
	i := slices.IndexFunc(p.Spread, func(s Share) bool { return s.Address == t.Backend })
	if i < 0 {
		i = len(p.Spread)
		s := Share{Address: t.Backend}
		for _, b := range p.Predicted.Backends {
			if b.at() == t.Backend {
				s.Pod, s.Node = b.Pod, b.Node
			}
		}
		p.Spread = append(p.Spread, s)
	}
	if t.OK {
		p.Spread[i].Good++
	} else {
		p.Spread[i].Bad++
	}
}

// translated names the mechanism by what was seen, and never by what should
// be.
func (p *Path) translated() {
	p.Mechanism, p.Proof = "", ""
	for _, t := range p.Tries {
		switch {
		case !t.Local.IsValid() || !t.Backend.IsValid():
			continue
		case t.NAT:
			p.Mechanism, p.Proof = KubeProxy, fmt.Sprintf("netfilter's conntrack holds %s -> %s, translated to %s", t.Local, p.Address, t.Backend)
		case t.Service:
			p.Mechanism, p.Proof = PacketLB, fmt.Sprintf("Cilium's conntrack holds %s -> %s as a Service's flow, and no socket was rewritten", t.Local, p.Address)
		case t.Backend != p.Address:
			p.Mechanism, p.Proof = SocketLB, fmt.Sprintf("the kernel's socket is connected to %s, the program dialled %s", t.Backend, p.Address)
		default:
			continue
		}
		return
	}
}

// compare sets what happened against what was predicted. A policy that refuses
// is no contradiction: a trace follows translation, not policy.
func (p *Path) compare() {
	pr := &p.Predicted
	pr.Contradicts, pr.How = false, ""
	say := func(format string, args ...any) {
		if pr.How == "" {
			pr.Contradicts, pr.How = true, fmt.Sprintf(format, args...)
		}
	}
	_, denied := p.Denied()
	if slices.ContainsFunc(p.Tries, func(t Try) bool { return t.Other && !t.OK }) {
		return // somebody answered, whatever it speaks
	}
	switch pr.State {
	case "ok":
		if p.Good == 0 && !denied {
			say("trace has all layers in agreement, and no request was answered")
		} else if p.Bad > 0 && !denied {
			say("trace has all layers in agreement, and %d of %d requests failed", p.Bad, p.Good+p.Bad)
		}
		for _, s := range p.Spread {
			if len(pr.Backends) > 0 && !p.Predicts(s.Address) && s.Good > 0 {
				say("%s answered, which no layer has as a backend", s.Address)
			}
		}
	case "nobody", "stops", "excluded":
		if p.Good > 0 {
			say("trace has nobody to serve this client, and %d of %d requests were answered", p.Good, p.Good+p.Bad)
		}
	case "behind":
		if p.Bad == 0 && strings.HasPrefix(pr.Share, "all") {
			say("trace has every new connection fail, and all %d were answered", p.Good)
		}
	}
}

// words is the path's outcome in a line.
func (p *Path) words() string {
	n := p.Good + p.Bad
	if p.Bad == 0 {
		return fmt.Sprintf("%d of %d answered", p.Good, n) + p.blindWords()
	}
	s := fmt.Sprintf("%d of %d failed: %s", p.Bad, n, p.reasons())
	if p.Gap != nil {
		s += fmt.Sprintf("; the longest gap lasted %s from %s", p.Gap.Length.Round(100*time.Millisecond), p.Gap.From.UTC().Format(time.TimeOnly+"Z"))
		if p.Gap.Open {
			s += " and has not ended"
		}
	}
	s += p.blindWords()
	if told := p.telling(); len(told) > 0 { // the others are listed below
		s += fmt.Sprintf("; %s on %s", told[0].Text, told[0].Node)
		if told[0].Rule != "" {
			s += ", by " + told[0].Rule
		}
	}
	if p.Predicted.State == "behind" {
		s += fmt.Sprintf("; as trace says: the %s is behind on %s: %s", p.Predicted.Layer, p.Client.Node, p.Predicted.Text)
	}
	if (p.Predicted.State == "nobody" || p.Predicted.State == "stops") && p.Good == 0 {
		s += "; as trace says: " + p.Predicted.Text
	}
	return s
}

func (p *Path) blindWords() string {
	if p.Blind <= 0 {
		return ""
	}
	return fmt.Sprintf("; for %s nobody could ask", p.Blind.Round(100*time.Millisecond))
}

// telling are the events that explain a failure: drops before verdicts, and no
// verdict that allows.
func (p *Path) telling() []Event {
	var out []Event
	for _, kind := range []string{"drop", "policy-verdict"} {
		for _, e := range p.Events {
			if e.Kind == kind && (kind == "drop" || e.Denied) {
				out = append(out, e)
			}
		}
	}
	return out
}

// reasons counts the errors, the most frequent first.
func (p *Path) reasons() string {
	counts := map[string]int{}
	for _, t := range p.Tries {
		if !t.OK {
			counts[cmp.Or(t.Error, "no answer")]++
		}
	}
	var words []string
	for w := range counts {
		words = append(words, w)
	}
	slices.SortFunc(words, func(a, b string) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b)) })
	return strings.Join(words, ", ")
}
