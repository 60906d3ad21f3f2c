package residue

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/internal/netfilter"
	"github.com/kubectl-kpr/kubectl-kpr/internal/plan"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/exec"
)

// Shell runs commands in a node's host namespaces, as root.
type Shell interface {
	Run(ctx context.Context, argv []string, input []byte, max exec.Limits) (exec.Result, error)
	Close(ctx context.Context)
}

const (
	// framed runs its arguments and ends their output with a line of its own:
	// what comes without it has been cut, however it looks.
	framed = `"$@"; c=$?; printf '\n# kpr end %d\n' "$c"; exit "$c"`
	// locked runs its arguments under the host's lock of the legacy iptables.
	locked = `export XTABLES_LOCKFILE=/proc/1/root/run/xtables.lock; exec "$@"`
)

// onHost is what precedes an argv to run a program of the host.
var onHost = []string{"nsenter", "-t", "1", "-m", "--"}

// most is the largest output that is read: fifty thousand rows are 10 MiB.
const most = 64 << 20

// back is a back end of iptables in one family.
type back struct {
	tool   string // what saves it; the same with "restore" writes it
	Family netfilter.Family
}

// backs are all that a node can have rules in.
func backs() []back {
	return []back{
		{"iptables-nft", netfilter.IPv4}, {"ip6tables-nft", netfilter.IPv6},
		{"iptables-legacy", netfilter.IPv4}, {"ip6tables-legacy", netfilter.IPv6},
	}
}

// Holding is what a node has of kube-proxy.
type Holding struct {
	Saves  []Save
	Tables []Table // kube-proxy's, of nftables
	IPVS   IPVS
	// Unlooked is what could not be looked at, in words.
	Unlooked []string
}

// Save is what one back end of iptables has.
type Save struct {
	Tool    string // "iptables-nft"
	Data    []byte // all of it, as the tool prints it
	Removal netfilter.Removal
}

// Table is a table of nftables.
type Table struct {
	Family netfilter.Family
	Text   []byte // as nft lists it, without counters
}

// Empty holds where nothing is there that can be removed.
func (h *Holding) Empty() bool {
	return len(h.Tables) == 0 && h.IPVS.Empty() && !slices.ContainsFunc(h.Saves, func(s Save) bool { return !s.Removal.Empty() })
}

// Same holds where two look the same.
func (h *Holding) Same(o *Holding) bool {
	return slices.EqualFunc(h.Saves, o.Saves, func(a, b Save) bool { return a.Tool == b.Tool && a.Removal.Equal(b.Removal) }) &&
		slices.EqualFunc(h.Tables, o.Tables, func(a, b Table) bool { return a.Family == b.Family && bytes.Equal(a.Text, b.Text) }) &&
		h.IPVS.Same(o.IPVS)
}

// Look reads a node. Where kubelet is set, its kubelet shares chains with
// kube-proxy. What cannot be read whole is an error that wraps
// plan.ErrUnverified.
func Look(ctx context.Context, sh Shell, kubelet bool) (*Holding, error) {
	h := &Holding{}
	for _, b := range backs() {
		data, err := output(ctx, sh, b.tool+"-save")
		if err != nil {
			return nil, err
		}
		r, err := netfilter.Removable(data, kubelet)
		if err != nil {
			return nil, fmt.Errorf("%s-save: %w: %w", b.tool, plan.ErrUnverified, err)
		}
		h.Saves = append(h.Saves, Save{b.tool, data, r})
	}
	if err := h.nft(ctx, sh); err != nil {
		return nil, err
	}
	return h, h.ipvs(ctx, sh)
}

// nft reads kube-proxy's tables, where the host has the tool.
func (h *Holding) nft(ctx context.Context, sh Shell) error {
	list, err := run(ctx, sh, slices.Concat(onHost, []string{"nft", "list", "tables"}), nil)
	if err != nil {
		return err
	}
	if list.Code == 127 || list.Code == 126 {
		h.Unlooked = append(h.Unlooked, "tables of nftables: the host has no nft")
		return nil
	}
	names, err := whole("nft list tables", list)
	if err != nil {
		return err
	}
	for _, f := range []netfilter.Family{netfilter.IPv4, netfilter.IPv6} {
		name := netfilter.NFTable{Family: f}.Name()
		if !slices.Contains(strings.Split(string(names), "\n"), "table "+name) {
			continue
		}
		argv := slices.Concat(onHost, []string{"nft", "-s", "list", "table"}, strings.Fields(name))
		text, err := output(ctx, sh, argv...)
		if err != nil {
			return err
		}
		if err := netfilter.ProxyTable(text, f); err != nil {
			return fmt.Errorf("nft list table %s: %w: %w", name, plan.ErrUnverified, err)
		}
		h.Tables = append(h.Tables, Table{f, text})
	}
	return nil
}

// output is what an argv prints, all of it.
func output(ctx context.Context, sh Shell, argv ...string) ([]byte, error) {
	r, err := run(ctx, sh, argv, nil)
	if err != nil {
		return nil, err
	}
	return whole(strings.Join(argv, " "), r)
}

func run(ctx context.Context, sh Shell, argv []string, input []byte) (exec.Result, error) {
	r, err := sh.Run(ctx, slices.Concat([]string{"sh", "-c", framed, "kpr"}, argv), input, exec.Limits{Stdout: most, Stderr: 64 << 10})
	if err != nil {
		return r, fmt.Errorf("%s: %w: %w", argv[0], plan.ErrUnverified, err)
	}
	return r, nil
}

// whole is the output of a framed command that ended well.
func whole(what string, r exec.Result) ([]byte, error) {
	if r.Code != 0 {
		return nil, fmt.Errorf("%s: exit code %d: %s: %w", what, r.Code, words(r.Stderr), plan.ErrUnverified)
	}
	data, ok := bytes.CutSuffix(r.Stdout, []byte("\n# kpr end 0\n"))
	if !ok {
		return nil, fmt.Errorf("%s: its output is cut off: %w", what, plan.ErrUnverified)
	}
	return data, nil
}

// words are the first of what a command complained of.
func words(stderr []byte) string {
	text := strings.Join(strings.Fields(string(stderr)), " ")
	if len(text) > 300 {
		text = text[:300] + "…"
	}
	return text
}
