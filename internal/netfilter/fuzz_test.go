package netfilter

import (
	"os"
	"path/filepath"
	"testing"
)

// seeds adds recordings of real nodes and of public reports, and lines of text.
func seeds(f *testing.F, globs []string, texts ...string) {
	f.Helper()
	for _, glob := range globs {
		paths, _ := filepath.Glob(glob)
		if len(paths) == 0 {
			f.Fatalf("%s: no such file", glob)
		}
		for _, path := range paths[:min(len(paths), 3)] {
			data, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data[:min(len(data), 4096)])
		}
	}
	for _, text := range texts {
		f.Add([]byte(text))
	}
}

func FuzzDecode(f *testing.F) {
	seeds(f, []string{"../../test/corpus/*/nodes/*/iptables-*.txt", "../../test/fixtures/lab-kpr-residue/nodes/*/ip*-nft-save.txt", "testdata/iptables-*"},
		"[1:2] -A X -m comment --comment \"a \\\" b", "Chain X (1 references)\npkts bytes target prot opt in out source destination\n1 2 tcp -- * * 0.0.0.0/0 0.0.0.0/0 /* a",
		"num  target     prot opt source               destination\n1 DROP all -- anywhere anywhere")
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Decode(data, "nat")
		if err != nil && err.Error() == "" {
			t.Error("error without words")
		}
		p := r.Part(IPv4)
		if n := p.Has(KubeProxy) + p.Has(Shared) + p.Has(Kubelet) + p.Has(Cilium); n > len(r.Chains)+2*len(r.Rules) {
			t.Errorf("%d chains of %d and %d rows", n, len(r.Chains), len(r.Rules))
		}
	})
}

func FuzzNFT(f *testing.F) {
	seeds(f, []string{"testdata/nft-*"}, "table ip kube-proxy {\n\tchain endpoint-A-b/c/tcp/d__e {\n dnat to 1.2.3.4:5\n\t}\n}\n", "table ip kube-proxy\ntable ip kube-proxy {\n}\n")
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := DecodeNFT(data)
		if got.All < len(got.Tables) || err != nil && err.Error() == "" {
			t.Errorf("%v: %d tables, %d of them kube-proxy's", err, got.All, len(got.Tables))
		}
	})
}

func FuzzIPVS(f *testing.F) {
	seeds(f, []string{"../../test/corpus/*/nodes/*/ipvsadm.txt"}, "TCP  0A600001:01BB rr\n  -> 0A01000B:192B      Masq    1      0          0\n", "-A -t 1.2.3.4:5\n-a -t 1.2.3.4:5 -r 1.2.3.5:6\n")
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := DecodeIPVS(data); err != nil && err.Error() == "" {
			t.Error("error without words")
		}
		_, _ = DecodeSets(data)
	})
}

func FuzzLinks(f *testing.F) {
	seeds(f, []string{"../../test/corpus/*/nodes/*/ip-addr.txt", "testdata/ip-*"}, "host: iptables v1.8.5 (nf_tables)\n")
	f.Fuzz(func(t *testing.T, data []byte) {
		links, _ := DecodeLinks(data)
		seen := map[string]bool{}
		for _, l := range links {
			if seen[l.Name] {
				t.Errorf("%q twice", l.Name)
			}
			seen[l.Name] = true
		}
		_, _ = DecodeVersions(data)
	})
}
