package residue

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/internal/netfilter"
	"github.com/kubectl-kpr/kubectl-kpr/internal/plan"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/exec"
)

// Schema is the form of backups.
const Schema = "kubectl-kpr.residue-backup/v1"

// Backup is what a node had, in full.
type Backup struct {
	Schema  string    `json:"schema"`
	Target  string    `json:"target"` // the cluster
	Node    string    `json:"node"`
	Time    time.Time `json:"time"`
	Kubelet bool      `json:"kubeletSharesChains"`
	// IPTables are whole saves by tool, NFTables kube-proxy's tables by family.
	IPTables []Text `json:"iptables"`
	NFTables []Text `json:"nftables,omitempty"`
	IPVS     IPVS   `json:"ipvs"`
}

// Text is what a tool printed.
type Text struct {
	By   string `json:"by"` // "iptables-nft", "ip kube-proxy"
	Text string `json:"text"`
}

// backupOf is what a holding is restored from.
func backupOf(target, node string, kubelet bool, h *Holding, now time.Time) *Backup {
	b := &Backup{Schema: Schema, Target: target, Node: node, Time: now.UTC().Truncate(time.Second), Kubelet: kubelet, IPVS: h.IPVS}
	for _, s := range h.Saves {
		b.IPTables = append(b.IPTables, Text{s.Tool, string(s.Data)})
	}
	for _, t := range h.Tables {
		b.NFTables = append(b.NFTables, Text{netfilter.NFTable{Family: t.Family}.Name(), string(t.Text)})
	}
	return b
}

// Read reads a backup and checks that all of it is what it says.
func Read(data []byte) (*Backup, error) {
	var b Backup
	if err := json.Unmarshal(data, &b); err != nil {
		return nil, fmt.Errorf("not a backup of residue clean: %w", err)
	}
	if b.Schema != Schema || b.Node == "" || b.Target == "" {
		return nil, fmt.Errorf("not a backup of residue clean: schema %q, want %q", b.Schema, Schema)
	}
	if _, err := b.holding(); err != nil {
		return nil, err
	}
	return &b, nil
}

// holding is what the backup's node had.
func (b *Backup) holding() (*Holding, error) {
	h := &Holding{IPVS: b.IPVS}
	for _, back := range backs() {
		i := slices.IndexFunc(b.IPTables, func(t Text) bool { return t.By == back.tool })
		if i < 0 {
			return nil, fmt.Errorf("backup of %s: no save of %s", b.Node, back.tool)
		}
		data := []byte(b.IPTables[i].Text)
		r, err := netfilter.Removable(data, b.Kubelet)
		if err != nil {
			return nil, fmt.Errorf("backup of %s: %s: %w", b.Node, back.tool, err)
		}
		h.Saves = append(h.Saves, Save{back.tool, data, r})
	}
	for _, t := range b.NFTables {
		family := netfilter.IPv4
		if t.By == (netfilter.NFTable{Family: netfilter.IPv6}).Name() {
			family = netfilter.IPv6
		}
		if err := netfilter.ProxyTable([]byte(t.Text), family); err != nil {
			return nil, fmt.Errorf("backup of %s: nftables: %w", b.Node, err)
		}
		h.Tables = append(h.Tables, Table{family, []byte(t.Text)})
	}
	return h, b.IPVS.check()
}

// setRow and serverRow are all that a backup may tell ipset and ipvsadm.
var (
	setRow    = regexp.MustCompile(`^(create|add) KUBE-[A-Z0-9-]+( [A-Za-z0-9.:,/_-]+)+$`)
	serverRow = regexp.MustCompile(`^-[Aa] (-t|-u|--sctp-service) [0-9a-fA-F.:\[\]]+( -[a-z]+| --[a-z-]+| [A-Za-z0-9.:\[\]]+)*$`)
)

func (i IPVS) check() error {
	for _, r := range i.Sets {
		if f := strings.Fields(r); !setRow.MatchString(r) || !netfilter.ProxySet(f[1]) {
			return fmt.Errorf("backup: %q is no row of an IP set of kube-proxy", r)
		}
	}
	for _, r := range i.Servers {
		if !serverRow.MatchString(r) {
			return fmt.Errorf("backup: %q is no row of a virtual server", r)
		}
	}
	for _, a := range i.Addresses {
		if strings.Trim(a, "0123456789abcdef.:/") != "" {
			return fmt.Errorf("backup: %q is no address", a)
		}
	}
	return nil
}

// Kept is where a backup is, as the journal has it.
type Kept struct {
	Node   string `json:"node"`
	Path   string `json:"path"`            // on the node
	Local  string `json:"local,omitempty"` // beside the operator
	SHA256 string `json:"sha256"`
	Bytes  int    `json:"bytes"`
	Chains int    `json:"chains"`
	Rows   int    `json:"rows"`
	Tables int    `json:"nftables,omitempty"`
}

const (
	folder = "/var/lib/kubectl-kpr"
	// store keeps its standard input in a file of the host, whole or not at all,
	// and prints its digest as it is on the disk.
	store = `umask 077; d=/proc/1/root$1; mkdir -p "$d" && cat >"$d/$2.new" && sync "$d/$2.new" && mv "$d/$2.new" "$d/$2" && sha256sum <"$d/$2"`
)

// keep writes the backup to both places.
func (b *Backup) keep(ctx context.Context, sh Shell, file, local string) (*Kept, error) {
	data, err := json.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("backup of %s: %w", b.Node, err)
	}
	k := &Kept{Node: b.Node, Path: folder + "/" + file, SHA256: digest(data), Bytes: len(data), Tables: len(b.NFTables)}
	if local != "" {
		if k.Local, err = writeLocal(local, data); err != nil {
			return nil, fmt.Errorf("backup of %s: %w", b.Node, err)
		}
	}
	r, err := sh.Run(ctx, []string{"sh", "-c", store, "kpr", folder, file}, data, exec.Limits{Stdout: 4 << 10, Stderr: 16 << 10})
	if err != nil {
		return nil, fmt.Errorf("backup on %s: %w", b.Node, err)
	}
	if r.Code != 0 || !strings.HasPrefix(string(r.Stdout), k.SHA256) {
		return nil, fmt.Errorf("backup on %s: %s is not on its disk as it was sent: exit code %d: %s", b.Node, k.Path, r.Code, words(r.Stderr))
	}
	return k, nil
}

// writeLocal writes a file that only its owner reads, and is sure of it.
func writeLocal(name string, data []byte) (string, error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return "", err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return "", err
	}
	return filepath.Abs(name)
}

// fetch reads a backup again, by the digest that the journal has of it: from
// the operator's copy, else from the node. Neither path is taken from the journal.
func fetch(ctx context.Context, sh Shell, file, local, sum string) (*Backup, error) {
	if local != "" {
		if data, err := os.ReadFile(local); err == nil && digest(data) == sum {
			return Read(data)
		}
	}
	data, err := output(ctx, sh, "cat", "/proc/1/root"+folder+"/"+file)
	if err != nil {
		return nil, fmt.Errorf("backup: neither %s nor %s of the node: %w", local, folder+"/"+file, err)
	}
	data = bytes.TrimSuffix(data, []byte("\n"))
	if digest(data) != sum {
		return nil, fmt.Errorf("backup: %s of the node is not what was written there: %w", folder+"/"+file, plan.ErrRefused)
	}
	return Read(data)
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
