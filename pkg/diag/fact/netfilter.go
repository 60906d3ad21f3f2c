package fact

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/internal/netfilter"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// Netfilter is what iptables of both back ends and families holds on a node.
var Netfilter = Define("netfilter", true, netfilterNeeds(), readNetfilter)

// Rules are the iptables rules of a node, as far as they were read.
type Rules struct {
	Parts []*netfilter.Part
	// Unread is what stays in the dark, in the order of families: a back end
	// that was not read, or of which only some tables were.
	Unread []Unread
}

// Unread is a back end of one family that was not read, or not as a whole.
type Unread struct {
	What string // "ip6tables of the legacy back end"
	Err  error
}

// Chains counts an owner's chains over everything that was read.
func (r Rules) Chains(o netfilter.Owner) int {
	n := 0
	for _, p := range r.Parts {
		n += p.Has(o)
	}
	return n
}

// Unseen names what was not read, "" if all was.
func (r Rules) Unseen() string {
	var names []string
	for _, u := range r.Unread {
		names = append(names, u.What)
	}
	return strings.Join(names, ", ")
}

// back is how one back end of one family is read.
type back struct {
	family netfilter.Family
	nft    bool
	save   Key[*netfilter.Part]
	lists  []Key[*netfilter.Part] // listings of single tables
}

// backends are the four sets of rules that a node can have. Each is read by a
// tool of its own name: iptables without -nft or -legacy shows only one.
var backends = []back{
	{netfilter.IPv4, true, saved(source.NFTSave, netfilter.IPv4, netfilter.NFT), []Key[*netfilter.Part]{
		listed(source.IPTablesNAT, netfilter.IPv4, "nat"), listed(source.IPTablesFilter, netfilter.IPv4, "filter"),
		listed(source.IPTablesMangle, netfilter.IPv4, "mangle"), listed(source.IPTablesRows, netfilter.IPv4, "")}},
	{netfilter.IPv4, false, saved(source.LegacySave, netfilter.IPv4, netfilter.Legacy), nil},
	{netfilter.IPv6, true, saved(source.NFTSave6, netfilter.IPv6, netfilter.NFT), []Key[*netfilter.Part]{
		listed(source.IPTablesNAT6, netfilter.IPv6, "nat"), listed(source.IPTablesFilter6, netfilter.IPv6, "filter"),
		listed(source.IPTablesMangle6, netfilter.IPv6, "mangle")}},
	{netfilter.IPv6, false, saved(source.LegacySave6, netfilter.IPv6, netfilter.Legacy), nil},
}

func netfilterNeeds() []Named {
	var out []Named
	for _, b := range backends {
		out = append(out, b.save)
		for _, l := range b.lists {
			out = append(out, l)
		}
	}
	return out
}

// saved reads a save. A file by the plain name iptables-save is of whichever
// back end its first line tells; without that line it may be part of a save.
func saved(t source.Topic, f netfilter.Family, b netfilter.Backend) Key[*netfilter.Part] {
	return Read(t, func(a source.Artifact) (*netfilter.Part, error) {
		r, err := netfilter.Decode(a.Data, "")
		p := r.Part(f)
		plain := a.Stem == "iptables-save" || a.Stem == "ip6tables-save"
		if !plain {
			p.Backend = b
		}
		p.Whole = err == nil && (!plain || r.Backend != "")
		return p, err
	})
}

func listed(t source.Topic, f netfilter.Family, table string) Key[*netfilter.Part] {
	return Read(t, func(a source.Artifact) (*netfilter.Part, error) {
		r, err := netfilter.Decode(a.Data, table)
		p := r.Part(f)
		if err == nil && table != "" && !slices.Contains(p.Tables, table) {
			p.Tables = append(p.Tables, table)
		}
		return p, err
	})
}

func readNetfilter(v *View) (Rules, error) {
	var out Rules
	errs := make([]error, len(backends))
	for i, b := range backends {
		var part *netfilter.Part
		if part, errs[i] = b.save.From(v); part != nil {
			out.Parts = append(out.Parts, part)
		}
		for _, l := range b.lists {
			p, err := l.From(v)
			if p != nil && !out.covers(p) {
				out.Parts = append(out.Parts, p)
			}
			if err != nil && !errors.Is(err, source.ErrAbsent) {
				errs[i] = err
			}
		}
	}
	if len(out.Parts) == 0 {
		return out, errs[0]
	}
	for i, b := range backends {
		if !out.reads(b) {
			out.Unread = append(out.Unread, Unread{What: nameOf(b), Err: out.why(b, errs[i])})
		}
	}
	return out, nil
}

// covers holds where a save has already told what a listing tells.
func (r Rules) covers(p *netfilter.Part) bool {
	for _, t := range p.Tables {
		if !slices.ContainsFunc(r.Parts, func(have *netfilter.Part) bool { return have.Family == p.Family && have.Reads(t) }) {
			return false
		}
	}
	return len(p.Tables) > 0
}

// warns is the iptables since which the nft back end's tools say, on every
// run, that the legacy back end has tables.
const warns = "1.8.2"

// reads holds where every table of a back end was read, or where the other
// back end's tool, which would warn of it, does not.
func (r Rules) reads(b back) bool {
	for _, p := range r.Parts {
		if p.Family != b.family || !p.Whole {
			continue
		}
		switch {
		case (p.Backend == netfilter.Legacy) != b.nft && p.Backend != "":
			return true
		case !b.nft && p.Backend == netfilter.NFT && p.Version != "" && !p.Other && !netfilter.Older(p.Version, warns):
			return true
		}
	}
	return false
}

func (r Rules) why(b back, err error) error {
	switch {
	case err == nil:
		return fmt.Errorf("%s: only some tables are there: %w", b.save.ID(), source.ErrAbsent)
	case !b.nft && slices.ContainsFunc(r.Parts, func(p *netfilter.Part) bool { return p.Family == b.family && p.Other }):
		return fmt.Errorf("%w, and it has tables by the word of the other back end's tool", err)
	}
	return err
}

func nameOf(b back) string {
	tool, backend := "iptables", "legacy"
	if b.family == netfilter.IPv6 {
		tool = "ip6tables"
	}
	if b.nft {
		backend = "nft"
	}
	return tool + " of the " + backend + " back end"
}
