package redact

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

func learnt(t *testing.T, names ...string) *Redactor {
	t.Helper()
	key, err := KeyOf([]byte("a key that is for tests alone"))
	if err != nil {
		t.Fatal(err)
	}
	r := New(key)
	r.learning = true
	for _, n := range names {
		r.Learn(n)
	}
	r.noteAddr(netip.MustParseAddr("10.96.0.10"))
	r.learning = false
	return r
}

// common prefix of two addresses, in bits.
func shared(a, b netip.Addr) int {
	for bit := range a.BitLen() {
		p, _ := a.Prefix(bit + 1)
		if !p.Contains(b) {
			return bit
		}
	}
	return a.BitLen()
}

func TestAddressesKeepTheirPrefixes(t *testing.T) {
	r := learnt(t)
	var all []netip.Addr
	for _, s := range []string{
		"10.0.0.1", "10.0.0.2", "10.96.0.1", "10.96.0.10", "10.97.1.1", "10.244.0.5", "10.244.1.5", "172.16.0.1", "172.30.0.11", "172.31.255.1", "172.32.0.1", "192.168.20.140", "192.168.20.141", "192.167.1.1",
		"100.64.0.9", "100.63.0.9", "8.8.8.8", "8.8.4.4", "203.0.113.7", "203.0.113.8", "198.51.100.1", "192.192.192.191", "126.0.0.1",
		"fd00::1", "fd00:10:96::5205", "fd00:10:96::ed79", "fd00:10:244:1::9839", "fc00::1", "2001:db8::1", "2001:db8::2", "2001:db9::2", "2a00:1450:4001:81b::200e", "fe80::a8bb:ccff:fedd:eeff",
	} {
		all = append(all, netip.MustParseAddr(s))
	}
	for i, a := range all {
		if to := r.Addr(a); to == a {
			t.Errorf("%s is replaced by itself", a)
		}
		for _, b := range all[:i] {
			if a.Is4() != b.Is4() {
				continue
			}
			if x, y := shared(a, b), shared(r.Addr(a), r.Addr(b)); x != y {
				t.Errorf("%s and %s share %d bits, their replacements %s and %s share %d", a, b, x, r.Addr(a), r.Addr(b), y)
			}
		}
		for _, c := range classes {
			if c.Contains(a) != c.Contains(r.Addr(a)) {
				t.Errorf("%s is replaced by %s, of another class than %s", a, r.Addr(a), c.Prefix)
			}
		}
	}
}

func TestAddressesOfEverybodyStay(t *testing.T) {
	r := learnt(t)
	for _, s := range []string{
		"0.0.0.0", "127.0.0.1", "169.254.169.254", "169.254.20.10", "255.255.255.255", "255.255.255.0", "224.0.0.5", "::", "::1", "ff02::1", "192.192.192.192", "::ffff:127.0.0.1", "fe80::1",
	} {
		if a := netip.MustParseAddr(s); r.Addr(a) != a {
			t.Errorf("%s became %s", a, r.Addr(a))
		}
	}
	plain := r.Addr(netip.MustParseAddr("10.96.0.10"))
	if got := r.Addr(netip.MustParseAddr("::ffff:10.96.0.10")); got.Unmap() != plain {
		t.Errorf("mapped into IPv6 it is %s, plain %s", got, plain)
	}
}

// TestText: the left side of each line holds NAME for what has to be replaced.
func TestText(t *testing.T) {
	r := learnt(t, "shop", "web-np", "web", "kpr-w1", "node-7.acme.example", "acme.example", "db")
	ip, six := r.Addr(netip.MustParseAddr("10.96.0.10")).String(), r.Addr(netip.MustParseAddr("fd00::a")).String()
	masked, _ := r.Addr(netip.MustParseAddr("10.96.0.0")).Prefix(16)
	pod := r.word("web", 4) + "-" + r.word("9b479c4c8", 4)
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"10.96.0.10", ip},
		{"10.96.0.10:53/UDP (0)", ip + ":53/UDP (0)"},
		{"TCP://10.96.0.10", "TCP://" + ip},
		{"-d 10.96.0.10/32 -p udp", "-d " + ip + "/32 -p udp"},
		{"from 10.96.0.0/16,", "from " + masked.String() + ","},
		{"[fd00::a]:80/TCP", "[" + six + "]:80/TCP"},
		{"IPv6:fd00::a IPv6ExpirationUUID:", "IPv6:" + six + " IPv6ExpirationUUID:"},
		{"fd00::a%eth0", six + "%eth0"},
		{"10.96.0.10.", ip + "."},
		{"at 10.96.0.10: refused", "at " + ip + ": refused"},
		{"1.20.2 v1.34.3 5.15.0-91", "1.20.2 v1.34.3 5.15.0-91"},
		{"2026-12-01T04:50:40.807319649Z", "2026-12-01T04:50:40.807319649Z"},
		{"cilium/v2::CiliumNode", "cilium/v2::CiliumNode"},
		{"TCP  0A60000A:0035 rr", "TCP  " + strings.ToUpper(r.hex["0a60000a"]) + ":0035 rr"},
		{"0x0a60000a", "0x" + r.hex["0a60000a"]},
		{"ip-10-96-0-10.ec2", "ip-" + strings.ReplaceAll(ip, ".", "-") + ".ec2"},
		{"shop/web-np:http", r.Name("shop") + "/" + r.Name("web-np") + ":http"},
		{"\"shop/web\" has", `"` + r.Name("shop") + "/" + r.Name("web") + `" has`},
		{"web.shop.svc.cluster.local", r.Name("web") + "." + r.Name("shop") + ".svc.cluster.local"},
		{"kube-proxy-kpr-w1", "kube-proxy-" + r.Name("kpr-w1")},
		{"web-9b479c4c8", r.word("web", 4) + "-9b479c4c8"}, // a pod's suffix that was never learnt
		{"https://node-7.acme.example:6443/x", "https://" + r.Name("node-7.acme.example") + ":6443/x"},
		{"SHOP_SERVICE_HOST", strings.ToUpper(r.Name("shop")) + "_SERVICE_HOST"},
		{"workshop webhook", "workshop webhook"},
		{"KUBE-SVC-XS3ZU56555AQFGIC KUBE-SERVICES", "KUBE-SVC-" + r.hash("XS3ZU56555AQFGIC") + " KUBE-SERVICES"},
		{"chain service-ULMVA6XW-shop/web/tcp/http {", "chain service-" + r.hash("ULMVA6XW") + "-" + r.Name("shop") + "/" + r.Name("web") + "/tcp/http {"},
		{"lladdr aa:bb:cc:dd:ee:ff", "lladdr " + r.mac("aa:bb:cc:dd:ee:ff")},
		{"ff:ff:ff:ff:ff:ff", "ff:ff:ff:ff:ff:ff"},
		{"pod db", "pod " + r.Name("db")},
	} {
		if got := r.Text(c.in); got != c.want {
			t.Errorf("%q became %q, want %q", c.in, got, c.want)
		}
	}
	r.learning = true
	r.Learn("web-9b479c4c8")
	if got := r.Text("web-9b479c4c8"); got != pod {
		t.Errorf("a learnt pod became %q, want %q", got, pod)
	}
}

func TestNames(t *testing.T) {
	r := learnt(t)
	for _, stay := range []string{"", "default", "kubernetes", "kube-system", "kube-dns", "cilium-config", "kube-proxy", "hubble-peer", "http", "dns-tcp", "42", "v1.20.2", "a"} {
		if got := r.Name(stay); got != stay {
			t.Errorf("%s became %s", stay, got)
		}
	}
	seen := map[string]string{}
	for _, name := range []string{"shop", "web", "web-np", "web-1", "web-2", "api-proxy", "one-local", "node-1024", "node-1025", "db", "a-1", "ip-10-0-3-9.eu-west-1.compute.internal", "cilium-gateway-shared", strings.Repeat("a-", 40) + "z"} {
		got := r.Name(name)
		if got == name || len(got) > 253 || strings.Trim(got, "abcdefghijklmnopqrstuvwxyz0123456789.-") != "" || seen[got] != "" {
			t.Errorf("%s became %s", name, got)
		}
		for label := range strings.SplitSeq(got, ".") {
			if len(label) > maxName || strings.HasPrefix(label, "-") || strings.HasSuffix(label, "-") {
				t.Errorf("%s became %s: %q is no label", name, got, label)
			}
		}
		seen[got] = name
	}
	if got := r.Name("cilium-gateway-shared"); !strings.HasPrefix(got, "cilium-gateway-") {
		t.Errorf("a Gateway's Service became %s", got)
	}
	if a, b := r.Name("web-1"), r.Name("web-2"); a[:len(a)-1] != b[:len(b)-1] {
		t.Errorf("%s and %s do not begin alike", a, b)
	}
}

func TestNumbersStayDifferent(t *testing.T) {
	r := learnt(t)
	seen := map[string]bool{}
	for i := range 900 {
		seen[r.digits(string([]byte{byte('1' + i/100), byte('0' + i/10%10), byte('0' + i%10)}))] = true
	}
	if len(seen) != 900 {
		t.Errorf("900 numbers became %d", len(seen))
	}
}

func TestSecretsAreDropped(t *testing.T) {
	for _, s := range []string{
		"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----", "Authorization: Bearer abcdef.ghijkl", "token: K10" + strings.Repeat("ab", 32) + "::server:hunter2", `--token=hunter2hunter2`, "password=hunter2",
		`"client-key-data": "hunter2"`, "https://jane:hunter2@api", "jane.hunter2@acme.example", "eyJhbGciOiJSUzI1NiIsImtpZCI6Imh1bnRlcjIifQ.eyJpc3MiOiJodW50ZXIyIn0.aHVudGVyMg", "arn:aws:eks:eu-west-1:123456789012:cluster/hunter2",
		strings.Repeat("aHVudGVyMg", 12) + "==",
	} {
		got := secrets(s)
		for _, left := range []string{"hunter2", "MIIB", "abcdef", "eyJ", "aHVudGVyMg"} {
			if strings.Contains(got, left) {
				t.Errorf("%q became %q", s, got)
			}
		}
	}
	for _, s := range []string{"serviceAccountToken", "automountServiceAccountToken: true", "--token-auth-file=/etc/kubernetes/tokens", "sha256:" + strings.Repeat("0a", 32), "hubble-disable-tls: true", "nothing"} {
		if got := secrets(s); got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
}

func TestKeyFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "key")
	first, made, err := KeyFile(name)
	if err != nil || !made {
		t.Fatalf("made %v, %v", made, err)
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	second, made, err := KeyFile(name)
	if err != nil || made || string(second.secret) != string(first.secret) {
		t.Errorf("read again: made %v, the same %v, %v", made, string(second.secret) == string(first.secret), err)
	}
	if err := os.WriteFile(name, []byte("short\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := KeyFile(name); err == nil || !strings.Contains(err.Error(), "a key of 5 bytes") {
		t.Errorf("a short key: %v", err)
	}
}

func TestRedirectListKeepsPorts(t *testing.T) {
	r := learnt(t)
	r.learning = true
	in := "LRP namespace   LRP name         FrontendType   Matching Service\n" +
		"shop            to-cache         clusterIP      shop/cache-svc\n" +
		"                |                fd00:10:96::a:6379/TCP -> fd00:10:244::5:6379(shop/cache-x2),\n"
	got := r.table(source.RedirectList, in)
	want := "[" + r.Addr(netip.MustParseAddr("fd00:10:96::a")).String() + "]:6379/TCP -> [" + r.Addr(netip.MustParseAddr("fd00:10:244::5")).String() + "]:6379(" + r.Name("shop") + "/" + r.Name("cache-x2") + "),"
	if !strings.Contains(got, want) {
		t.Errorf("got\n%swant %s", got, want)
	}
}

func TestForeignPodsTellNothing(t *testing.T) {
	r := learnt(t)
	r.learning = true
	in := []byte(`{"items":[{"metadata":{"name":"cache-x2","namespace":"kube-system","annotations":{"acme.example/owner":"jane","service.cilium.io/global":"true"}},"spec":{"hostNetwork":true,"volumes":[{"secret":{"secretName":"acme-key"}}],` +
		`"containers":[{"name":"resolver","image":"registry.acme.example:5000/infra/node-cache:1.22","env":[{"name":"ACME","value":"hunter2"}],"args":["-localip","169.254.20.10,10.96.0.10","-conf","/etc/acme"]}]}}]}`)
	for range 2 { // learns, then replaces
		out, err := r.objects(source.Pods, source.JSON, in)
		if err != nil {
			t.Fatal(err)
		}
		r.learning = false
		for _, left := range []string{"acme", "jane", "hunter2", "cache-x2", "10.96.0.10"} {
			if strings.Contains(string(out), left) {
				t.Errorf("%s is left in %s", left, out)
			}
		}
		if out == nil {
			continue
		}
		for _, kept := range []string{`"-localip","169.254.20.10,` + r.Addr(netip.MustParseAddr("10.96.0.10")).String() + `"`, `"service.cilium.io/global":"true"`, `"hostNetwork":true`, ":1.22"} {
			if !strings.Contains(string(out), kept) {
				t.Errorf("%s is not in %s", kept, out)
			}
		}
	}
}

func TestHostsAndClustersAreLearnt(t *testing.T) {
	r := learnt(t)
	r.learning = true
	agent := []byte(`{"kind":"DaemonSet","metadata":{"name":"cilium","labels":{"k8s-app":"cilium"}},"spec":{"tolerations":[{"key":"acmepool","operator":"Equal","value":"acmegold"}],` +
		`"containers":[{"name":"cilium-agent","env":[{"name":"KUBERNETES_SERVICE_HOST","value":"api.prod.acmecorp.example"},{"name":"KUBERNETES_SERVICE_PORT","value":"6443"}]}]}}`)
	status := []byte(`{"cluster-mesh":{"clusters":[{"connected":true,"name":"mesh-acmeeast","num-nodes":3}]},"bpf-maps":{"maps":[{"name":"NAT","size":1}]}}`)
	text := "ClusterMesh:   1/1 remote clusters ready, 0 global-services\n   mesh-acmewest: ready, 3 nodes, 4 endpoints\n"
	log := `time="x" level=error msg="Unable to contact" error="Get \"https://lb.acmenet.example:6443/x\": dial tcp: lookup dns.acmedns.example on 10.0.0.2:53: no such host" k8sSvcName=acmesvc subsys=k8s` + "\n" +
		`x509: certificate is valid for kubernetes, cp.acmesan.example, 10.0.0.1, not vip.acmevip.example` + "\n" + `pods is forbidden: User "jane:acmeuser" cannot list` + "\n" + `identityLabels="k8s:acmekey=acmevalue,k8s:io.kubernetes.pod.namespace=acmens"`
	read := func() string {
		out, err := r.objects(source.DaemonSets, source.JSON, agent)
		if err != nil {
			t.Fatal(err)
		}
		return string(out) + string(r.answer(source.Status, status)) + r.read(source.Status, text) + r.read(source.AgentLog, log)
	}
	_ = read()
	r.learning = false
	out := read()
	if i := strings.Index(out, "acme"); i >= 0 {
		t.Errorf("…%s…", out[max(0, i-60):min(len(out), i+60)])
	}
	for _, kept := range []string{`"k8s-app":"cilium"`, `"name":"NAT"`, `"cilium-agent"`, "KUBERNETES_SERVICE_HOST", ":6443/x", "remote clusters ready", "level=error", "k8sSvcName=", "io.kubernetes.pod.namespace="} {
		if !strings.Contains(out, kept) {
			t.Errorf("%s is not in %s", kept, out)
		}
	}
}

// FuzzText: whatever comes, nothing panics, and what was learnt is gone.
func FuzzText(f *testing.F) {
	for _, s := range []string{"10.96.0.10:53", "fd00::1%a/64", "web-np.shop", "[::ffff:10.0.0.1]:80", "a--b__c..d", "KUBE-SVC-", "1.2.3.4.5.6", "::::", "ip-1-2-3-4-5", "\xff10.0.0.1\xfe"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r := learnt(t, "secretname")
		out := r.Text(s)
		for line := range strings.FieldsFuncSeq(out, func(c rune) bool { return c > 127 || !alnum(byte(c)) }) {
			if line == "secretname" {
				t.Errorf("%q became %q", s, out)
			}
		}
		_ = r.table(source.FrontendsTable, s)
		_ = r.answer(source.Status, []byte(s))
		_, _ = r.objects(source.Services, source.YAML, []byte(s))
		_ = secrets(s)
		r.learning = true
		_ = r.read(source.AgentLog, s)
		_ = r.table(source.RedirectList, s)
	})
}
