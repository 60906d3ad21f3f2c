package act

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/internal/plan"
	"github.com/kubectl-kpr/kubectl-kpr/internal/residue"
	"github.com/kubectl-kpr/kubectl-kpr/internal/words"
)

// view is what a plan would change, the form of --dry-run -o json.
type view struct {
	Schema  string              `json:"schema"`
	Command string              `json:"command"`
	Context string              `json:"context"`
	Server  string              `json:"server"`
	Looked  int                 `json:"nodesLookedAt"`
	Digest  string              `json:"digest"`
	DryRun  bool                `json:"dryRun"`
	Nodes   []*residue.Proposal `json:"nodes"`
}

const viewSchema = "kubectl-kpr.residue-plan/v1"

func (c *cleaning) viewOfBackups(backups []*residue.Backup) *view {
	v := &view{Command: "residue restore", Looked: len(backups)}
	for _, b := range backups {
		v.Nodes = append(v.Nodes, b.Proposal())
	}
	return v
}

// show prints the plan: as data on standard output with --dry-run or as JSON
// only then, else for who is to confirm it.
func (c *cleaning) show(v *view) error {
	env := c.share.Env()
	about := c.op.src.About()
	v.Schema, v.Context, v.Server, v.DryRun = viewSchema, about.Context, about.Server, c.dryRun
	if c.format == "json" {
		if !c.dryRun && len(c.plan.Stages[0].Steps) > 0 {
			return nil // the result comes as JSON
		}
		e := json.NewEncoder(env.Out)
		e.SetIndent("", "  ")
		return e.Encode(v)
	}
	var b strings.Builder
	v.text(&b, c.format == "wide", strings.HasSuffix(v.Command, "restore"))
	if c.dryRun && len(c.plan.Stages[0].Steps) > 0 {
		fmt.Fprintf(&b, "\ndry run: nothing was changed. Digest of the plan, for --approve:\n%s\n", v.Digest)
	}
	_, err := io.WriteString(env.Out, c.share.Signs(b.String()))
	return err
}

// unlooked is the error of nodes on which nothing was found and something could
// not be looked at: that is not known to be nothing.
func (v *view) unlooked() error {
	var nodes []string
	what := ""
	for _, p := range v.Nodes {
		if !p.Empty() {
			return nil
		}
		if len(p.Unlooked) > 0 {
			nodes, what = append(nodes, p.Node), p.Unlooked[0]
		}
	}
	if len(nodes) == 0 {
		return nil
	}
	return fmt.Errorf("%s on %s: %w; --accept %s=REASON leaves it at that", what, joined(nodes, 5), plan.ErrUnverified, residue.RuleUnlooked)
}

// text groups nodes that lose the same.
func (v *view) text(b *strings.Builder, wide, back bool) {
	type group struct {
		text  string
		nodes []string
	}
	var groups []*group
	chains, rows, tables, with := 0, 0, 0, 0 // with: nodes that have something
	for _, p := range v.Nodes {
		if p.Empty() && len(p.Stays)+len(p.Unlooked) == 0 {
			continue
		}
		if !p.Empty() {
			with++
		}
		for _, t := range p.IPTables {
			chains, rows = chains+len(t.Chains), rows+t.Rows+len(t.Jumps)
		}
		tables += len(p.NFTables)
		text := lines(p, wide)
		i := slices.IndexFunc(groups, func(g *group) bool { return g.text == text })
		if i < 0 {
			i = len(groups)
			groups = append(groups, &group{text: text})
		}
		groups[i].nodes = append(groups[i].nodes, p.Node)
	}
	verb := "to remove"
	if back {
		verb = "to put back"
	}
	switch {
	case v.unlooked() != nil:
		fmt.Fprintf(b, "? nothing was found on %s, and not all could be looked at\n", words.Count(v.Looked, "node"))
	case with == 0:
		fmt.Fprintf(b, "✓ nothing of kube-proxy is on %s\n", words.Count(v.Looked, "node"))
	default:
		fmt.Fprintf(b, "%s: %s on %d of %s\n", verb, amount(chains, rows, tables), with, words.Count(v.Looked, "node"))
	}
	most := 5
	if wide {
		most = len(v.Nodes)
	}
	for _, g := range groups {
		fmt.Fprintf(b, "\n%s\n%s", clean(joined(g.nodes, most)), g.text)
	}
}

// lines tell what one node loses.
func lines(p *residue.Proposal, wide bool) string {
	var b strings.Builder
	for _, t := range p.IPTables {
		fmt.Fprintf(&b, "  iptables %-6s IPv%d  %-7s %s, %s, %s: %s\n", t.Backend, t.Family, t.Table,
			words.Count(len(t.Chains), "chain"), words.Count(t.Rows, "row"), words.Count(len(t.Jumps), "jump"), clean(chainNames(t.Chains, wide)))
		if wide {
			for _, j := range t.Jumps {
				fmt.Fprintf(&b, "      %s\n", clean(j))
			}
		}
	}
	for _, t := range p.NFTables {
		fmt.Fprintf(&b, "  nftables table %s\n", clean(t))
	}
	if i := p.IPVS; i != nil {
		fmt.Fprintf(&b, "  IPVS     %s of virtual servers, %s of IP sets", words.Count(len(i.Servers), "row"), words.Count(len(i.Sets), "row"))
		if i.Device {
			fmt.Fprintf(&b, ", kube-ipvs0 with %s", words.Count(len(i.Addresses), "address"))
		}
		b.WriteString("\n")
	}
	for _, k := range p.Stays {
		why := "a chain that stays leads there"
		if k.By != "" {
			why = "somebody else's row leads there: " + k.By
		}
		fmt.Fprintf(&b, "  stays    %s (%s): %s\n", clean(k.Chain), clean(k.Table), clean(why))
	}
	for _, u := range p.Unlooked {
		fmt.Fprintf(&b, "  ? not looked at: %s\n", clean(u))
	}
	return b.String()
}

// chainNames has the chains of Services by prefix only: there are thousands.
func chainNames(chains []string, wide bool) string {
	if wide {
		return strings.Join(chains, " ")
	}
	var names []string
	many := map[string]int{}
	for _, c := range chains {
		i := strings.LastIndex(c, "-")
		if len(c)-i-1 != 16 {
			names = append(names, c)
			continue
		}
		prefix := c[:i+1] + "*"
		if many[prefix]++; many[prefix] == 1 {
			names = append(names, prefix)
		}
	}
	for i, n := range names {
		if many[n] > 0 {
			names[i] = fmt.Sprintf("%s×%d", n, many[n])
		}
	}
	return strings.Join(names, " ")
}

func amount(chains, rows, tables int) string {
	var parts []string
	if chains > 0 {
		parts = append(parts, words.Count(chains, "chain")+" and "+words.Count(rows, "row"))
	}
	if tables > 0 {
		parts = append(parts, words.Count(tables, "nftables table"))
	}
	if len(parts) == 0 {
		parts = append(parts, "what there was")
	}
	return strings.Join(parts, ", ")
}

// progress tells each node's end on standard error, and on a terminal what is
// being done.
func (c *cleaning) progress() func(plan.Progress) {
	say := func(format string, args ...any) {
		_, _ = io.WriteString(c.share.Env().ErrOut, c.share.Signs(fmt.Sprintf(format, args...)))
	}
	return func(p plan.Progress) {
		switch p.Phase {
		case plan.PhaseDone:
			say("✓ %s: done and verified\n", clean(p.Step))
		case plan.PhaseBack:
			say("✓ %s: as it was before, verified\n", clean(p.Step))
		case plan.PhaseSkipped:
			if !c.undo { // what was never changed is no news on the way back
				say("· %s: already so\n", clean(p.Step))
			}
		case plan.PhaseApply, plan.PhaseUndo:
			say("  %s: %s\n", clean(p.Step), p.Phase)
		}
	}
}
