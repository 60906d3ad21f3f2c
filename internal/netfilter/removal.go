package netfilter

import (
	"fmt"
	"slices"
	"strings"
)

// Removal is what of a save is kube-proxy's, and so can go, in the order of
// the save.
type Removal struct {
	Tables []TableRemoval
	// Kept are chains of kube-proxy that cannot go: rows of others lead there.
	Kept []Kept
}

// TableRemoval is that of one table.
type TableRemoval struct {
	Table  string
	Chains []string
	Jumps  []string // rows of the kernel's own chains that lead there: "-A INPUT …"
	Rows   []string // all rows of Chains
}

// Kept is a chain that stays, and the row that leads to it, "" where that is a
// row of another chain that stays.
type Kept struct{ Table, Chain, By string }

// Empty holds where there is nothing to remove.
func (r Removal) Empty() bool { return len(r.Tables) == 0 }

// Equal holds where two saves have the same of kube-proxy, whatever else is in
// them.
func (r Removal) Equal(o Removal) bool {
	return slices.EqualFunc(r.Tables, o.Tables, func(a, b TableRemoval) bool {
		return a.Table == b.Table && slices.Equal(sorted(a.Chains), sorted(b.Chains)) && slices.Equal(a.Jumps, b.Jumps) && slices.Equal(sorted(a.Rows), sorted(b.Rows))
	})
}

func sorted(s []string) []string { return slices.Sorted(slices.Values(s)) }

// Count is how many chains and rows would go.
func (r Removal) Count() (chains, rows int) {
	for _, t := range r.Tables {
		chains += len(t.Chains)
		rows += len(t.Rows) + len(t.Jumps)
	}
	return chains, rows
}

// Restore is what iptables-restore --noflush takes to remove it all: of each
// table first the jumps, then what the chains hold, then the chains. A table
// changes as a whole or not at all.
func (r Removal) Restore() []byte {
	var b strings.Builder
	for _, t := range r.Tables {
		_, _ = fmt.Fprintf(&b, "*%s\n", t.Table)
		for _, j := range t.Jumps {
			b.WriteString("-D" + strings.TrimPrefix(j, "-A") + "\n")
		}
		for _, op := range []string{"-F ", "-X "} {
			for _, c := range t.Chains {
				b.WriteString(op + c + "\n")
			}
		}
		b.WriteString("COMMIT\n")
	}
	return []byte(b.String())
}

// Removable reads a save without counters and finds what is proven to be
// kube-proxy's: its chains by exact name or shape, and rows of the kernel's own
// chains that lead there and have kube-proxy's comment. Where kubelet is set,
// the chains that kubelets before 1.27 share with it are the kubelet's; without,
// they are kube-proxy's beside chains that it alone makes.
func Removable(save []byte, kubelet bool) (Removal, error) {
	s, err := decodeSave(save)
	if err != nil {
		return Removal{}, err
	}
	var out Removal
	own := s.own(kubelet)
	if len(own) == 0 {
		return out, nil
	}
	kept := s.kept(own)
	for _, k := range kept {
		delete(own, Chain{k.Table, k.Chain})
	}
	out.Kept = kept
	for _, table := range s.rules.Tables() {
		t := TableRemoval{Table: table}
		for _, c := range s.rules.Chains {
			if c.Table == table && own[c] {
				t.Chains = append(t.Chains, c.Name)
			}
		}
		for i := range s.rules.Rules {
			r := &s.rules.Rules[i]
			switch {
			case r.Table != table:
			case own[Chain{table, r.Chain}]:
				t.Rows = append(t.Rows, s.text(r))
			case own[Chain{table, r.Target}]:
				t.Jumps = append(t.Jumps, s.text(r)) // others' rows have kept their chains
			}
		}
		if len(t.Chains) > 0 {
			out.Tables = append(out.Tables, t)
		}
	}
	return out, nil
}

// save is a decoded save with its lines.
type save struct {
	rules *Ruleset
	lines []string
}

func (s *save) text(r *Rule) string { return s.lines[r.Line-1] }

func decodeSave(data []byte) (*save, error) {
	rules, err := Decode(data, "")
	if err != nil {
		return nil, err
	}
	s := &save{rules: rules}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		s.lines = append(s.lines, line)
		if strings.HasPrefix(line, "# Table `") && strings.Contains(line, "incompatible") {
			return nil, fmt.Errorf("line %d: %s", len(s.lines), strings.TrimPrefix(line, "# "))
		}
	}
	if rules.Counted {
		return nil, fmt.Errorf("the save has counters, it must be one without")
	}
	for i := range rules.Rules {
		if r := &rules.Rules[i]; r.Table == "" || !strings.HasPrefix(s.text(r), "-A ") {
			return nil, fmt.Errorf("line %d: a row of no table, or one that is not appended", r.Line)
		}
	}
	return s, nil
}

// own are the chains that are kube-proxy's.
func (s *save) own(kubelet bool) map[Chain]bool {
	own := map[Chain]bool{}
	var shared []Chain
	for _, c := range s.rules.Chains {
		switch OwnerOf(c) {
		case KubeProxy:
			own[c] = true
		case Shared:
			shared = append(shared, c)
		}
	}
	if !kubelet && len(own) > 0 {
		for _, c := range shared {
			own[c] = true
		}
	}
	return own
}

// kept are the chains that rows of others lead to, and all that these lead to.
// Marking and masquerading are one thing: where a mark stays in use, all of it stays.
func (s *save) kept(own map[Chain]bool) []Kept {
	var out []Kept
	seen := map[Chain]bool{}
	keep := func(c Chain, by string) {
		if own[c] && !seen[c] {
			seen[c] = true
			out = append(out, Kept{c.Table, c.Name, by})
		}
	}
	to := map[Chain][]string{}
	for i := range s.rules.Rules {
		r := &s.rules.Rules[i]
		from, target := Chain{r.Table, r.Chain}, Chain{r.Table, r.Target}
		switch {
		case !own[target]:
		case own[from]:
			to[from] = append(to[from], r.Target)
		case !proxyJump(r):
			keep(target, s.text(r))
		}
	}
	for i := 0; i < len(out); i++ { // grows
		c := Chain{out[i].Table, out[i].Chain}
		next := to[c]
		if slices.Contains(sharedChains, c.Name) {
			next = append(slices.Clone(next), sharedChains...)
		}
		for _, n := range next {
			keep(Chain{c.Table, n}, "")
		}
	}
	return out
}

// proxyJump holds for rows of the kernel's own chains that kube-proxy makes.
// All of them have its comment: "kubernetes service portals", "kubernetes
// postrouting rules"; of the userspace mode "handle ClusterIPs; NOTE: …".
func proxyJump(r *Rule) bool {
	return builtin(r.Chain) && (strings.HasPrefix(r.Comment, "kubernetes ") || strings.HasPrefix(r.Comment, "handle "))
}

func builtin(chain string) bool {
	return slices.Contains(builtins(), chain)
}
