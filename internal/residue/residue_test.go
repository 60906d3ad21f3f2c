package residue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-kpr/kubectl-kpr/internal/netfilter"
	"github.com/kubectl-kpr/kubectl-kpr/internal/netfilter/netfiltertest"
	"github.com/kubectl-kpr/kubectl-kpr/internal/plan"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/exec"
)

// machine is a node: what its kernel has, and its disk.
type machine struct {
	saves   map[string]string // by tool, "iptables-nft"
	nft     map[string]string // by table, "ip kube-proxy"
	files   map[string]string
	device  []string            // addresses of kube-ipvs0, nil without the device
	sets    map[string][]string // rows of ipset save by set
	servers []string            // rows of ipvsadm-save
	no      map[string]bool     // programs that the host has not
	ipvs    string              // /proc/net/ip_vs, "" without IPVS
}

const ipvsTable = `IP Virtual Server version 1.2.1 (size=4096)
Prot LocalAddress:Port Scheduler Flags
  -> RemoteAddress:Port Forward Weight ActiveConn InActConn
TCP  0A600001:01BB rr
  -> 0A000001:192B      Masq    1      0          0
TCP  AC1E000B:7580 rr
`

const nftText = "table ip kube-proxy {\n\tcomment \"rules for kube-proxy\"\n\tchain services {\n\t}\n}\n"

func loaded(t *testing.T) *machine {
	t.Helper()
	m := &machine{saves: map[string]string{}, nft: map[string]string{"ip kube-proxy": nftText, "ip filter": "table ip filter {\n}\n"}, files: map[string]string{}, no: map[string]bool{}}
	for _, tool := range []string{"iptables-nft", "ip6tables-nft"} {
		data, err := os.ReadFile("../../test/fixtures/lab-kpr-residue/nodes/kpr-w1/" + tool + "-save.txt")
		if err != nil {
			t.Fatal(err)
		}
		if m.saves[tool], err = netfiltertest.Restore(netfiltertest.Plain(string(data)), ""); err != nil {
			t.Fatal(err)
		}
	}
	m.saves["iptables-legacy"], m.saves["ip6tables-legacy"] = "", ""
	m.device = []string{"10.96.0.1/32", "10.96.0.10/32"}
	m.sets = map[string][]string{
		"KUBE-CLUSTER-IP":    {"create KUBE-CLUSTER-IP hash:ip,port family inet", "add KUBE-CLUSTER-IP 10.96.0.1,tcp:443"},
		"KUBE-NODE-PORT-TCP": {"create KUBE-NODE-PORT-TCP bitmap:port range 0-65535", "add KUBE-NODE-PORT-TCP 30080"},
		"KUBE-SRC-ABC":       {"create KUBE-SRC-ABC hash:ip family inet"},
	}
	m.servers = []string{
		"-A -t 10.96.0.1:443 -s rr", "-a -t 10.96.0.1:443 -r 10.0.0.1:6443 -m -w 1",
		"-A -t 172.30.0.11:30080 -s rr", "-A -t 192.0.2.7:80 -s wlc", // the last is somebody else's
	}
	return m
}

func (m *machine) clone() *machine {
	c := *m
	c.saves, c.nft, c.files, c.sets = maps.Clone(m.saves), maps.Clone(m.nft), maps.Clone(m.files), maps.Clone(m.sets)
	c.no = maps.Clone(m.no)
	c.device, c.servers = slices.Clone(m.device), slices.Clone(m.servers)
	return &c
}

// state is what is compared, without the disk.
func (m *machine) state() string {
	return fmt.Sprint(m.saves, m.nft, slices.Sorted(slices.Values(m.device)), m.sets, slices.Sorted(slices.Values(m.servers)))
}

// do is the node's answer to an argv.
func (m *machine) do(argv []string, input string) (out string, code int) {
	for len(argv) > 4 && argv[0] == "nsenter" {
		argv = argv[5:]
	}
	if m.no[argv[0]] {
		return "nsenter: failed to execute " + argv[0], 127
	}
	switch line := strings.Join(argv, " "); {
	case strings.HasSuffix(argv[0], "-save") && argv[0] != "ipvsadm-save":
		return m.saves[strings.TrimSuffix(argv[0], "-save")], 0
	case strings.HasSuffix(argv[0], "tables-nft-restore"), strings.HasSuffix(argv[0], "tables-legacy-restore"):
		tool := strings.TrimSuffix(argv[0], "-restore")
		after, err := netfiltertest.Restore(m.saves[tool], input)
		if err != nil {
			return err.Error(), 1
		}
		m.saves[tool] = after
	case line == "nft list tables":
		for _, name := range slices.Sorted(maps.Keys(m.nft)) {
			out += "table " + name + "\n"
		}
	case strings.HasPrefix(line, "nft -s list table "):
		return m.nft[strings.TrimPrefix(line, "nft -s list table ")], 0
	case strings.HasPrefix(line, "nft delete table "):
		delete(m.nft, strings.TrimPrefix(line, "nft delete table "))
	case line == "nft -f -":
		_, text, _ := strings.Cut(input, "\ndelete table ip kube-proxy\n")
		m.nft["ip kube-proxy"] = text
	case line == "ip -o address show":
		for _, a := range m.device {
			out += "12: kube-ipvs0    inet " + a + " scope global kube-ipvs0\n"
		}
	case line == "ip -o link show":
		if out = "1: lo: <UP>\n"; m.device != nil {
			out += "12: kube-ipvs0: <BROADCAST>\n"
		}
	case line == "ip link delete kube-ipvs0":
		m.device = nil
	case line == "ip link add kube-ipvs0 type dummy":
		m.device = []string{}
	case strings.HasPrefix(line, "ip address replace "):
		if !slices.Contains(m.device, argv[3]) {
			m.device = append(m.device, argv[3])
		}
	case line == "ipset save":
		for _, s := range slices.Sorted(maps.Keys(m.sets)) {
			out += strings.Join(m.sets[s], "\n") + "\n"
		}
	case strings.HasPrefix(line, "ipset destroy "):
		delete(m.sets, argv[2])
	case line == "ipset -exist restore":
		for row := range strings.Lines(input) {
			if f := strings.Fields(row); f[0] == "create" {
				m.sets[f[1]] = []string{strings.TrimSpace(row)}
			} else {
				m.sets[f[1]] = append(m.sets[f[1]], strings.TrimSpace(row))
			}
		}
	case line == "ipvsadm-save -n":
		return strings.Join(m.servers, "\n") + "\n", 0
	case strings.HasPrefix(line, "ipvsadm -D "):
		m.servers = slices.DeleteFunc(m.servers, func(r string) bool { return strings.Fields(r)[2] == argv[3] })
	case line == "ipvsadm-restore":
		m.servers = append(m.servers, strings.Split(strings.TrimSpace(input), "\n")...)
	case argv[len(argv)-1] == kernelServers:
		return m.ipvs, 0
	case strings.HasPrefix(line, "cat /proc/1/root"):
		return m.files[strings.TrimPrefix(line, "cat /proc/1/root")], 0
	default:
		return line + ": what is that", 1
	}
	return out, 0
}

// hosts are machines with a fate: at which call the process ends.
type hosts struct {
	nodes  map[string]*machine
	at     int // 0 for never
	seen   int
	lost   bool // the call fails there, and the process lives
	closed int
	opened int
	mu     sync.Mutex // nodes are surveyed at the same time
}

type shell struct {
	hosts *hosts
	m     *machine
}

type died struct{}

func (h *hosts) point() error {
	h.mu.Lock()
	h.seen++
	here := h.seen == h.at
	h.mu.Unlock()
	if !here {
		return nil
	}
	if h.lost {
		return errors.New("connection reset")
	}
	panic(died{})
}

func (h *hosts) count(n *int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	*n++
}

func (s *shell) Run(_ context.Context, argv []string, input []byte, _ exec.Limits) (exec.Result, error) {
	if err := s.hosts.point(); err != nil {
		return exec.Result{}, err
	}
	r := s.run(argv, string(input))
	return r, s.hosts.point()
}

func (s *shell) run(argv []string, input string) exec.Result {
	if argv[0] != "sh" {
		out, code := s.m.do(argv, input)
		return exec.Result{Stdout: []byte(out), Stderr: []byte(out), Code: code}
	}
	switch argv[2] {
	case framed:
		out, code := s.m.do(argv[4:], input)
		return exec.Result{Stdout: fmt.Appendf(nil, "%s\n# kpr end %d\n", out, code), Code: code}
	case locked:
		out, code := s.m.do(argv[4:], input)
		return exec.Result{Stderr: []byte(out), Code: code}
	case store:
		s.m.files[argv[4]+"/"+argv[5]] = input
		return exec.Result{Stdout: []byte(digest([]byte(input)) + "  -\n")}
	}
	return exec.Result{Code: 1}
}

func (s *shell) Close(context.Context) { s.hosts.count(&s.hosts.closed) }

func (h *hosts) open(_ context.Context, node string) (Shell, error) {
	h.count(&h.opened)
	return &shell{h, h.nodes[node]}, nil
}

func cleaner(h *hosts, folder string) *Cleaner {
	return &Cleaner{
		Open: h.open, Ready: func(context.Context, string) error { return nil },
		ID: "residue-clean-1", Target: "uid", Folder: folder, Now: func() time.Time { return time.Unix(0, 0) },
	}
}

func inputs() Inputs { return Inputs{Nodes: []Input{{Node: "n1"}, {Node: "n2"}}} }

// process is a fresh one over the machines and the journal.
func process(t *testing.T, h *hosts, j plan.Journal, folder string, back bool) (err error, alive bool) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(died); !ok {
				panic(p)
			}
			alive = false
		}
	}()
	c := cleaner(h, folder)
	defer c.Close(t.Context())
	p, err := c.Clean(inputs())
	if err != nil {
		t.Fatal(err)
	}
	e := &plan.Engine{ID: "residue-clean-1", Journal: j, Now: c.Now}
	if back {
		_, err = e.Rollback(t.Context(), p, plan.Options{})
	} else {
		_, err = e.Run(t.Context(), p, plan.Options{})
	}
	return err, true
}

func two(t *testing.T) *hosts {
	m := loaded(t)
	return &hosts{nodes: map[string]*machine{"n1": m, "n2": m.clone()}}
}

func copyOf(h *hosts) *hosts {
	return &hosts{nodes: map[string]*machine{"n1": h.nodes["n1"].clone(), "n2": h.nodes["n2"].clone()}}
}

func copyJournal(t *testing.T, j *plan.Memory) *plan.Memory {
	entries, _ := j.Entries(t.Context())
	c := &plan.Memory{}
	for _, e := range entries {
		if err := c.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// TestCleanCrashes ends a clean-up before and after every command on a node, by
// death and by a lost answer; a fresh process finishes it or takes it back.
func TestCleanCrashes(t *testing.T) {
	clean := two(t)
	start := clean.nodes["n1"].state()
	if err, _ := process(t, clean, &plan.Memory{}, t.TempDir(), false); err != nil {
		t.Fatal(err)
	}
	cleaned, all := clean.nodes["n1"].state(), clean.seen
	if strings.Contains(cleaned, "KUBE-SVC-") || strings.Contains(cleaned, "kube-proxy {") || strings.Contains(cleaned, "KUBE-CLUSTER-IP") ||
		!strings.Contains(cleaned, "CILIUM_") || !strings.Contains(cleaned, "KUBE-SRC-ABC") || !strings.Contains(cleaned, "192.0.2.7:80") || !strings.Contains(cleaned, "KUBE-FIREWALL") {
		t.Fatalf("cleaned: %s", cleaned)
	}
	for _, lost := range []bool{false, true} {
		step := 1
		if lost { // much is the same as by death
			step = 5
		}
		for k := 1; k <= all; k += step {
			at := fmt.Sprintf("point %d of %d, lost %v", k, all, lost)
			h, j, folder := two(t), &plan.Memory{}, t.TempDir()
			h.at, h.lost = k, lost
			if err, alive := process(t, h, j, folder, false); alive != lost { // a lost answer is asked for again
				t.Fatalf("%s: alive %v, %v", at, alive, err)
			}
			for _, back := range []bool{false, true} {
				again, j2 := copyOf(h), copyJournal(t, j)
				if err, _ := process(t, again, j2, folder, back); err != nil {
					t.Fatalf("%s, back %v: %v", at, back, err)
				}
				want := cleaned
				if back {
					want = start
				}
				for n, m := range again.nodes {
					if m.state() != want {
						t.Fatalf("%s, back %v: %s: %s", at, back, n, cmp.Diff(want, m.state()))
					}
				}
			}
		}
	}
}

// TestTakenBackFromTheNode: without the operator's copy the node's own is used,
// and one that is not what was written there is not.
func TestTakenBackFromTheNode(t *testing.T) {
	h, j, folder := two(t), &plan.Memory{}, t.TempDir()
	start := h.nodes["n1"].state()
	if err, _ := process(t, h, j, folder, false); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	forged := copyOf(h)
	name := folderFile(forged.nodes["n2"])
	forged.nodes["n2"].files[name] = strings.ReplaceAll(forged.nodes["n2"].files[name], "10.96.0.10", "10.96.0.66")
	if err, _ := process(t, forged, copyJournal(t, j), folder, true); !errors.Is(err, plan.ErrRefused) || !strings.Contains(err.Error(), "not what was written there") {
		t.Errorf("forged: %v", err)
	}
	if err, _ := process(t, h, j, folder, true); err != nil || h.nodes["n1"].state() != start {
		t.Errorf("%v", err)
	}
	if h.opened != h.closed {
		t.Errorf("%d shells opened, %d closed", h.opened, h.closed)
	}
}

func folderFile(m *machine) string {
	for name := range m.files {
		return name
	}
	return ""
}

// TestRestore: from a backup's file, and back again.
func TestRestore(t *testing.T) {
	h, folder := two(t), t.TempDir()
	start := h.nodes["n1"].state()
	if err, _ := process(t, h, &plan.Memory{}, folder, false); err != nil {
		t.Fatal(err)
	}
	cleaned := h.nodes["n1"].state()
	data, err := os.ReadFile(filepath.Join(folder, "n1.json"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := Read(data)
	if err != nil {
		t.Fatal(err)
	}
	if p := b.Proposal(); p.Empty() || p.Node != "n1" {
		t.Errorf("%+v", p)
	}
	c := cleaner(h, t.TempDir())
	c.ID = "residue-restore-1"
	p, err := c.Restore([]*Backup{b})
	if err != nil {
		t.Fatal(err)
	}
	e := &plan.Engine{Journal: &plan.Memory{}, Now: c.Now}
	if _, err := e.Run(t.Context(), p, plan.Options{}); err != nil || h.nodes["n1"].state() != start {
		t.Errorf("%v: %s", err, cmp.Diff(start, h.nodes["n1"].state()))
	}
	if h.nodes["n2"].state() != cleaned {
		t.Error("the other node was changed")
	}
	if _, err := e.Rollback(t.Context(), p, plan.Options{}); err != nil || h.nodes["n1"].state() != cleaned {
		t.Errorf("taken back: %v: %s", err, cmp.Diff(cleaned, h.nodes["n1"].state()))
	}
}

// TestWhatCannotBeSeen is never nothing.
func TestWhatCannotBeSeen(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*machine)
		class  error
		words  string
	}{
		"no nft":          {func(m *machine) { m.no["nft"] = true }, nil, "the host has no nft"},
		"no ipvsadm":      {func(m *machine) { m.no["ipvsadm-save"] = true; m.ipvs = ipvsTable }, plan.ErrRefused, "2 virtual servers and the host has no ipvsadm"},
		"no IPVS at all":  {func(m *machine) { m.no["ipvsadm-save"] = true; m.no["nft"] = true }, nil, "no nft"},
		"no iptables":     {func(m *machine) { m.no["ip6tables-legacy-save"] = true }, plan.ErrUnverified, "ip6tables-legacy-save"},
		"incompatible":    {func(m *machine) { m.saves["iptables-nft"] += "# Table `nat' is incompatible, use 'nft' tool.\n" }, plan.ErrUnverified, "incompatible"},
		"an odd table":    {func(m *machine) { m.nft["ip kube-proxy"] = "table ip kube-proxy {\n" }, plan.ErrUnverified, "not whole"},
		"sets unreadable": {func(m *machine) { m.no["ipset"] = true }, plan.ErrUnverified, "ipset save"},
	} {
		t.Run(name, func(t *testing.T) {
			h := two(t)
			test.change(h.nodes["n1"])
			got, err := Look(t.Context(), &shell{h, h.nodes["n1"]}, false)
			if !errors.Is(err, test.class) {
				t.Fatalf("%v", err)
			}
			if err == nil && !strings.Contains(strings.Join(got.Unlooked, " "), test.words) || err != nil && !strings.Contains(err.Error(), test.words) {
				t.Errorf("%v %v", got, err)
			}
		})
	}
}

// TestCut: an answer without its end is not an empty one.
func TestCut(t *testing.T) {
	for _, out := range []string{"", "*nat\nCOMMIT\n", "*nat\nCOMMIT\n\n# kpr end 0"} {
		if _, err := whole("x", exec.Result{Stdout: []byte(out)}); !errors.Is(err, plan.ErrUnverified) {
			t.Errorf("%q: %v", out, err)
		}
	}
}

func TestBackupsThatAreRefused(t *testing.T) {
	h, folder := two(t), t.TempDir()
	if err, _ := process(t, h, &plan.Memory{}, folder, false); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(folder, "n1.json"))
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string][2]string{
		"schema":   {Schema, "v9"},
		"node":     {`"node":"n1"`, `"node":""`},
		"tool":     {`"by":"iptables-nft"`, `"by":"iptables"`},
		"set":      {"create KUBE-CLUSTER-IP", "create MY-SET"},
		"server":   {"-A -t 10.96.0.1:443 -s rr", "-C; reboot"},
		"address":  {`"10.96.0.1/32"`, `"dev lo"`},
		"nftables": {"table ip kube-proxy {", "include \\\"/etc/x\\\"\\ntable ip kube-proxy {"},
	} {
		changed := strings.Replace(string(data), change[0], change[1], 1)
		if changed == string(data) {
			t.Errorf("%s: nothing was changed", name)
		}
		if _, err := Read([]byte(changed)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestSurvey: one node that cannot be seen does not end the others.
func TestSurvey(t *testing.T) {
	h := two(t)
	h.nodes["n2"].no["iptables-nft-save"] = true
	found, errs := Survey(t.Context(), inputs().Nodes, 2, h.open)
	if errs[0] != nil || !errors.Is(errs[1], plan.ErrUnverified) || !strings.Contains(errs[1].Error(), "node n2") {
		t.Fatalf("%v", errs)
	}
	p := found[0]
	if len(p.IPTables) != 6 || !slices.Equal(p.NFTables, []string{"ip kube-proxy"}) || p.IPVS == nil || len(p.Input.Proposed) != 64 {
		t.Errorf("%+v", p)
	}
	if p.IPTables[0].Backend != "nft" || p.IPTables[0].Family != int(netfilter.IPv4) {
		t.Errorf("%+v", p.IPTables[0])
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"schema":"` + Schema + `","target":"t","node":"n","iptables":[{"by":"iptables-nft","text":""},{"by":"ip6tables-nft","text":""},{"by":"iptables-legacy","text":""},{"by":"ip6tables-legacy","text":""}]}`))
	f.Fuzz(func(_ *testing.T, data []byte) {
		if b, err := Read(data); err == nil {
			_ = b.Proposal()
		}
	})
}

// TestUnlookedIsAccepted: what only the host's nft shows and was not looked at
// stops a clean-up before anything is done, unless there is a reason.
func TestUnlookedIsAccepted(t *testing.T) {
	h := two(t)
	h.nodes["n2"].no["nft"] = true
	found, errs := Survey(t.Context(), inputs().Nodes, 2, h.open)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	var in Inputs
	for _, p := range found {
		in.Nodes = append(in.Nodes, p.Input)
	}
	c := cleaner(h, t.TempDir())
	p, err := c.Clean(in)
	if err != nil {
		t.Fatal(err)
	}
	start, j := h.nodes["n1"].state(), &plan.Memory{}
	e := &plan.Engine{Journal: j, Now: c.Now}
	if _, err := e.Run(t.Context(), p, plan.Options{}); !errors.Is(err, plan.ErrUnverified) || !strings.Contains(err.Error(), "node n2: not looked at: tables of nftables") || h.nodes["n1"].state() != start {
		t.Errorf("%v", err)
	}
	if _, err := e.Run(t.Context(), p, plan.Options{Accept: map[string]string{RuleUnlooked: "iptables mode since ever"}}); err != nil {
		t.Fatal(err)
	}
	entries, _ := j.Entries(t.Context())
	if a := entries[2].Accepted; len(a) != 1 || a[0].Reason != "iptables mode since ever" {
		t.Errorf("%+v", entries[2])
	}
}
