package cilium

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// digested runs the node's script over a node of a recorded cluster, with its
// answers changed by edit.
func digested(t *testing.T, node, address string, edit func(command, answer string) string) []byte {
	t.Helper()
	for _, tool := range []string{"bash", "jq", "awk", "sort", "sha256sum"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the script needs %s", tool)
		}
	}
	bin := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for command, file := range map[string]string{"service": "service-list.json", "lb/maps-dump": "shell-lb-maps-dump.txt", "db/show": "shell-db-show-frontends.txt"} {
		data, err := os.ReadFile(filepath.Join("../../test/fixtures/lab-kpr/nodes", node, file))
		if err != nil {
			t.Fatal(err)
		}
		write(strings.ReplaceAll(command, "/", "-"), edit(command, string(data)))
	}
	write("ip", "#!/bin/sh\necho 'eth0@if4 UP "+address+"'\n")
	write("cilium-dbg", strings.ReplaceAll("#!/bin/sh\ncase \"$*\" in *maps-dump) cat DIR/lb-maps-dump ;; *db/show*) cat DIR/db-show ;; *) cat DIR/service ;; esac\n", "DIR", bin))
	cmd := exec.Command("bash", "-c", digestScript)
	cmd.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH")}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func same(_, answer string) string { return answer }

var recordedNodes = map[string]string{
	"kpr-cp": "172.30.0.11/24 fd00:30::11/64", "kpr-w1": "172.30.0.12/24 fd00:30::12/64", "kpr-w2": "172.30.0.13/24 fd00:30::13/64",
}

// Nodes of a healthy cluster have other ids, slots and addresses, and the same
// sums.
func TestDigestOfHealthyNodes(t *testing.T) {
	agent, kernel := map[string]bool{}, map[string]bool{}
	for node, address := range recordedNodes {
		d, err := DecodeDigest(digested(t, node, address, same))
		if err != nil {
			t.Fatalf("%s: %v", node, err)
		}
		agent[d.Agent], kernel[d.Kernel] = true, true
		if len(d.Frontends) != 3 || len(d.Dump.Rows) == 0 || len(d.Dump.SourceRanges) == 0 || d.Unwritten != 0 {
			t.Errorf("%s: %d frontends, %d rows, %d ranges, %d unwritten", node, len(d.Frontends), len(d.Dump.Rows), len(d.Dump.SourceRanges), d.Unwritten)
		}
	}
	if len(agent) != 1 || len(kernel) != 1 {
		t.Errorf("%d sums of agents and %d of maps on three nodes that hold the same", len(agent), len(kernel))
	}
}

func TestDigestTellsWhatDiffers(t *testing.T) {
	const node = "kpr-w1"
	healthy, err := DecodeDigest(digested(t, node, recordedNodes[node], same))
	if err != nil {
		t.Fatal(err)
	}
	lines := func(drop string, once bool) func(string) string {
		return func(answer string) string {
			var out strings.Builder
			for line := range strings.Lines(answer) {
				if drop != "" && strings.HasPrefix(line, drop) {
					if once {
						drop = ""
					}
					continue
				}
				out.WriteString(line)
			}
			return out.String()
		}
	}
	for name, tt := range map[string]struct {
		command       string
		edit          func(string) string
		agent, kernel bool // the sum differs
		unwritten     int
	}{
		"a backend is lost": {"lb/maps-dump", lines("BE: ID=1 ", true), false, true, 0},
		"a state differs":   {"lb/maps-dump", func(s string) string { return strings.Replace(s, "STATE=active", "STATE=quarantined", 1) }, false, true, 0},
		"a flag differs": {"lb/maps-dump", func(s string) string {
			return strings.Replace(s, "FLAGS=ExternalIPs", "FLAGS=ExternalIPs+sessionAffinity", 1)
		}, false, true, 0},
		"a frontend is gone":     {"lb/maps-dump", lines("SVC: ID=1 ", false), false, true, 0},
		"affinity and ids alone": {"lb/maps-dump", lines("AFF:", false), false, false, 0},
		"reverse NAT alone":      {"lb/maps-dump", lines("REV:", false), false, false, 0},
		"the agent's backend":    {"service", func(s string) string { return strings.ReplaceAll(s, `"port": 6443`, `"port": 6444`) }, true, false, 0},
		"a write failed":         {"db/show", func(s string) string { return strings.Replace(s, "  Done ", "  Error", 1) }, false, false, 1},
	} {
		d, err := DecodeDigest(digested(t, node, recordedNodes[node], func(command, answer string) string {
			if command != tt.command {
				return answer
			}
			edited := tt.edit(answer)
			if edited == answer && name != "reverse NAT alone" && name != "affinity and ids alone" {
				t.Errorf("%s: nothing was changed", name)
			}
			return edited
		}))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if (d.Agent != healthy.Agent) != tt.agent || (d.Kernel != healthy.Kernel) != tt.kernel || d.Unwritten != tt.unwritten {
			t.Errorf("%s: agent's sum differs %t, map's %t, %d unwritten", name, d.Agent != healthy.Agent, d.Kernel != healthy.Kernel, d.Unwritten)
		}
	}
}

func TestDigestThatIsNotWhole(t *testing.T) {
	whole := string(digested(t, "kpr-w1", recordedNodes["kpr-w1"], same))
	for _, cut := range []string{"", "= agent\n", whole[:strings.Index(whole, "= kernel")], whole[:strings.Index(whole, "= table")]} {
		if _, err := DecodeDigest([]byte(cut)); err == nil {
			t.Errorf("%d of %d bytes are taken for a digest", len(cut), len(whole))
		}
	}
}

func FuzzDigest(f *testing.F) {
	sum := strings.Repeat("0", 64) + "  -\n"
	f.Add([]byte("= agent\n10.0.0.1:80/TCP {\"spec\":{\"frontend-address\":{\"ip\":\"10.0.0.1\",\"port\":80}}}\n" + sum +
		"= kernel\nSVC: ID=1 ADDR=10.0.0.1:80/TCP SLOT=0 COUNT=0 QCOUNT=0 FLAGS=ClusterIP+Local\n" + sum + "= table\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if d, err := DecodeDigest(data); err == nil && (len(d.Agent) != 64 || len(d.Kernel) != 64) {
			t.Errorf("no error and sums %q, %q", d.Agent, d.Kernel)
		}
	})
}
