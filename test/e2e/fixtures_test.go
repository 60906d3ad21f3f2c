//go:build e2e

package e2e

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

var record = flag.Bool("record", false, "record fixtures into test/fixtures")

// recorded are the states that fixtures are made of: those that no fixture
// recorded by hand shows yet.
func recorded() []string {
	return []string{"kpr", "kube-proxy-nft", "kpr-residue", "kpr-residue-nft", "agent-down", "slot-changed", "config-pending", "local-policy"}
}

// TestRecordFixtures records a snapshot of each state with the tool itself.
func TestRecordFixtures(t *testing.T) {
	if !*record {
		t.Skip("records only with -record, as make fixtures does")
	}
	var lines []string
	for _, name := range recorded() {
		t.Run(name, func(t *testing.T) {
			s := enter(t, name)
			file := filepath.Join(t.TempDir(), "s.tar.gz")
			if a := kpr(t, "snapshot", file); a.code != 0 && a.code != 3 {
				t.Fatalf("snapshot: exit code %d\n%s", a.code, a.stderr)
			}
			to := filepath.Join("../fixtures", "lab-"+name)
			if err := errors.Join(os.RemoveAll(to), unpack(file, to), reseal(to)); err != nil {
				t.Fatal(err)
			}
			lines = append(lines, fmt.Sprintf("| `lab-%s` | %s |", name, s.Doc))
		})
	}
	enter(t, "kpr")
	readme := "# Fixtures of the lab\n\nSnapshots that `make fixtures` records with the tool itself from the lab's states (`docs/lab.md`); no byte is typed by hand.\n\n| fixture | what it is |\n|---|---|\n" +
		strings.Join(lines, "\n") + "\n"
	if err := os.WriteFile("../fixtures/lab-README.md", []byte(readme), 0o644); err != nil {
		t.Fatal(err)
	}
}

// reseal writes the sizes and sums of logs that were cut into snapshot.yaml.
func reseal(folder string) error {
	file := filepath.Join(folder, "snapshot.yaml")
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var manifest map[string]any
	if err := yaml.Unmarshal(data, &manifest); err != nil {
		return err
	}
	members, _ := manifest["members"].([]any)
	for _, m := range members {
		member, _ := m.(map[string]any)
		name, _ := member["path"].(string)
		if !strings.HasSuffix(name, ".log") {
			continue
		}
		log, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return err
		}
		sum := sha256.Sum256(log)
		member["sha256"], member["size"] = hex.EncodeToString(sum[:]), len(log)
	}
	if data, err = yaml.Marshal(manifest); err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o644)
}

// logTail is how many bytes of a log a fixture keeps: the rest says no more
// and is most of its size.
const logTail = 8 << 10

// unpack writes a snapshot's members below a folder, without its own folder.
func unpack(file, to string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		_, name, ok := strings.Cut(path.Clean(h.Name), "/")
		if h.Typeflag != tar.TypeReg || !ok || !filepath.IsLocal(name) {
			continue
		}
		data, err := io.ReadAll(io.LimitReader(r, 64<<20))
		if err != nil {
			return err
		}
		if strings.HasSuffix(name, ".log") && len(data) > logTail {
			data = data[len(data)-logTail:]
			_, rest, _ := strings.Cut(string(data), "\n")
			data = []byte(rest)
		}
		dst := filepath.Join(to, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(dst), 0o755), os.WriteFile(dst, data, 0o644)); err != nil {
			return err
		}
	}
}
