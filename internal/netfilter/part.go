package netfilter

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
)

// Part is what one save or listing holds, reduced to what the checks ask.
type Part struct {
	Family  Family
	Backend Backend // "" where nothing tells it
	Version string  // of the tool that read it, "1.8.9"
	// Whole: every table of the back end was read; else only Tables.
	Whole   bool
	Tables  []string
	Other   bool // the tool saw tables in the other back end
	Counted bool
	// Counts are the chains of each owner by table, "" where the table is not known.
	Counts []Count
	IPVS   bool // chains that only kube-proxy's IPVS mode makes
	// Jumps are the rows of the kernel's own chains that lead into a chain, in order.
	Jumps   []Jump
	Targets []Target
	Blocks  []Block
	Lost    []Lost
	// Services are those that kube-proxy's rows name, sorted; Used are those
	// of them whose rows have hits.
	Services []string
	Used     []string
}

// Count is how many chains an owner has in a table.
type Count struct {
	Table string
	Owner Owner
	N     int
}

// Jump is a row of a built-in chain: "nat", "POSTROUTING", "CILIUM_POST_nat".
type Jump struct{ Table, Chain, Target string }

// Target is where kube-proxy's rows send a Service's packets.
type Target struct {
	Service string // "shop/web"
	To      netip.AddrPort
	Packets uint64 // since the row was written
}

// Block is a row of kube-proxy that refuses a Service's packets.
type Block struct {
	Service string // "shop/web"
	Verdict string // REJECT, DROP
	// Empty: because the Service has no endpoint at all, by the row's comment.
	Empty   bool
	Packets uint64
}

// Has counts an owner's chains over all tables.
func (p *Part) Has(o Owner) int {
	n := 0
	for _, c := range p.Counts {
		if c.Owner == o {
			n += c.N
		}
	}
	return n
}

// Reads reports whether a table was read.
func (p *Part) Reads(table string) bool { return p.Whole || slices.Contains(p.Tables, table) }

// Stale are the targets that hold no longer, by what is current.
func Stale(ts []Target, current func(service string, at netip.AddrPort) bool) []Target {
	var out []Target
	for _, t := range ts {
		if !current(t.Service, t.To) {
			out = append(out, t)
		}
	}
	return out
}

// maxJumps bounds the rows of built-in chains that are kept; others than
// Cilium's and kube-proxy's can be any number.
const maxJumps = 256

// Part reduces a ruleset. Nothing in it is part of the decoded text.
func (r *Ruleset) Part(f Family) *Part {
	p := &Part{Family: f, Backend: r.Backend, Version: strings.Clone(r.Version), Other: r.Other, Counted: r.Counted}
	for _, t := range r.Tables() {
		p.Tables = append(p.Tables, strings.Clone(t))
	}
	for i := range r.Rules { // rows picked out by grep come without their chains
		if t := r.Rules[i].Table; t != "" && !slices.Contains(p.Tables, t) {
			p.Tables = append(p.Tables, strings.Clone(t))
		}
	}
	p.count(r.chains())
	b := builder{part: p, names: map[string]string{}, used: map[string]bool{}}
	for i := range r.Rules {
		b.take(&r.Rules[i])
	}
	b.finish()
	p.Lost = lost(r)
	return p
}

// chains are all chains that the text has or speaks of, once each.
func (r *Ruleset) chains() []Chain {
	seen := make(map[Chain]bool, len(r.Chains))
	out := make([]Chain, 0, len(r.Chains))
	take := func(c Chain) {
		if c.Name != "" && !seen[c] {
			seen[c] = true
			out = append(out, c)
		}
	}
	for _, c := range r.Chains {
		take(c)
	}
	var last Chain
	for i := range r.Rules {
		rule := &r.Rules[i]
		if c := (Chain{rule.Table, rule.Chain}); c != last {
			take(c)
			last = c
		}
		if hashed(rule.Target) {
			take(Chain{rule.Table, rule.Target})
		}
	}
	return out
}

func (p *Part) count(chains []Chain) {
	for _, c := range chains {
		o := OwnerOf(c)
		if o == Other {
			continue
		}
		p.IPVS = p.IPVS || IPVSChain(c.Name)
		i := slices.IndexFunc(p.Counts, func(n Count) bool { return n.Table == c.Table && n.Owner == o })
		if i < 0 {
			i = len(p.Counts)
			p.Counts = append(p.Counts, Count{Table: strings.Clone(c.Table), Owner: o})
		}
		p.Counts[i].N++
	}
	slices.SortFunc(p.Counts, func(a, b Count) int {
		return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(a.Owner, b.Owner))
	})
}

// builder collects what rows say; names holds each Service's name once.
type builder struct {
	part  *Part
	names map[string]string
	used  map[string]bool
}

func (b *builder) take(r *Rule) {
	switch r.Chain {
	case "PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING":
		if r.Target != "" && len(b.part.Jumps) < maxJumps {
			b.part.Jumps = append(b.part.Jumps, Jump{strings.Clone(r.Table), strings.Clone(r.Chain), strings.Clone(r.Target)})
		}
		return
	}
	if r.Chain != "" && OwnerOf(Chain{r.Table, r.Chain}) != KubeProxy || r.Chain == "" && !hashed(r.Target) {
		return
	}
	service := b.name(serviceOf(r.Comment))
	if service == "" {
		return
	}
	switch {
	case r.Target == "DNAT" && r.To.IsValid():
		b.part.Targets = append(b.part.Targets, Target{service, r.To, r.Packets})
	case r.Target == "REJECT", r.Target == "DROP", r.Target == "KUBE-MARK-DROP":
		verdict := "DROP"
		if r.Target == "REJECT" {
			verdict = "REJECT"
		}
		b.part.Blocks = append(b.part.Blocks, Block{service, verdict, strings.HasSuffix(r.Comment, " has no endpoints"), r.Packets})
	case !hashed(r.Target):
		return
	}
	// Rows that every packet passes have hits in any case: KUBE-POSTROUTING's
	// RETURN, the last row of KUBE-SERVICES. Those of a Service show use.
	if r.Packets > 0 {
		b.used[service] = true
	}
}

func (b *builder) name(s string) string {
	if s == "" {
		return ""
	}
	known, ok := b.names[s]
	if !ok {
		known = strings.Clone(s)
		b.names[known] = known
	}
	return known
}

func (b *builder) finish() {
	for s := range b.names {
		b.part.Services = append(b.part.Services, s)
		if b.used[s] {
			b.part.Used = append(b.part.Used, s)
		}
	}
	slices.Sort(b.part.Services)
	slices.Sort(b.part.Used)
}

// serviceOf finds namespace/name in a comment of kube-proxy: "shop/web:http
// cluster IP", "shop/web:http -> 10.0.0.1:80", "masquerade traffic for
// shop/web:http external destinations". It is "" where the comment names none.
func serviceOf(comment string) string {
	for w := range strings.FieldsSeq(comment) {
		namespace, name, ok := strings.Cut(w, "/")
		name, _, _ = strings.Cut(name, ":")
		if ok && label(namespace) && label(name) {
			return namespace + "/" + name
		}
	}
	return ""
}

// label holds for names that Kubernetes gives to namespaces and Services.
func label(s string) bool {
	return s != "" && len(s) <= 63 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}
