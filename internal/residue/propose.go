package residue

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"

	"github.com/kubectl-kpr/kubectl-kpr/internal/netfilter"
)

// Proposal is what would go on one node.
type Proposal struct {
	Node     string    `json:"node"`
	IPTables []TableOf `json:"iptables"`
	NFTables []string  `json:"nftables"`
	IPVS     *IPVS     `json:"ipvs,omitempty"`
	Stays    []Staying `json:"stays,omitempty"` // kube-proxy's, but somebody else's row leads there
	Unlooked []string  `json:"unlooked,omitempty"`

	Input Input `json:"-"`
}

// TableOf is what would go of one table.
type TableOf struct {
	Backend string   `json:"backend"` // nft, legacy
	Family  int      `json:"family"`  // 4, 6
	Table   string   `json:"table"`
	Chains  []string `json:"chains"`
	Jumps   []string `json:"jumps"` // rows of the kernel's own chains
	Rows    int      `json:"rows"`  // of Chains
}

// Staying is a chain of kube-proxy that cannot go, and the row of somebody else
// that leads to it, "" where that is a row of another such chain.
type Staying struct {
	Table string `json:"table"`
	Chain string `json:"chain"`
	By    string `json:"by,omitempty"`
}

// Propose tells what a holding's node would lose.
func Propose(node string, kubelet bool, h *Holding) *Proposal {
	p := &Proposal{Node: node, IPTables: []TableOf{}, NFTables: []string{}, Unlooked: h.Unlooked}
	sum := sha256.New()
	for i, b := range backs() {
		s := h.Saves[i]
		backend := strings.SplitN(b.tool, "-", 2)[1]
		for _, t := range s.Removal.Tables {
			p.IPTables = append(p.IPTables, TableOf{backend, int(b.Family), t.Table, t.Chains, append([]string{}, t.Jumps...), len(t.Rows)})
		}
		for _, k := range s.Removal.Kept {
			p.Stays = append(p.Stays, Staying{k.Table, k.Chain, k.By})
		}
		_, _ = fmt.Fprintf(sum, "%s\n%s", s.Tool, s.Removal.Restore())
	}
	for _, t := range h.Tables {
		name := netfilter.NFTable{Family: t.Family}.Name()
		p.NFTables = append(p.NFTables, name)
		_, _ = fmt.Fprintf(sum, "nft %s\n", name)
	}
	if !h.IPVS.Empty() {
		p.IPVS = &h.IPVS
		_, _ = fmt.Fprintf(sum, "ipvs %v %q %q\n", h.IPVS.Device, setNames(h.IPVS.Sets), h.IPVS.Servers)
	}
	p.Input = Input{Node: node, Kubelet: kubelet, Proposed: hex.EncodeToString(sum.Sum(nil)), Unlooked: strings.Join(h.Unlooked, "; ")}
	return p
}

// Empty holds where nothing would go.
func (p *Proposal) Empty() bool { return len(p.IPTables) == 0 && len(p.NFTables) == 0 && p.IPVS == nil }

// Survey looks at nodes, a few at a time, in their order. An error is told
// beside its node and does not end the others.
func Survey(ctx context.Context, nodes []Input, at int, open func(ctx context.Context, node string) (Shell, error)) ([]*Proposal, []error) {
	found, errs := make([]*Proposal, len(nodes)), make([]error, len(nodes))
	slots := make(chan struct{}, max(1, at))
	var wg sync.WaitGroup
	for i, n := range nodes {
		wg.Go(func() {
			select {
			case slots <- struct{}{}:
				defer func() { <-slots }()
			case <-ctx.Done():
				errs[i] = ctx.Err()
				return
			}
			sh, err := open(ctx, n.Node)
			if err != nil {
				errs[i] = fmt.Errorf("node %s: %w", n.Node, err)
				return
			}
			defer sh.Close(ctx)
			h, err := Look(ctx, sh, n.Kubelet)
			if err != nil {
				errs[i] = fmt.Errorf("node %s: %w", n.Node, err)
				return
			}
			found[i] = Propose(n.Node, n.Kubelet, h)
		})
	}
	wg.Wait()
	return found, errs
}

// Words tells what there is: "48 chains and 126 rows of iptables, table ip
// kube-proxy", or "nothing of kube-proxy".
func (h *Holding) Words() string {
	chains, rows := 0, 0
	for _, s := range h.Saves {
		c, r := s.Removal.Count()
		chains, rows = chains+c, rows+r
	}
	var parts []string
	if chains > 0 {
		parts = append(parts, fmt.Sprintf("%d chains and %d rows of iptables", chains, rows))
	}
	for _, t := range h.Tables {
		parts = append(parts, "table "+netfilter.NFTable{Family: t.Family}.Name())
	}
	if !h.IPVS.Empty() {
		parts = append(parts, fmt.Sprintf("%d IP sets and %d rows of IPVS", len(setNames(h.IPVS.Sets)), len(h.IPVS.Servers)))
	}
	if len(parts) == 0 {
		return "nothing of kube-proxy"
	}
	return strings.Join(parts, ", ")
}

// Proposal tells what the backup's node would get back. It is of a backup that
// Read has read.
func (b *Backup) Proposal() *Proposal {
	h, err := b.holding()
	if err != nil {
		return &Proposal{Node: b.Node, Unlooked: []string{err.Error()}}
	}
	return Propose(b.Node, b.Kubelet, h)
}
