package lb_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// world is a made-up node: what its agent lists. The maps follow from it.
type world struct {
	r   *rand.Rand
	fes []lb.Frontend
}

func newWorld(seed uint64) *world {
	w := &world{r: rand.New(rand.NewPCG(seed, 7))}
	taken := map[lb.Address]bool{}
	for range 3 + w.r.IntN(12) {
		f := lb.Frontend{Address: w.address(96), Type: "ClusterIP", Service: lb.Name{Namespace: "shop", Name: fmt.Sprintf("s%d", w.r.IntN(5))}}
		switch w.r.IntN(4) {
		case 0:
			f.Type, f.Address.IP = "NodePort", surrogate(f.Address.IP)
			f.Address.Port += 30000
		case 1:
			f.Type = "LoadBalancer"
			f.Address.Scope = lb.Scope(w.r.IntN(2))
		}
		if taken[f.Address] {
			continue
		}
		taken[f.Address] = true
		for _, port := range w.r.Perm(6)[:w.r.IntN(5)] {
			b := lb.Backend{Address: lb.Address{IP: pod(f.Address.IP, port), Port: uint16(8000 + port), Protocol: f.Address.Protocol}, State: lb.Active, Weight: 100}
			if w.r.IntN(5) == 0 {
				b.State = lb.Terminating
			}
			f.Backends = append(f.Backends, b)
		}
		f.External, f.Internal = "Cluster", "Cluster"
		w.fes = append(w.fes, f)
	}
	return w
}

func (w *world) address(net byte) lb.Address {
	a := lb.Address{Port: uint16(80 + w.r.IntN(4)), Protocol: []lb.Protocol{lb.TCP, lb.UDP, lb.SCTP}[w.r.IntN(3)]}
	last := byte(1 + w.r.IntN(8))
	a.IP = netip.AddrFrom4([4]byte{10, net, 0, last})
	if w.r.IntN(3) == 0 {
		a.IP = netip.AddrFrom16([16]byte{0: 0xfd, 8: net, 15: last})
	}
	return a
}

func pod(like netip.Addr, n int) netip.Addr {
	if like.Is4() {
		return netip.AddrFrom4([4]byte{10, 1, 0, byte(n)})
	}
	return netip.AddrFrom16([16]byte{0: 0xfd, 1: 1, 15: byte(n)})
}

func surrogate(like netip.Addr) netip.Addr {
	if like.Is4() {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

// agent lists the frontends in any order under any ids.
func (w *world) agent() lb.Table {
	fes := slices.Clone(w.fes)
	w.r.Shuffle(len(fes), func(i, j int) { fes[i], fes[j] = fes[j], fes[i] })
	for i := range fes {
		fes[i].ID = w.r.IntN(1000)
		fes[i].Backends = slices.Clone(fes[i].Backends)
		w.r.Shuffle(len(fes[i].Backends), func(j, k int) {
			fes[i].Backends[j], fes[i].Backends[k] = fes[i].Backends[k], fes[i].Backends[j]
		})
	}
	return lb.FromAgent(fes, n1(), recent)
}

// maps are the rows of a node that holds the frontends.
type maps struct {
	rows     []lb.MapRow
	slots    []lb.SlotRow
	dump     lb.Dump
	backends map[lb.Address]int
}

func (w *world) maps() *maps {
	m := &maps{backends: map[lb.Address]int{}}
	wild := map[netip.Addr]bool{}
	for i, f := range w.fes {
		m.add(f, 3*i+1)
		if f.Type == "NodePort" {
			for k, ip := range n1().Addresses {
				if ip.Is4() == f.Address.IP.Is4() {
					f.Address.IP = ip
					m.add(f, 3*i+k+2)
				}
			}
		} else if !wild[f.Address.IP] {
			wild[f.Address.IP] = true
			m.rows = append(m.rows, lb.MapRow{Frontend: lb.Address{IP: f.Address.IP, Protocol: lb.ANY}, Master: true, Flags: []string{f.Type}})
		}
	}
	return m
}

func (m *maps) add(f lb.Frontend, revNAT int) {
	m.rows = append(m.rows, lb.MapRow{Frontend: f.Address, Master: true, RevNAT: revNAT, Flags: []string{f.Type}})
	master := lb.DumpRow{Frontend: f.Address, ID: revNAT}
	at := len(m.dump.Rows)
	m.dump.Rows = append(m.dump.Rows, master)
	for i, b := range f.Backends {
		id, ok := m.backends[b.Address]
		if !ok {
			id = 100 + len(m.backends)
			m.backends[b.Address] = id
		}
		m.rows = append(m.rows, lb.MapRow{Frontend: f.Address, Slot: i + 1, Backend: b.Address, RevNAT: revNAT})
		m.dump.Rows = append(m.dump.Rows, lb.DumpRow{Frontend: f.Address, ID: revNAT, Slot: i + 1, Backend: id})
		m.dump.Backends = append(m.dump.Backends, lb.MapBackend{ID: id, Address: b.Address, State: b.State})
		if b.State == lb.Active {
			m.dump.Rows[at].Count++
		} else {
			m.dump.Rows[at].Quarantined++
		}
	}
	m.slots = append(m.slots, lb.SlotRow{Frontend: f.Address, Count: m.dump.Rows[at].Count, Quarantined: m.dump.Rows[at].Quarantined})
}

func (w *world) kernel(m *maps) lb.Table {
	rows := slices.Clone(m.rows)
	w.r.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	return lb.FromKernel(rows, m.slots, nil, nil, n1(), recent)
}

func TestOrderAndIDsDoNotMatter(t *testing.T) {
	for seed := range uint64(200) {
		w := newWorld(seed)
		a, b := w.agent(), w.agent()
		if a.Sum() != b.Sum() {
			t.Errorf("seed %d: agent: %s", seed, cmp.Diff(a.Rows, b.Rows))
		}
		m := w.maps()
		k, l := w.kernel(m), w.kernel(m)
		if k.Sum() != l.Sum() {
			t.Errorf("seed %d: kernel: %s", seed, cmp.Diff(k.Rows, l.Rows))
		}
		for _, d := range slices.Concat(lb.Diff(a, b, lb.DiffOptions{}), lb.Diff(k, k, lb.DiffOptions{}), lb.Diff(a, k, lb.DiffOptions{}), lb.Diff(k, b, lb.DiffOptions{})) {
			t.Errorf("seed %d: %s", seed, d)
		}
	}
}

// bare is what of a delta every injected fault foresees.
func bare(ds []lb.Delta) []lb.Delta {
	var out []lb.Delta
	for _, d := range ds {
		out = append(out, lb.Delta{Kind: d.Kind, Frontend: d.Frontend, Backend: d.Backend, A: d.A, B: d.B, Expected: d.Expected})
	}
	return out
}

// Every fault in the agent's list is named once, by its kind, and mirrored.
func TestEveryDifferenceIsNamedOnce(t *testing.T) {
	faults := map[string]func(w *world, f *lb.Frontend) []lb.Delta{
		"frontend gone": func(w *world, f *lb.Frontend) []lb.Delta {
			gone := f.Address
			w.fes = slices.DeleteFunc(w.fes, func(g lb.Frontend) bool { return g.Address == gone })
			return []lb.Delta{{Kind: lb.FrontendMissing, Frontend: gone}}
		},
		"frontend added": func(w *world, f *lb.Frontend) []lb.Delta {
			g := *f
			g.Type, g.Address.Port = "ClusterIP", 9999
			w.fes = append(w.fes, g)
			return []lb.Delta{{Kind: lb.FrontendExtra, Frontend: g.Address}}
		},
		"backend gone": func(_ *world, f *lb.Frontend) []lb.Delta {
			if len(f.Backends) == 0 {
				return nil
			}
			b := f.Backends[0]
			f.Backends = slices.Clone(f.Backends[1:])
			return []lb.Delta{{Kind: lb.BackendMissing, Frontend: f.Address, Backend: b.Address, A: string(b.State)}}
		},
		"backend added": func(_ *world, f *lb.Frontend) []lb.Delta {
			b := lb.Backend{Address: lb.Address{IP: pod(f.Address.IP, 99), Port: 1, Protocol: f.Address.Protocol}, State: lb.Active}
			f.Backends = append(slices.Clone(f.Backends), b)
			return []lb.Delta{{Kind: lb.BackendExtra, Frontend: f.Address, Backend: b.Address, B: "active"}}
		},
		"backend on another port": func(_ *world, f *lb.Frontend) []lb.Delta {
			if len(f.Backends) == 0 {
				return nil
			}
			f.Backends = slices.Clone(f.Backends)
			was := f.Backends[0]
			f.Backends[0].Address.Port += 1000
			return []lb.Delta{
				{Kind: lb.BackendMissing, Frontend: f.Address, Backend: was.Address, A: string(was.State)},
				{Kind: lb.BackendExtra, Frontend: f.Address, Backend: f.Backends[0].Address, B: string(was.State)},
			}
		},
		"state": func(_ *world, f *lb.Frontend) []lb.Delta {
			if len(f.Backends) == 0 {
				return nil
			}
			f.Backends = slices.Clone(f.Backends)
			was := f.Backends[0].State
			f.Backends[0].State = lb.Quarantined
			return []lb.Delta{{Kind: lb.StateDiffers, Frontend: f.Address, Backend: f.Backends[0].Address, A: string(was), B: "quarantined"}}
		},
		"state not told": func(_ *world, f *lb.Frontend) []lb.Delta {
			f.Backends = slices.Clone(f.Backends)
			for i := range f.Backends {
				f.Backends[i].State = ""
			}
			return nil
		},
		"policy": func(_ *world, f *lb.Frontend) []lb.Delta {
			f.Internal = "Local"
			return []lb.Delta{{Kind: lb.FlagDiffers, Frontend: f.Address, A: "Cluster", B: "Local"}}
		},
		"policy not told": func(_ *world, f *lb.Frontend) []lb.Delta {
			f.Internal, f.External = "", ""
			return nil
		},
	}
	for name, inject := range faults {
		for seed := range uint64(100) {
			w := newWorld(seed)
			before := w.agent()
			i := slices.IndexFunc(w.fes, func(f lb.Frontend) bool { return f.Type != "NodePort" })
			if i < 0 {
				continue
			}
			want := inject(w, &w.fes[i])
			after := w.agent()
			got := lb.Diff(before, after, lb.DiffOptions{})
			if diff := cmp.Diff(want, bare(got), cmp.Comparer(func(a, b lb.Address) bool { return a == b })); diff != "" {
				t.Errorf("%s, seed %d (-want +got):\n%s", name, seed, diff)
			}
		}
	}
}

// A fault of a NodePort shows on the surrogate and on each node address.
func TestFaultsOfNodePorts(t *testing.T) {
	w := newWorld(1)
	w.fes = []lb.Frontend{{Address: address(t, "0.0.0.0:30080/TCP"), Type: "NodePort", Backends: []lb.Backend{{Address: address(t, "10.1.0.1:80/TCP"), State: lb.Active}}}}
	kernel := w.kernel(w.maps())
	w.fes[0].Backends = nil
	want := []lb.Delta{
		{Kind: lb.BackendExtra, Frontend: address(t, "0.0.0.0:30080/TCP"), Backend: address(t, "10.1.0.1:80/TCP")},
		{Kind: lb.BackendExtra, Frontend: address(t, "192.0.2.1:30080/TCP"), Backend: address(t, "10.1.0.1:80/TCP")},
	}
	same := cmp.Comparer(func(a, b lb.Address) bool { return a == b })
	if diff := cmp.Diff(want, bare(lb.Diff(w.agent(), kernel, lb.DiffOptions{})), same); diff != "" {
		t.Errorf("addresses known (-want +got):\n%s", diff)
	}
	// The node's addresses are not known: the map's rows are measured by the
	// surrogate all the same.
	blind := lb.FromAgent(w.fes, lb.NodeView{Name: "n1"}, recent)
	if diff := cmp.Diff(want, bare(lb.Diff(blind, kernel, lb.DiffOptions{})), same); diff != "" {
		t.Errorf("addresses unknown (-want +got):\n%s", diff)
	}
	// A row of an address that is not the node's belongs to nobody.
	elsewhere := n1()
	elsewhere.Addresses = nil
	ds := lb.Diff(lb.FromAgent(w.fes, elsewhere, recent), kernel, lb.DiffOptions{})
	if len(ds) != 2 || ds[1].Kind != lb.FrontendExtra || ds[1].Frontend != want[1].Frontend {
		t.Errorf("an address of another node: %v", ds)
	}
}

func address(t *testing.T, s string) lb.Address {
	t.Helper()
	a, err := lb.ParseAddress(s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestMirror(t *testing.T) {
	for seed := range uint64(80) {
		w, v := newWorld(seed), newWorld(seed+1)
		m := v.maps()
		for i := range m.rows {
			if !m.rows[i].Master && v.r.IntN(4) == 0 {
				m.rows[i].Lost, m.rows[i].ID, m.rows[i].Backend = true, m.backends[m.rows[i].Backend], lb.Address{}
			}
		}
		tables := []lb.Table{w.agent(), v.agent(), w.kernel(w.maps()), v.kernel(m)}
		for _, a := range tables {
			for _, b := range tables {
				there, back := lb.Diff(a, b, lb.DiffOptions{}), lb.Diff(b, a, lb.DiffOptions{})
				for i := range back {
					back[i] = back[i].Mirror()
				}
				slices.SortFunc(back, lb.Delta.Compare)
				if diff := cmp.Diff(there, back, cmp.Comparer(func(a, b lb.Address) bool { return a == b })); diff != "" {
					t.Fatalf("seed %d, %s and %s (-a,b +b,a):\n%s", seed, a.Layer, b.Layer, diff)
				}
			}
			if ds := lb.Diff(a, a, lb.DiffOptions{}); len(ds) > 0 {
				t.Fatalf("seed %d: %s differs from itself: %v", seed, a.Layer, ds)
			}
		}
	}
}

// Each backend that is lost from the map is named with its address and id in
// each frontend, even where one frontend alone leaves a choice.
func TestLostBackends(t *testing.T) {
	for seed := range uint64(200) {
		w := newWorld(seed)
		m := w.maps()
		want := map[string]bool{}
		lost := map[lb.Address]bool{}
		for a := range m.backends {
			if len(lost) < 1 {
				lost[a] = true
			}
		}
		for i := range m.rows {
			r := &m.rows[i]
			if lost[r.Backend] {
				want[r.Frontend.String()+" "+r.Backend.String()] = true
				r.Lost, r.ID, r.Backend = true, m.backends[r.Backend], lb.Address{}
			}
		}
		got := map[string]bool{}
		for _, d := range lb.Diff(w.agent(), w.kernel(m), lb.DiffOptions{}) {
			key := d.Frontend.String() + " " + d.Backend.String()
			if d.Kind != lb.BackendLost || got[key] {
				t.Errorf("seed %d: %s", seed, d)
			}
			got[key] = true
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("seed %d (-want +got):\n%s", seed, diff)
		}
	}
}

func TestLostBackendsAreToldApart(t *testing.T) {
	b := func(n int) lb.Backend {
		return lb.Backend{Address: lb.Address{IP: pod(netip.IPv4Unspecified(), n), Port: 80, Protocol: lb.TCP}, State: lb.Active}
	}
	fes := []lb.Frontend{
		{Address: address(t, "10.96.0.1:80/TCP"), Backends: []lb.Backend{b(1), b(2), b(3)}},
		{Address: address(t, "10.96.0.2:80/TCP"), Backends: []lb.Backend{b(2)}},
		{Address: address(t, "10.96.0.3:80/TCP"), Backends: nil},
	}
	lost := func(f string, slot, id int) lb.MapRow {
		return lb.MapRow{Frontend: address(t, f), Slot: slot, Lost: true, ID: id}
	}
	master := func(f string) lb.MapRow { return lb.MapRow{Frontend: address(t, f), Master: true} }
	rows := []lb.MapRow{
		master("10.96.0.1:80/TCP"), {Frontend: fes[0].Address, Slot: 1, Backend: b(1).Address}, lost("10.96.0.1:80/TCP", 2, 22), lost("10.96.0.1:80/TCP", 3, 33),
		master("10.96.0.2:80/TCP"), lost("10.96.0.2:80/TCP", 1, 22),
		master("10.96.0.3:80/TCP"), lost("10.96.0.3:80/TCP", 1, 44),
	}
	var got []string
	for _, d := range lb.Diff(lb.FromAgent(fes, n1(), recent), lb.FromKernel(rows, nil, nil, nil, n1(), recent), lb.DiffOptions{}) {
		got = append(got, d.String())
	}
	want := []string{
		`backend lost: 10.96.0.1:80/TCP backend 10.1.0.2:80/TCP: "active", "backend 22 not found": backend 22 not found`,
		`backend lost: 10.96.0.1:80/TCP backend 10.1.0.3:80/TCP: "active", "backend 33 not found": backend 33 not found`,
		`backend lost: 10.96.0.2:80/TCP backend 10.1.0.2:80/TCP: "active", "backend 22 not found": backend 22 not found`,
		`backend lost: 10.96.0.3:80/TCP: "", "backend 44 not found": backend 44 not found`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestRowsWithoutProtocol(t *testing.T) {
	fe := func(a string, backends ...string) lb.Frontend {
		f := lb.Frontend{Address: address(t, a), Type: "ClusterIP"}
		for _, b := range backends {
			f.Backends = append(f.Backends, lb.Backend{Address: address(t, b)})
		}
		return f
	}
	for name, c := range map[string]struct {
		a, b []lb.Frontend
		want []string
	}{
		"one row for both": {
			[]lb.Frontend{fe("10.96.0.1:53/TCP", "10.1.0.1:53/TCP"), fe("10.96.0.1:53/UDP", "10.1.0.1:53/UDP")},
			[]lb.Frontend{fe("10.96.0.1:53", "10.1.0.1:53")}, nil,
		},
		"one row for both holds the ports of one": {
			[]lb.Frontend{fe("10.96.0.1:53/TCP", "10.1.0.1:53/TCP"), fe("10.96.0.1:53/UDP", "10.1.0.1:5353/UDP")},
			[]lb.Frontend{fe("10.96.0.1:53", "10.1.0.1:53")},
			[]string{"backend missing: 10.96.0.1:53/UDP backend 10.1.0.1:5353/UDP"},
		},
		"an inherited row": {[]lb.Frontend{fe("10.96.0.1:53/TCP", "10.1.0.1:53/TCP")}, []lb.Frontend{fe("10.96.0.1:53", "10.1.0.1:53")}, nil},
		"a stale backend in it": {
			[]lb.Frontend{fe("10.96.0.1:53/TCP", "10.1.0.1:53/TCP"), fe("10.96.0.1:53/UDP", "10.1.0.1:53/UDP")},
			[]lb.Frontend{fe("10.96.0.1:53", "10.1.0.1:53", "10.1.0.9:53")},
			[]string{"backend extra: 10.96.0.1:53/TCP backend 10.1.0.9:53"},
		},
		"inherited beside new": {
			[]lb.Frontend{fe("10.96.0.1:53/TCP", "10.1.0.1:53/TCP"), fe("10.96.0.1:53/UDP", "10.1.0.1:53/UDP")},
			[]lb.Frontend{fe("10.96.0.1:53", "10.1.0.1:53"), fe("10.96.0.1:53/TCP", "10.1.0.1:53/TCP")}, nil,
		},
		"inherited beside the one it has become": {
			[]lb.Frontend{fe("10.96.0.1:53/TCP", "10.1.0.1:53/TCP")},
			[]lb.Frontend{fe("10.96.0.1:53", "10.1.0.1:53"), fe("10.96.0.1:53/TCP", "10.1.0.1:53/TCP")}, nil,
		},
		"scopes apart": {
			[]lb.Frontend{fe("10.96.0.1:53/TCP", "10.1.0.1:53/TCP"), fe("10.96.0.1:53/TCP/i", "10.1.0.1:53/TCP")},
			[]lb.Frontend{fe("10.96.0.1:53"), fe("10.96.0.1:53/TCP/i", "10.1.0.1:53")},
			[]string{"backend missing: 10.96.0.1:53/TCP backend 10.1.0.1:53/TCP"},
		},
		"a protocol that is not there": {
			[]lb.Frontend{fe("10.96.0.1:53/TCP"), fe("10.96.0.1:53/UDP")}, []lb.Frontend{fe("10.96.0.1:53/TCP")},
			[]string{"frontend missing: 10.96.0.1:53/UDP"},
		},
	} {
		var got []string
		for _, d := range lb.Diff(lb.FromAgent(c.a, n1(), recent), lb.FromAgent(c.b, n1(), recent), lb.DiffOptions{}) {
			got = append(got, d.String())
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestExpectedDifferences(t *testing.T) {
	docs := `metadata: {name: web, annotations: {service.cilium.io/global: "true"}}
spec: {clusterIPs: [10.96.0.1], ports: [{name: http, port: 80}]}
---
` + slice(http, "10.1.0.1@n1")
	in := objects(t, docs)
	in.Nodes = items[corev1.NodeList](t, "testdata", "nodes.json").Items
	desired := lb.NewIndex(in).Desired(n1(), recent)
	one := func(f lb.Frontend) lb.Table { return lb.FromAgent([]lb.Frontend{f}, n1(), recent) }
	web := func(typ string, backends ...string) lb.Frontend {
		f := lb.Frontend{Address: address(t, "10.96.0.1:80/TCP"), Type: typ}
		for _, b := range backends {
			f.Backends = append(f.Backends, lb.Backend{Address: address(t, b), State: lb.Active})
		}
		return f
	}
	kernel := func(flags []string, l7 int, backends ...string) lb.Table {
		rows := []lb.MapRow{{Frontend: address(t, "10.96.0.1:80/TCP"), Master: true, Flags: flags, L7Port: l7}}
		for i, b := range backends {
			rows = append(rows, lb.MapRow{Frontend: rows[0].Frontend, Slot: i + 1, Backend: address(t, b)})
		}
		return lb.FromKernel(rows, nil, nil, nil, n1(), recent)
	}
	maintained := web("ClusterIP", "10.1.0.1:8080/TCP", "10.1.0.2:8080/TCP")
	maintained.Backends[1].State = lb.Maintenance
	for name, c := range map[string]struct {
		a, b       lb.Table
		explained  int
		unexpected int
	}{
		"another cluster's backend":         {desired, one(web("ClusterIP", "10.1.0.1:8080/TCP", "10.9.0.1:8080/TCP")), 1, 0},
		"a stale one of our own":            {desired, one(web("ClusterIP", "10.1.0.1:8080/TCP", "10.244.1.9:8080/TCP")), 0, 1},
		"local redirect":                    {desired, one(web("LocalRedirect", "10.1.0.7:8080/TCP")), 2, 0},
		"local redirect, agent and kernel":  {one(web("LocalRedirect", "10.1.0.7:8080/TCP")), kernel([]string{"LocalRedirect"}, 0), 0, 1},
		"L7 redirect in the agent":          {desired, one(web("ClusterIP", "127.0.0.1:15000/TCP")), 1, 0},
		"L7 redirect in the kernel":         {desired, kernel([]string{"ClusterIP", "l7-load-balancer"}, 15000), 1, 0},
		"L7 redirect, agent and kernel":     {one(web("ClusterIP", "127.0.0.1:15000/TCP")), kernel([]string{"ClusterIP"}, 15000, "10.1.0.1:8080/TCP"), 1, 0},
		"maintenance stays out of the map":  {one(maintained), kernel([]string{"ClusterIP"}, 0, "10.1.0.1:8080/TCP"), 1, 0},
		"active does not":                   {one(web("ClusterIP", "10.1.0.1:8080/TCP")), kernel([]string{"ClusterIP"}, 0), 0, 1},
		"host port without pods read":       {desired, lb.FromAgent([]lb.Frontend{web("ClusterIP", "10.1.0.1:8080/TCP"), {Address: address(t, "192.0.2.7:8000/TCP"), Type: "HostPort"}}, n1(), recent), 1, 0},
		"orphan":                            {desired, lb.FromAgent([]lb.Frontend{web("ClusterIP", "10.1.0.1:8080/TCP"), {Address: address(t, "10.96.0.9:80/TCP"), Type: "ClusterIP"}}, n1(), recent), 0, 1},
		"another cluster's frontend":        {desired, lb.FromAgent([]lb.Frontend{web("ClusterIP", "10.1.0.1:8080/TCP"), {Address: address(t, "10.96.0.9:80/TCP"), Type: "ClusterIP", Cluster: "west"}}, n1(), recent), 1, 0},
		"a wildcard row of no Service":      {desired, lb.FromKernel([]lb.MapRow{{Frontend: address(t, "10.96.0.1:80/TCP"), Master: true}, {Frontend: address(t, "10.96.0.1:80/TCP"), Slot: 1, Backend: address(t, "10.1.0.1:8080/TCP")}, {Frontend: address(t, "10.96.0.9:0"), Master: true}}, nil, nil, nil, n1(), recent), 0, 1},
		"a wildcard row of a Service":       {desired, lb.FromKernel([]lb.MapRow{{Frontend: address(t, "10.96.0.1:80/TCP"), Master: true}, {Frontend: address(t, "10.96.0.1:80/TCP"), Slot: 1, Backend: address(t, "10.1.0.1:8080/TCP")}, {Frontend: address(t, "10.96.0.1:0"), Master: true}}, nil, nil, nil, n1(), recent), 0, 0},
		"session affinity not in the map":   {lb.NewIndex(objects(t, "spec: {clusterIPs: [10.96.0.1], sessionAffinity: ClientIP, ports: [{port: 80}]}")).Desired(n1(), recent), kernel([]string{"ClusterIP"}, 0), 0, 1},
		"policy of one side is not told":    {desired, kernel([]string{"ClusterIP", "Local"}, 0, "10.1.0.1:8080/TCP"), 0, 0},
		"internal policy is another's":      {desired, kernel([]string{"ClusterIP", "InternalLocal"}, 0, "10.1.0.1:8080/TCP"), 0, 1},
		"source ranges without any desired": {desired, kernel([]string{"ClusterIP", "check source-range"}, 0, "10.1.0.1:8080/TCP"), 0, 1},
	} {
		ds := lb.Diff(c.a, c.b, lb.DiffOptions{})
		bad := lb.Unexpected(ds)
		if len(bad) != c.unexpected || len(ds)-len(bad) != c.explained {
			t.Errorf("%s: want %d explained and %d unexpected, got %v", name, c.explained, c.unexpected, ds)
		}
		if left := lb.Diff(c.a, c.b, lb.DiffOptions{OmitExpected: true}); !cmp.Equal(left, bad, cmp.Comparer(func(a, b lb.Address) bool { return a == b })) {
			t.Errorf("%s: OmitExpected leaves %v", name, left)
		}
	}
}

// A backend that came between the two looks at the API is no fault; one that
// was missing both times is.
func TestSettled(t *testing.T) {
	service := "spec: {clusterIPs: [10.96.0.1], ports: [{name: http, port: 80}]}\n---\n"
	look := func(endpoints ...string) []lb.Delta {
		desired := lb.NewIndex(objects(t, service+slice(http, endpoints...))).Desired(n1(), recent)
		agent := lb.FromAgent([]lb.Frontend{{Address: address(t, "10.96.0.1:80/TCP"), Backends: []lb.Backend{{Address: address(t, "10.1.0.9:8080/TCP"), State: lb.Active}}}}, n1(), recent)
		return lb.Diff(desired, agent, lb.DiffOptions{})
	}
	var got []string
	for _, d := range lb.Settled(look("10.1.0.1@n1", "10.1.0.2@n1:draining", "10.1.0.9@n1"), look("10.1.0.1@n1", "10.1.0.2@n1", "10.1.0.3@n1")) {
		got = append(got, fmt.Sprint(d.Kind, " ", d.Backend, " ", d.Expected != ""))
	}
	want := []string{"backend missing 10.1.0.1:8080/TCP false", "backend missing 10.1.0.2:8080/TCP true"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestOrderOfObjectsDoesNotMatter(t *testing.T) {
	docs := []string{
		"metadata: {name: web}\nspec: {externalIPs: [203.0.113.8], ports: [{name: http, port: 80}, {name: b, port: 81}]}",
		"metadata: {name: other}\nspec: {externalIPs: [203.0.113.8], loadBalancerSourceRanges: [10.0.0.0/8, 192.0.2.0/24], ports: [{name: http, port: 80}]}",
		"metadata: {name: np}\nspec: {type: NodePort, clusterIPs: [10.96.0.1, 'fd00::1'], ports: [{name: http, port: 80, nodePort: 30080}]}",
		slice(http, "10.1.0.2@n1:draining", "10.1.0.1@n2"), slice(http, "10.1.0.2@n1"), slice("{name: b, port: 1}", "10.1.0.2@n2"), slice(http, "fd01::1@n1"),
		"kind: Pod\nmetadata: {namespace: shop, name: p}\nspec: {nodeName: n1, containers: [{ports: [{containerPort: 80, hostPort: 8000}]}]}\nstatus: {podIPs: [{ip: 10.1.0.5}]}",
		"kind: Pod\nmetadata: {namespace: shop, name: q}\nspec: {nodeName: n1, containers: [{ports: [{containerPort: 81, hostPort: 8000}]}]}\nstatus: {podIPs: [{ip: 10.1.0.6}]}",
	}
	in := objects(t, strings.Join(docs, "\n---\n"))
	want := lb.NewIndex(in).Desired(n1(), recent)
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		r.Shuffle(len(in.Services), func(i, j int) { in.Services[i], in.Services[j] = in.Services[j], in.Services[i] })
		r.Shuffle(len(in.Slices), func(i, j int) { in.Slices[i], in.Slices[j] = in.Slices[j], in.Slices[i] })
		r.Shuffle(len(in.Pods), func(i, j int) { in.Pods[i], in.Pods[j] = in.Pods[j], in.Pods[i] })
		if got := lb.NewIndex(in).Desired(n1(), recent); got.Sum() != want.Sum() {
			t.Fatal(cmp.Diff(show(want), show(got)))
		}
	}
}
