//go:build e2e

package e2e

import (
	"archive/tar"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/report"
)

// A redacted snapshot names nobody: a grep of all its files for every name and
// address of the lab finds none, logs, rules of kube-proxy and keys of maps
// included. What is found in it is what is found in the cluster.
func TestRedactedSnapshotNamesNobody(t *testing.T) {
	for _, name := range []string{"kube-proxy", "kpr-residue", "kpr"} {
		t.Run(name, func(t *testing.T) {
			enter(t, name)
			file := filepath.Join(t.TempDir(), "shown.tar.gz")
			if a := kpr(t, "snapshot", "--redact", file); a.code != 0 {
				t.Fatalf("snapshot: exit code %d\n%s", a.code, a.stderr)
			}
			files := members(t, file)
			names, addresses := namesOfLab(t), addressesOfLab(t)
			if len(names) < 20 || len(addresses) < 20 || len(files) < 60 {
				t.Fatalf("%d names, %d addresses, %d files", len(names), len(addresses), len(files))
			}
			for _, n := range names {
				absent(t, files, n, `(?i)(?:^|[^A-Za-z0-9])`+regexp.QuoteMeta(n)+`(?:$|[^A-Za-z0-9])`)
			}
			for _, a := range addresses {
				absent(t, files, a.String(), `(?:^|[^0-9a-zA-Z.])`+regexp.QuoteMeta(a.String())+`(?:$|[^0-9a-fA-F.])`)
				if a.Is4() {
					raw := a.As4()
					absent(t, files, a.String()+" in hexadecimal", `(?i)\b`+hex.EncodeToString(raw[:])+`\b`)
				}
			}
			live, _ := document(t, "check")
			shown, _ := document(t, "check", "--snapshot", file)
			if a, b := rulesOf(live.Findings), rulesOf(shown.Findings); a != b || live.Verdict.ExitCode != shown.Verdict.ExitCode {
				t.Errorf("live %s (exit %d), redacted %s (exit %d)", a, live.Verdict.ExitCode, b, shown.Verdict.ExitCode)
			}
		})
	}
}

// rulesOf are the rules of findings, one for each, sorted.
func rulesOf(fs []report.Finding) string {
	var all []string
	for _, f := range fs {
		all = append(all, f.Severity+" "+f.Rule)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func absent(t *testing.T, files map[string]string, what, pattern string) {
	t.Helper()
	re := regexp.MustCompile(pattern)
	for name, text := range files {
		if at := re.FindStringIndex(text); at != nil {
			t.Errorf("%s is in %s: …%s…", what, name, text[max(0, at[0]-60):min(len(text), at[1]+60)])
			return
		}
	}
}

// everybodys are names that each cluster has, and single words that Kubernetes
// and Cilium print themselves.
var everybodys = regexp.MustCompile(`^(?:default|kubernetes|kube-[a-z-]+|cilium(?:-(?:config|operator|secrets|agent|envoy))?|hubble-[a-z-]+|client|coredns|extension-apiserver-authentication|kube-root-ca\.crt)$`)

func namesOfLab(t *testing.T) []string {
	t.Helper()
	var list struct {
		Items []struct{ Metadata struct{ Name string } }
	}
	raw := theLab.kubectl(t, "get", "namespaces,nodes,services,endpointslices,pods,daemonsets,deployments", "-A", "-o", "json")
	if err := json.Unmarshal([]byte(raw), &list); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, o := range list.Items {
		if n := o.Metadata.Name; !everybodys.MatchString(n) {
			out = append(out, n)
		}
	}
	return out
}

func addressesOfLab(t *testing.T) []netip.Addr {
	t.Helper()
	raw := theLab.kubectl(t, "get", "nodes,services,endpointslices,pods,ciliumnodes", "-A", "-o", "json")
	seen := map[netip.Addr]bool{}
	var out []netip.Addr
	for _, s := range regexp.MustCompile(`[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+|fd00:[0-9a-f:]+`).FindAllString(raw, -1) {
		if a, err := netip.ParseAddr(s); err == nil && !seen[a] && !a.IsLoopback() && !a.IsUnspecified() {
			seen[a] = true
			out = append(out, a)
		}
	}
	return out
}

// members are the files of an archive, each with its name as the first line.
func members(t *testing.T, file string) map[string]string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		out[h.Name] = h.Name + "\n" + string(data)
	}
}

// A comparison tells a fault from nothing: the state before against the cluster
// as it is, before and after the fault.
func TestDiffTellsTheFault(t *testing.T) {
	enter(t, "kpr")
	file := filepath.Join(t.TempDir(), "before.tar.gz")
	if a := kpr(t, "snapshot", file); a.code != 0 {
		t.Fatalf("snapshot: exit code %d\n%s", a.code, a.stderr)
	}
	if a := kpr(t, "diff", file, "live", "-q"); a.code != 0 {
		t.Errorf("nothing changed: exit code %d\n%s", a.code, a.stdout)
	}
	s := enter(t, "backend-lost")
	d, a := document(t, "diff", file, "live")
	if a.code != 2 || d.Diff == nil || !strings.Contains(rulesOf(d.Diff.New), s.Expect.Rule) {
		t.Errorf("exit code %d, want 2 and %s\n%s", a.code, s.Expect.Rule, a.stdout)
	}
	known := kpr(t, "check", "--baseline", file, "-q")
	if known.code != s.Expect.Exit {
		t.Errorf("check --baseline: exit code %d, want %d\n%s", known.code, s.Expect.Exit, known.stdout)
	}
}
