package netfilter

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var byValue = cmpopts.EquateComparable(netip.AddrPort{}, netip.Prefix{}, netip.Addr{})

// part decodes a recorded save or listing.
func part(t *testing.T, path, table string, f Family) *Part {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Decode(data, table)
	if err != nil {
		t.Errorf("%s: %v", path, err)
	}
	return r.Part(f)
}

// TestPartOfRecordings holds what is counted in recordings of real nodes and of
// public reports.
func TestPartOfRecordings(t *testing.T) {
	const fixtures, corpus = "../../test/fixtures/", "../../test/corpus/"
	tests := []struct {
		path, table               string
		family                    Family
		backend                   Backend
		version                   string
		tables                    string
		proxy, shared, kubelet    int
		services, targets, blocks int
		used                      string
	}{
		{fixtures + "kpr-clean/nodes/kpr-w1/iptables-save.txt", "", IPv4, NFT, "1.8.9", "mangle raw filter nat", 0, 0, 5, 0, 0, 0, ""},
		{fixtures + "lab-kpr/nodes/kpr-w1/ip6tables-nft-save.txt", "", IPv6, NFT, "1.8.9", "mangle raw filter nat", 0, 0, 5, 0, 0, 0, ""},
		{fixtures + "kpr-with-kube-proxy/nodes/kpr-w1/iptables-save.txt", "", IPv4, NFT, "1.8.9", "mangle raw filter nat", 46, 2, 5, 8, 23, 1, ""},
		{fixtures + "kpr-with-kube-proxy/nodes/kpr-w1/ip6tables-save.txt", "", IPv6, NFT, "1.8.9", "mangle raw filter nat", 14, 2, 5, 1, 3, 0, ""},
		{fixtures + "lab-kpr-residue/nodes/kpr-w2/iptables-nft-save.txt", "", IPv4, NFT, "1.8.9", "mangle raw filter nat", 46, 2, 5, 7, 23, 0, ""},
		{"testdata/iptables-t-nat-S.txt", "nat", IPv4, "", "", "nat", 39, 2, 1, 7, 23, 0, ""},
		{corpus + "aks-leftover-chains/nodes/a-1/iptables-nat.txt", "nat", IPv4, "", "", "nat", 5, 2, 1, 1, 1, 0, ""},
		{corpus + "k3s-embedded-kube-proxy/nodes/k3s-agent-1/iptables-save.txt", "", IPv4, "", "", "nat", 7, 2, 1, 1, 2, 0, ""},
		{corpus + "healthy-kpr-false-kube-proxy/nodes/w-1/iptables-save.txt", "", IPv4, "", "", "nat", 11, 2, 1, 2, 5, 0, "default/kubernetes kube-system/kube-dns"},
		{corpus + "ipvs-residue/nodes/w-1/iptables-nat.txt", "nat", IPv4, "", "", "nat", 3, 4, 1, 0, 0, 0, ""},
		{corpus + "kubeadm-kube-proxy-idle/nodes/n-1/iptables-nat-L.txt", "nat", IPv4, "", "", "nat", 2, 1, 0, 1, 0, 0, ""},
		{corpus + "kpr-false-clusterip-by-cilium/nodes/a-1/iptables-counters.txt", "", IPv4, "", "", "nat", 1, 0, 0, 1, 0, 0, "lab/svc-backend"},
	}
	for _, tt := range tests {
		t.Run(strings.TrimPrefix(strings.TrimPrefix(tt.path, fixtures), corpus), func(t *testing.T) {
			p := part(t, tt.path, tt.table, tt.family)
			if p.Backend != tt.backend || p.Version != tt.version || strings.Join(p.Tables, " ") != tt.tables {
				t.Errorf("back end %q, version %q, tables %v", p.Backend, p.Version, p.Tables)
			}
			got := []int{p.Has(KubeProxy), p.Has(Shared), p.Has(Kubelet), len(p.Services), len(p.Targets), len(p.Blocks)}
			want := []int{tt.proxy, tt.shared, tt.kubelet, tt.services, tt.targets, tt.blocks}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("kube-proxy's, shared, kubelet's, Services, targets, blocks (-want +got):\n%s", diff)
			}
			if s := strings.Join(p.Used, " "); s != tt.used {
				t.Errorf("Services with hits: %q", s)
			}
			if len(p.Lost) > 0 {
				t.Errorf("lost: %v", p.Lost)
			}
		})
	}
}

func TestDecodeRows(t *testing.T) {
	tests := []struct {
		name, text, table string
		want              Rule
		counted           bool
	}{
		{"save with counters", `[12:720] -A KUBE-SEP-7GIJ33LAD7V5FOMW -p tcp -m comment --comment "traefik/traefik:web" -m tcp -j DNAT --to-destination 10.42.0.145:8000`, "nat",
			Rule{Table: "nat", Chain: "KUBE-SEP-7GIJ33LAD7V5FOMW", Target: "DNAT", Comment: "traefik/traefik:web", Proto: "tcp", To: netip.MustParseAddrPort("10.42.0.145:8000"), Conditions: 1, Packets: 12, Line: 1}, true},
		{"-S -v", `-A KUBE-FIREWALL ! -s 127.0.0.0/8 -d 127.0.0.0/8 -m comment --comment "block incoming localnet connections" -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -c 3 180 -j DROP`, "filter",
			Rule{Table: "filter", Chain: "KUBE-FIREWALL", Target: "DROP", Comment: "block incoming localnet connections", Src: "! 127.0.0.0/8", Dst: "127.0.0.0/8", Conditions: 3, Packets: 3, Line: 1}, true},
		{"IPv6", `-A KUBE-SEP-MMINQZ34XHXXOX3N -p tcp -m comment --comment "shop/web:http" -m tcp -j DNAT --to-destination [fd00:10:244:1::f34d]:8080`, "",
			Rule{Table: "nat", Chain: "KUBE-SEP-MMINQZ34XHXXOX3N", Target: "DNAT", Comment: "shop/web:http", Proto: "tcp", To: netip.MustParseAddrPort("[fd00:10:244:1::f34d]:8080"), Conditions: 1, Line: 1}, false},
		{"-L -v", "  548 34696 KUBE-NODEPORTS  all  --  *      *       0.0.0.0/0            0.0.0.0/0            /* kubernetes service nodeports; NOTE: this must be the last rule in this chain */ ADDRTYPE match dst-type LOCAL", "nat",
			Rule{Table: "nat", Target: "KUBE-NODEPORTS", Comment: "kubernetes service nodeports; NOTE: this must be the last rule in this chain", Conditions: 1, Packets: 548, Line: 1}, true},
		{"-L -v short counters, number of the protocol, no target", "  12K 3456M            6    --  eth0   *       !10.0.0.0/8          10.96.0.1            tcp dpt:443", "filter",
			Rule{Table: "filter", Proto: "tcp", Src: "! 10.0.0.0/8", Dst: "10.96.0.1", Conditions: 5, Packets: 12000, Line: 1}, true},
		{"ip6tables -L -v leaves opt blank", "    0     0 DNAT       tcp      *      *       ::/0                 ::/0                 /* shop/web:http */ tcp to:[fd00::1]:80", "nat",
			Rule{Table: "nat", Target: "DNAT", Comment: "shop/web:http", Proto: "tcp", To: netip.MustParseAddrPort("[fd00::1]:80"), Conditions: 1, Line: 1}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := Decode([]byte(tt.text), tt.table)
			if err != nil || len(r.Rules) != 1 {
				t.Fatalf("%v, %d rules", err, len(r.Rules))
			}
			if diff := cmp.Diff(tt.want, r.Rules[0], byValue); diff != "" || r.Counted != tt.counted {
				t.Errorf("counted %v (-want +got):\n%s", r.Counted, diff)
			}
		})
	}
}

func TestListingWithoutCounters(t *testing.T) {
	const text = `Chain KUBE-FIREWALL (2 references)
num  target     prot opt source               destination
1    DROP       all  -- !127.0.0.0/8          127.0.0.0/8          /* block incoming localnet connections */ ! ctstate RELATED,ESTABLISHED,DNAT
2    DROP       all  --  0.0.0.0/0            0.0.0.0/0            /* kubernetes firewall for dropping marked packets */ mark match 0x8000/0x8000
`
	r, err := Decode([]byte(text), "filter")
	if err != nil {
		t.Fatal(err)
	}
	p := r.Part(IPv4)
	if p.Has(Kubelet) != 1 || p.Counted || len(r.Rules) != 2 || !r.Rules[1].Mark || r.Rules[0].Src != "! 127.0.0.0/8" || len(p.Lost) != 0 {
		t.Errorf("%+v\n%+v", r.Rules, p)
	}
}

func TestRemarks(t *testing.T) {
	tests := []struct {
		text    string
		backend Backend
		other   bool
	}{
		{"# Generated by iptables-nft-save v1.8.9 (nf_tables) on Tue Dec  1 04:53:18 2026\n*nat\nCOMMIT\n", NFT, false},
		{"# Generated by iptables-save v1.8.4 on Thu Nov 10 18:59:25 2022\n", Legacy, false},
		{"# Warning: iptables-legacy tables present, use iptables-legacy-save to see them\n", "", true},
		{"", "", false},
	}
	for _, tt := range tests {
		r, err := Decode([]byte(tt.text), "")
		if err != nil || r.Backend != tt.backend || r.Other != tt.other {
			t.Errorf("%q: %v %+v", tt.text, err, r)
		}
	}
}

func TestUnreadableLines(t *testing.T) {
	r, err := Decode([]byte("*nat\n> Error while running 'iptables-save -c':  exit status 127\n:KUBE-SERVICES - [0:0]\n-X\nno\nsuch\nthing\n"), "")
	if err == nil || err.Error() != "line 2, 4, 5 and 2 more: not readable" || len(r.Chains) != 1 {
		t.Errorf("%v %+v", err, r)
	}
	if _, err := Decode([]byte("*nat\n"+strings.Repeat("x", maxLine+1)), ""); err == nil {
		t.Error("a line over the limit is no error")
	}
}

func TestOwnerOf(t *testing.T) {
	tests := []struct {
		owner Owner
		table string
		names string
	}{
		{KubeProxy, "nat", "KUBE-SERVICES KUBE-NODEPORTS KUBE-PROXY-CANARY KUBE-SVC-UIRTXPNS5NKAPNTY KUBE-SEP-7GIJ33LAD7V5FOMW KUBE-EXT-UIRTXPNS5NKAPNTY KUBE-FW-UIRTXPNS5NKAPNTY KUBE-SVL-UIRTXPNS5NKAPNTY KUBE-XLB-UIRTXPNS5NKAPNTY KUBE-NODE-PORT KUBE-LOAD-BALANCER KUBE-PORTALS-HOST"},
		{KubeProxy, "filter", "KUBE-FORWARD KUBE-EXTERNAL-SERVICES KUBE-PROXY-FIREWALL KUBE-IPVS-FILTER KUBE-IPVS-OUT-FILTER KUBE-SOURCE-RANGES-FIREWALL"},
		{Shared, "nat", "KUBE-MARK-MASQ KUBE-MARK-DROP KUBE-POSTROUTING KUBE-FIREWALL"},
		{Kubelet, "filter", "KUBE-FIREWALL KUBE-KUBELET-CANARY KUBE-IPTABLES-HINT"},
		{Cilium, "nat", "CILIUM_POST_nat OLD_CILIUM_POST_nat"},
		{Other, "filter", "KUBE-ROUTER-INPUT KUBE-NWPLCY-DEFAULT KUBE-NWPLCY-UIRTXPNS5NKAPNTY KUBE-POD-FW-UIRTXPNS5NKAPNTY KUBE-HOSTPORTS KUBE-HP-UIRTXPNS5NKAPNTY KUBE-FW-CUSTOM KUBE-SVC- KUBE-SEP-lowercasehash123 KUBE-ADMIN KUBERNETES KUBE cali-INPUT CNI-DN-1234 FLANNEL-FWD INPUT DOCKER"},
	}
	for _, tt := range tests {
		for name := range strings.FieldsSeq(tt.names) {
			if got := OwnerOf(Chain{tt.table, name}); got != tt.owner {
				t.Errorf("%s in %s: owner %d, want %d", name, tt.table, got, tt.owner)
			}
		}
	}
}

func TestServiceOf(t *testing.T) {
	for comment, want := range map[string]string{
		"shop/web:http cluster IP":                                    "shop/web",
		"shop/web:http -> [fd00:10:244:1::f34d]:8080":                 "shop/web",
		"masquerade LOCAL traffic for shop/web external destinations": "shop/web",
		"shop/nobody:http has no endpoints":                           "shop/nobody",
		"block incoming localnet connections":                         "",
		"a/b/c":                                                       "",
		"10.0.0.0/8":                                                  "",
		"Shop/Web":                                                    "",
	} {
		if got := serviceOf(comment); got != want {
			t.Errorf("%q: %q, want %q", comment, got, want)
		}
	}
}

func TestLost(t *testing.T) {
	tests := []struct {
		name, text string
		want       []Lost
	}{
		{"kubelet's drop without addresses", "*filter\n-A KUBE-FIREWALL -m comment --comment \"block incoming localnet connections\" -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP\n", []Lost{{"filter", "KUBE-FIREWALL", DropsAll, 1}}},
		{"drop of marked packets without the mark", "*filter\n-A KUBE-FIREWALL -m comment --comment \"kubernetes firewall for dropping marked packets\" -j DROP\n", []Lost{{"filter", "KUBE-FIREWALL", DropsAll, 1}}},
		{"whole", "*filter\n-A KUBE-FIREWALL -m mark --mark 0x8000/0x8000 -j DROP\n", nil},
		{"TPROXY", "-A CILIUM_PRE_mangle -p tcp -j TPROXY --on-port 1\n-A CILIUM_PRE_mangle -p udp -j TPROXY --on-port 1\n", []Lost{{"mangle", "CILIUM_PRE_mangle", ProxiesAll, 2}}},
		{"TPROXY of another program", "*mangle\n-A istio -p tcp -j TPROXY --on-port 1\n", nil},
		{"masquerade behind a RETURN of what is not marked", "*nat\n-A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN\n-A KUBE-POSTROUTING -j MASQUERADE\n", nil},
		{"masquerade of everything", "*nat\n-A KUBE-POSTROUTING -j MASQUERADE --random-fully\n", []Lost{{"nat", "KUBE-POSTROUTING", MasqueradesAll, 1}}},
		{"masquerade of nothing", "*nat\n-A KUBE-POSTROUTING -j RETURN\n-A KUBE-POSTROUTING -j MASQUERADE --random-fully\n", []Lost{{"nat", "KUBE-POSTROUTING", MasqueradesNone, 1}}},
		{"masquerade by mark, up to 1.15", "*nat\n-A KUBE-POSTROUTING -m mark --mark 0x4000/0x4000 -j MASQUERADE\n", nil},
		{"forward everything", "*filter\n-A KUBE-FORWARD -m comment --comment \"kubernetes forwarding rules\" -j ACCEPT\n", []Lost{{"filter", "KUBE-FORWARD", AcceptsAll, 1}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := Decode([]byte(tt.text), "")
			if diff := cmp.Diff(tt.want, r.Part(IPv4).Lost); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
	p := part(t, "../../test/corpus/tproxy-lost-mark/nodes/n-1/iptables-mangle-S.txt", "mangle", IPv4)
	if diff := cmp.Diff([]Lost{{"mangle", "CILIUM_PRE_mangle", ProxiesAll, 2}}, p.Lost); diff != "" {
		t.Error(diff)
	}
}

func TestJumpsKeepTheirOrder(t *testing.T) {
	p := part(t, "../../test/corpus/kube-postrouting-before-cilium/nodes/w-1/iptables-save.txt", "", IPv4)
	want := []Jump{{"nat", "POSTROUTING", "KUBE-POSTROUTING"}, {"nat", "POSTROUTING", "CILIUM_POST_nat"}}
	if diff := cmp.Diff(want, p.Jumps); diff != "" {
		t.Error(diff)
	}
}

func TestDecodeIPVS(t *testing.T) {
	server := func(proto, at string, to ...string) VirtualServer {
		v := VirtualServer{Proto: proto, Address: netip.MustParseAddrPort(at)}
		for _, s := range to {
			v.Targets = append(v.Targets, netip.MustParseAddrPort(s))
		}
		return v
	}
	tests := []struct {
		name, text string
		want       []VirtualServer
		bad        string
	}{
		{"ipvsadm -Ln", "IP Virtual Server version 1.2.1 (size=4096)\nProt LocalAddress:Port Scheduler Flags\n  -> RemoteAddress:Port           Forward Weight ActiveConn InActConn\nTCP  10.240.16.1:443 rr\n  -> 10.1.0.11:6443               Masq    1      4          0\nUDP  [fd00::a]:53 rr\n", []VirtualServer{
			server("tcp", "10.240.16.1:443", "10.1.0.11:6443"), server("udp", "[fd00::a]:53")}, ""},
		{"/proc/net/ip_vs", "IP Virtual Server version 1.2.1 (size=4096)\nProt LocalAddress:Port Scheduler Flags\n  -> RemoteAddress:Port Forward Weight ActiveConn InActConn\nTCP  0A600001:01BB rr\n  -> 0A01000B:192B      Masq    1      0          0\nUDP  [fd00:0010:0096:0000:0000:0000:0000:000a]:0035 rr\n", []VirtualServer{
			server("tcp", "10.96.0.1:443", "10.1.0.11:6443"), server("udp", "[fd00:10:96::a]:53")}, ""},
		{"ipvsadm --save -n", "-A -t 10.96.0.1:443 -s rr\n-a -t 10.96.0.1:443 -r 10.1.0.11:6443 -m -w 1\n-A -f 7 -s rr\n", []VirtualServer{
			server("tcp", "10.96.0.1:443", "10.1.0.11:6443"), {}}, ""},
		{"no server", "IP Virtual Server version 1.2.1 (size=4096)\n", nil, ""},
		{"names", "TCP  kubernetes.default:https rr\n", nil, "line 1: not readable"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := DecodeIPVS([]byte(tt.text))
			if diff := cmp.Diff(tt.want, got, byValue); diff != "" || (err != nil) != (tt.bad != "") || err != nil && err.Error() != tt.bad {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestDecodeSets(t *testing.T) {
	for _, text := range []string{
		"KUBE-CLUSTER-IP\nKUBE-6-LOOP-BACK\nKUBE-SRC-ABCDEF\ncilium_node_set_v4\n",
		"Name: KUBE-CLUSTER-IP\nType: hash:ip,port\nMembers:\n10.96.0.1,tcp:443\n\nName: KUBE-6-LOOP-BACK\nName: KUBE-SRC-ABCDEF\nName: cilium_node_set_v4\n",
	} {
		got, err := DecodeSets([]byte(text))
		proxy := slices.DeleteFunc(slices.Clone(got), func(s string) bool { return !ProxySet(s) })
		if err != nil || len(got) != 4 || strings.Join(proxy, " ") != "KUBE-CLUSTER-IP KUBE-6-LOOP-BACK" {
			t.Errorf("%v %v %v", err, got, proxy)
		}
	}
	if _, err := DecodeSets([]byte("ipset v7.15: Kernel error received: Operation not permitted\n")); err == nil {
		t.Error("an error message is no name")
	}
}

func TestDecodeLinks(t *testing.T) {
	want := []Link{{Name: "kube-ipvs0", Addrs: []netip.Prefix{netip.MustParsePrefix("10.233.0.1/32"), netip.MustParsePrefix("10.233.0.3/32")}}}
	for name, text := range map[string]string{
		"-o":  "8: kube-ipvs0    inet 10.233.0.1/32 scope global kube-ipvs0\n8: kube-ipvs0    inet 10.233.0.3/32 scope global kube-ipvs0\n",
		"-br": "kube-ipvs0       DOWN           10.233.0.1/32 10.233.0.3/32 \n",
		"":    "8: kube-ipvs0: <BROADCAST,NOARP> mtu 1500 qdisc noop state DOWN group default \n    link/ether 66:6e:6b:a2:1f:1d brd ff:ff:ff:ff:ff:ff\n    inet 10.233.0.1/32 scope global kube-ipvs0\n       valid_lft forever preferred_lft forever\n    inet 10.233.0.3/32 scope global kube-ipvs0\n",
	} {
		got, err := DecodeLinks([]byte(text))
		if diff := cmp.Diff(want, got, byValue, cmpopts.IgnoreFields(Link{}, "State")); diff != "" || err != nil {
			t.Errorf("ip %s addr: %v (-want +got):\n%s", name, err, diff)
		}
	}
	data, err := os.ReadFile("testdata/ip-br-addr.txt")
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeLinks(data)
	if err != nil || len(got) != 8 || got[3].Name != "cilium_host" || got[3].State != "UP" || len(got[1].Addrs) != 3 {
		t.Errorf("%v %+v", err, got)
	}
}

func TestVersions(t *testing.T) {
	got, err := DecodeVersions([]byte("host: iptables v1.8.5 (nf_tables)\nagent: iptables v1.8.8 (nf_tables)\n"))
	if err != nil || got != (Versions{"1.8.5", "1.8.8"}) {
		t.Errorf("%v %+v", err, got)
	}
	if got, err := DecodeVersions([]byte("iptables v1.8.10 (legacy)\n")); err != nil || got.Host != "1.8.10" {
		t.Errorf("%v %+v", err, got)
	}
	if _, err := DecodeVersions([]byte("sh: iptables: not found\n")); err == nil {
		t.Error("an error message is no version")
	}
	for _, tt := range []struct {
		a, b string
		want bool
	}{{"1.8.5", "1.8.8", true}, {"1.8.8", "1.8.10", true}, {"1.8.10", "1.8.8", false}, {"1.8.8", "1.8.8", false}, {"1.8", "1.8.1", true}, {"", "1.8.8", false}, {"x", "1", false}} {
		if got := Older(tt.a, tt.b); got != tt.want {
			t.Errorf("%q older than %q: %v", tt.a, tt.b, got)
		}
	}
}

func TestDecodeNFT(t *testing.T) {
	read := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	got, err := DecodeNFT(read("nft-list-ruleset.txt"))
	if err != nil || got.All != 10 || len(got.Tables) != 2 {
		t.Fatalf("%v %+v", err, got)
	}
	v4 := got.Tables[0]
	if v4.Name() != "ip kube-proxy" || v4.Chains < 30 || len(v4.Targets) != 23 || len(v4.Services) != 7 {
		t.Errorf("%s: %d chains, %d targets, Services %v", v4.Name(), v4.Chains, len(v4.Targets), v4.Services)
	}
	if diff := cmp.Diff([]string{"shop/nobody"}, v4.Refused); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(Target{Service: "shop/web-np", To: netip.MustParseAddrPort("10.244.0.56:8080")}, v4.Targets[0], byValue); diff != "" {
		t.Error(diff)
	}
	if v6 := got.Tables[1]; v6.Name() != "ip6 kube-proxy" || len(v6.Targets) != 3 {
		t.Errorf("%+v", v6)
	}
	for _, name := range []string{"nft-list-tables.txt", "nft-list-tables.json"} {
		if got, err := DecodeNFT(read(name)); err != nil || got.All != 10 || len(got.Tables) != 2 || got.Tables[1].Family != IPv6 {
			t.Errorf("%s: %v %+v", name, err, got)
		}
	}
	for text, bad := range map[string]string{
		"sh: nft: not found\n":        "line 1: not readable",
		"table ip kube-proxy {\n":     "the text ends within a table",
		`{"nftables": 1}`:             "json: cannot unmarshal",
		"table inet filter {\n}\n}\n": "line 3: not readable",
	} {
		if _, err := DecodeNFT([]byte(text)); err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("%q: %v", text, err)
		}
	}
	both := append(read("nft-list-tables.txt"), read("nft-list-ruleset.txt")...)
	if got, err := DecodeNFT(both); err != nil || len(got.Tables) != 2 || len(got.Tables[0].Targets) != 23 {
		t.Errorf("the list before the tables: %v %+v", err, got)
	}
	if got, err := DecodeNFT([]byte("table inet kube-proxy-like {\n\tchain kube-proxy {\n\t}\n}\n")); err != nil || len(got.Tables) != 0 {
		t.Errorf("a look-alike: %v %+v", err, got)
	}
}
