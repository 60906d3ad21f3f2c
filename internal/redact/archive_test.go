package redact_test

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kubectl-kpr/kubectl-kpr/internal/redact"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// files are what a recording holds, as one text for each file. The names of
// files are texts too.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		data, err := os.ReadFile(path)
		out[name] = name + "\n" + string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// written is the redacted recording as it is given away.
func written(t *testing.T, src source.Source, k redact.Key) map[string]string {
	t.Helper()
	qs := queries(t, src)
	red, err := redact.Of(t.Context(), src, qs, k)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "out")
	w, err := source.NewDirWriter(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := source.Record(t.Context(), red, red.Queries(qs), w, source.Info{Tool: "test"}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return files(t, dir)
}

// TestNothingLeaks greps the redacted recording for every name and address of
// the original. What it looks for is found by other means than redact's.
func TestNothingLeaks(t *testing.T) {
	for _, dir := range recordings(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			src := open(t, dir)
			out := written(t, src, key(t))
			original := files(t, dir)
			lower := map[string]string{}
			for name, text := range out {
				lower[name] = strings.ToLower(text)
			}
			for name := range namesOf(t, original) {
				leaks(t, lower, name, strings.ToLower(name), regexp.MustCompile(`(?i)(?:^|[^A-Za-z0-9])`+regexp.QuoteMeta(name)+`(?:$|[^A-Za-z0-9])`))
			}
			for addr := range addressesOf(original) {
				text := regexp.QuoteMeta(addr.String())
				leaks(t, out, addr.String(), addr.String(), regexp.MustCompile(`(?:^|[^0-9a-zA-Z.])`+text+`(?:$|[^0-9a-fA-F.])`))
				if addr.Is4() {
					raw := addr.As4()
					leaks(t, lower, addr.String()+" in hexadecimal", hex.EncodeToString(raw[:]), regexp.MustCompile(`(?i)\b`+hex.EncodeToString(raw[:])+`\b`))
					leaks(t, out, addr.String()+" with dashes", strings.ReplaceAll(addr.String(), ".", "-"), regexp.MustCompile(`\b`+strings.ReplaceAll(text, `\.`, "-")+`\b`))
				}
			}
		})
	}
}

// leaks looks for a literal first, as that is quick, and then for the pattern
// around it.
func leaks(t *testing.T, out map[string]string, what, literal string, pattern *regexp.Regexp) {
	t.Helper()
	for name, text := range out {
		if !strings.Contains(text, literal) {
			continue
		}
		if at := pattern.FindStringIndex(text); at != nil {
			t.Errorf("%s is still in %s: …%s…", what, name, text[max(0, at[0]-40):min(len(text), at[1]+40)])
			return
		}
	}
}

// known stay, and tell nothing: names that Kubernetes and Cilium give.
var known = regexp.MustCompile(`^(?:kubernetes|default|kube-(?:system|public|node-lease|dns(?:-1)?|proxy)|coredns|cilium(?:-(?:config|operator|agent|envoy|secrets|dns|gateway|ingress))*|hubble-(?:peer|relay|ui)|kubeadm-config|metrics-server|node-local-dns|rke2-coredns-rke2-coredns|metrics-server-[0-9]|cilium-[0-9]|db)$`) // db is in the name of a topic

// words are those of words.txt: a name that is one of them, alone, stays.
func words(t *testing.T) map[string]bool {
	t.Helper()
	data, err := os.ReadFile("words.txt")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for _, w := range strings.Fields(string(data)) {
		all[w] = true
	}
	return all
}

// namesOf are nodes, namespaces, Services, slices and pods of the objects.
func namesOf(t *testing.T, original map[string]string) map[string]bool {
	t.Helper()
	type meta struct{ Name, Namespace string }
	type object struct {
		Metadata  meta
		Endpoints []struct {
			NodeName  string
			TargetRef meta
		}
		Spec struct{ NodeName string }
	}
	names := map[string]bool{}
	for file, text := range original {
		if strings.Contains(file, "/") || file == "snapshot.yaml" || file == "expected.md" || file == "README.md" {
			if node, ok := strings.CutPrefix(filepath.Dir(file), "nodes/"); ok {
				names[node] = true
			}
			continue
		}
		_, body, _ := strings.Cut(text, "\n")
		var list struct{ Items []object }
		if err := yaml.Unmarshal([]byte(body), &list); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, o := range list.Items {
			for _, n := range []string{o.Metadata.Name, o.Metadata.Namespace, o.Spec.NodeName} {
				names[n] = true
			}
			for _, e := range o.Endpoints {
				names[e.NodeName], names[e.TargetRef.Name], names[e.TargetRef.Namespace] = true, true, true
			}
		}
	}
	printed := words(t)
	for n := range names {
		if len(n) < 2 || known.MatchString(n) || printed[n] {
			delete(names, n)
		}
	}
	return names
}

var looksLikeAddress = regexp.MustCompile(`\b[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+\b|\b(?:[0-9a-fA-F]{1,4}:){1,7}:?(?:[0-9a-fA-F]{1,4}:?){0,7}`)

// ofEverybody are addresses that every cluster has.
var ofEverybody = regexp.MustCompile(`^(?:127\.|0\.|169\.254\.|2[2-5][0-9]\.|192\.192\.192\.192$|10\.0\.0\.0$|64:ff9b::$|::|[0-9a-f]{1,3}:|ff|fe80::[0-9a-f]{0,4}$)`)

func addressesOf(original map[string]string) map[netip.Addr]bool {
	all := map[netip.Addr]bool{}
	for file, text := range original {
		if filepath.Ext(file) == ".md" {
			continue
		}
		for _, at := range looksLikeAddress.FindAllStringIndex(text, -1) {
			a, err := netip.ParseAddr(text[at[0]:at[1]])
			// The bases of private ranges stand for whole classes: 10.0.0.0/8.
			rest := text[at[1]:]
			if err != nil || ofEverybody.MatchString(a.String()) || strings.HasPrefix(rest, "/8") && !strings.HasPrefix(rest, "/80") || strings.HasPrefix(rest, "/10") || strings.HasPrefix(rest, "/12") || strings.HasPrefix(rest, "/16") {
				continue
			}
			all[a] = true
		}
	}
	return all
}

// TestSameAgain: with one key a recording is redacted to the same bytes, with
// another to others.
func TestSameAgain(t *testing.T) {
	src := open(t, "../../test/fixtures/lab-kpr")
	first, second := written(t, src, key(t)), written(t, src, key(t))
	other := written(t, src, redact.NewKey())
	for name, text := range first {
		if second[name] != text {
			t.Errorf("%s differs from one run to the next", name)
		}
		if strings.HasSuffix(name, "service-list.json") && other[name] == text {
			t.Errorf("%s is the same with another key", name)
		}
	}
	if len(first) != len(second) || len(first) < 60 {
		t.Errorf("%d and %d files", len(first), len(second))
	}
	if bytes.Contains([]byte(first["snapshot.yaml"]), []byte("kpr-lab")) {
		t.Error("the context's name is in snapshot.yaml")
	}
}
