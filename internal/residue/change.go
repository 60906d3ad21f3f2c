package residue

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/internal/netfilter"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/exec"
)

// tries is how often a node is looked at again where its rules changed between
// the look and the change.
const tries = 3

// Remove removes what a node has of kube-proxy. It may have been run before,
// to its end or only half.
func Remove(ctx context.Context, sh Shell, kubelet bool) error {
	var last error
	for range tries {
		h, err := Look(ctx, sh, kubelet)
		if err != nil {
			return err
		}
		if h.Empty() {
			return nil
		}
		if last = h.remove(ctx, sh); last == nil || ctx.Err() != nil {
			return last
		}
	}
	return last
}

func (h *Holding) remove(ctx context.Context, sh Shell) error {
	for _, s := range h.Saves {
		if !s.Removal.Empty() {
			if err := write(ctx, sh, s.Tool, s.Removal.Restore()); err != nil {
				return err
			}
		}
	}
	for _, t := range h.Tables {
		name := netfilter.NFTable{Family: t.Family}.Name()
		if err := do(ctx, sh, nil, slices.Concat(onHost, []string{"nft", "delete", "table"}, strings.Fields(name))...); err != nil {
			return err
		}
	}
	return h.IPVS.remove(ctx, sh)
}

// remove takes the virtual servers first: without the device's addresses, what
// a node sends itself would still be balanced by them.
func (i IPVS) remove(ctx context.Context, sh Shell) error {
	for _, r := range i.Servers {
		f := strings.Fields(r)
		if f[0] != "-A" {
			continue
		}
		if err := do(ctx, sh, nil, slices.Concat(onHost, []string{"ipvsadm", "-D", f[1], f[2]})...); err != nil {
			return err
		}
	}
	if i.Device {
		if err := do(ctx, sh, nil, "ip", "link", "delete", device); err != nil {
			return err
		}
	}
	for _, name := range setNames(i.Sets) {
		if err := do(ctx, sh, nil, "ipset", "destroy", name); err != nil {
			return err
		}
	}
	return nil
}

// GiveBack brings what a node has of kube-proxy to what the backup has of it,
// from nothing, from all of it and from any part.
func GiveBack(ctx context.Context, sh Shell, b *Backup) error {
	want, err := b.holding()
	if err != nil {
		return err
	}
	var last error
	for range tries {
		h, err := Look(ctx, sh, b.Kubelet)
		if err != nil {
			return err
		}
		if h.Same(want) {
			return nil
		}
		if h.beyond(want) {
			if err := h.remove(ctx, sh); err != nil {
				last = err
				continue
			}
			if h, err = Look(ctx, sh, b.Kubelet); err != nil {
				return err
			}
		}
		if last = h.giveBack(ctx, sh, want, b.Kubelet); last == nil || ctx.Err() != nil {
			return last
		}
	}
	return last
}

// beyond holds where a node has something that the backup has not. All of it
// goes then, before the backup's comes.
func (h *Holding) beyond(want *Holding) bool {
	for i, s := range h.Saves {
		have, wanted := map[string]bool{}, map[string]bool{}
		for _, t := range want.Saves[i].Removal.Tables {
			for _, c := range slices.Concat(t.Chains, t.Jumps) {
				wanted[t.Table+" "+c] = true
			}
		}
		for _, t := range s.Removal.Tables {
			for _, c := range slices.Concat(t.Chains, t.Jumps) {
				have[t.Table+" "+c] = true
			}
		}
		for c := range have {
			if !wanted[c] {
				return true
			}
		}
	}
	return len(h.Tables) > len(want.Tables) || !h.IPVS.Empty() && !h.IPVS.Same(want.IPVS)
}

func (h *Holding) giveBack(ctx context.Context, sh Shell, want *Holding, kubelet bool) error {
	if err := h.IPVS.giveBack(ctx, sh, want.IPVS); err != nil { // sets before the rows that name them
		return err
	}
	for i, s := range want.Saves {
		if h.Saves[i].Removal.Equal(s.Removal) {
			continue
		}
		input, err := netfilter.GiveBack(s.Data, h.Saves[i].Data, kubelet)
		if err != nil {
			return err
		}
		if len(input) > 0 {
			if err := write(ctx, sh, s.Tool, input); err != nil {
				return err
			}
		}
	}
	for _, t := range want.Tables {
		name := netfilter.NFTable{Family: t.Family}.Name()
		input := fmt.Sprintf("table %s {\n}\ndelete table %s\n%s", name, name, t.Text) // in one transaction
		if err := do(ctx, sh, []byte(input), slices.Concat(onHost, []string{"nft", "-f", "-"})...); err != nil {
			return err
		}
	}
	return nil
}

func (i IPVS) giveBack(ctx context.Context, sh Shell, want IPVS) error {
	if want.Same(i) {
		return nil
	}
	if len(want.Sets) > 0 {
		if err := do(ctx, sh, []byte(strings.Join(want.Sets, "\n")+"\n"), "ipset", "-exist", "restore"); err != nil {
			return err
		}
	}
	if want.Device && !i.Device {
		if err := do(ctx, sh, nil, "ip", "link", "add", device, "type", "dummy"); err != nil {
			return err
		}
	}
	for _, a := range want.Addresses {
		if err := do(ctx, sh, nil, "ip", "address", "replace", a, "dev", device); err != nil {
			return err
		}
	}
	if len(want.Servers) == 0 {
		return nil
	}
	return do(ctx, sh, []byte(strings.Join(want.Servers, "\n")+"\n"), slices.Concat(onHost, []string{"ipvsadm-restore"})...)
}

// write gives iptables-restore its input. -w waits for whoever else writes.
func write(ctx context.Context, sh Shell, tool string, input []byte) error {
	return do(ctx, sh, input, "sh", "-c", locked, "kpr", tool+"-restore", "--noflush", "-w", "10")
}

func do(ctx context.Context, sh Shell, input []byte, argv ...string) error {
	what := strings.Join(argv, " ")
	if argv[0] == "sh" {
		what = strings.Join(argv[4:], " ")
	}
	r, err := sh.Run(ctx, argv, input, exec.Limits{Stdout: 64 << 10, Stderr: 64 << 10})
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if r.Code != 0 {
		return fmt.Errorf("%s: exit code %d: %s", what, r.Code, words(r.Stderr))
	}
	return nil
}
