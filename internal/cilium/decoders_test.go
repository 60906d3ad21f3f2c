package cilium

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// decoders are all decoders by the file name that their answers have. Text
// decoders give their tally beside the value.
var decoders = map[string]func([]byte) (any, *tally, error){
	"status.json":                    plain(DecodeStatusJSON),
	"status.txt":                     counted(statusText),
	"status-verbose.txt":             counted(statusText),
	"service-list.json":              plain(DecodeServiceListJSON),
	"service-list.txt":               counted(serviceListText),
	"bpf-lb-list.json":               plain(DecodeMapListJSON),
	"bpf-lb-list.txt":                counted(mapListText),
	"bpf-lb-list-backends.json":      plain(DecodeMapBackendsJSON),
	"bpf-lb-list-backends.txt":       counted(mapBackendsText),
	"bpf-lb-list-frontends.json":     plain(DecodeMapFrontendsJSON),
	"bpf-lb-list-frontends.txt":      counted(mapFrontendsText),
	"bpf-lb-list-source-ranges.json": plain(DecodeMapRangesJSON),
	"bpf-lb-list-source-ranges.txt":  counted(mapRangesText),
	"bpf-lb-list-revnat.json":        plain(DecodeMapRevNATJSON),
	"bpf-lb-list-revnat.txt":         counted(mapRevNATText),
	"shell-db-show-frontends.json":   plain(DecodeFrontendsTableJSON),
	"shell-db-prefix-frontends.json": plain(DecodeServiceTablesJSON),
	"shell-db-show-frontends.txt":    counted(frontendsTableText),
	"shell-lb-maps-dump.txt":         counted(mapsDump),
	"lrp-list.txt":                   counted(redirectList),
	"bpf-ct-list-global.txt":         counted(conntrack),
	"monitor-drop.txt":               counted(monitorDrops),
	"bpftool-cgroup-show.txt":        counted(cgroup),
	"monitor-verbose.txt":            counted(monitorEvents),
	"monitor-policies.txt":           counted(monitorEvents),
	"monitor-lines.json":             counted(monitorEvents),
	"bpftool-cgroup-tree.txt":        counted(cgroup),
	"agent.log":                      plain(DecodeAgentLog),
	"bgp-routes.txt":                 counted(bgpRoutes),
	"bpf-counts.yaml":                plain(DecodeMapCounts),
	"version.json":                   plain(DecodeVersionJSON),
	"version.txt":                    versionTally,
	"config.json":                    plain(DecodeConfigJSON),
	"config.txt":                     counted(configText),
	"config-all.txt":                 counted(configText),
}

func plain[T any](decode func([]byte) (T, error)) func([]byte) (any, *tally, error) {
	return func(data []byte) (any, *tally, error) {
		v, err := decode(data)
		return v, nil, err
	}
}

func counted[T any](decode func([]byte) (T, *answer)) func([]byte) (any, *tally, error) {
	return func(data []byte) (any, *tally, error) {
		v, a := decode(data)
		return v, &a.tally, a.err()
	}
}

func versionTally(data []byte) (any, *tally, error) {
	v, a, err := versionText(data)
	if err == nil {
		err = a.err()
	}
	return v, &a.tally, err
}

// answersIn calls test for every answer under testdata.
func answersIn(t testing.TB, test func(path string, data []byte)) {
	t.Helper()
	seen := map[string]bool{}
	err := filepath.WalkDir("testdata", func(path string, e fs.DirEntry, err error) error {
		name := filepath.Base(path)
		if path == filepath.Join("testdata", "fuzz") {
			return fs.SkipDir
		}
		if err != nil || e.IsDir() || strings.HasSuffix(name, ".golden.json") || name == "README.md" {
			return err
		}
		if decoders[name] == nil {
			t.Errorf("%s: no decoder of that name", path)
			return nil
		}
		seen[name] = true
		data, err := os.ReadFile(path)
		if err == nil {
			test(path, data)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range decoders {
		if !seen[name] {
			t.Errorf("no answer of %s in testdata", name)
		}
	}
}

// golden is what a decoder makes of an answer, as the golden files hold it.
type golden struct {
	Error string `json:",omitempty"`
	Tally *tally `json:",omitempty"`
	Value any
}

func TestGoldens(t *testing.T) {
	answersIn(t, func(path string, data []byte) {
		t.Run(filepath.ToSlash(strings.TrimPrefix(path, "testdata"+string(filepath.Separator))), func(t *testing.T) {
			value, tally, err := decoders[filepath.Base(path)](data)
			g := golden{Tally: tally, Value: value}
			if err != nil {
				g.Error = err.Error()
			}
			var got bytes.Buffer
			enc := json.NewEncoder(&got)
			enc.SetEscapeHTML(false)
			enc.SetIndent("", " ")
			if err := enc.Encode(g); err != nil {
				t.Fatal(err)
			}
			file := path + ".golden.json"
			if *update {
				if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatalf("%v (go test ./internal/cilium -update)", err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("decoded value changed (-want +got):\n%s", diff)
			}
		})
	})
}

// Recorded and composed answers are whole: only those that are meant to fail
// may carry an error.
func TestErrorsOfAnswers(t *testing.T) {
	meant := map[string]error{
		"1.12.3/agent-down/service-list.txt":            ErrAgentDown,
		"1.12.3/agent-down/service-list.json":           ErrAgentDown,
		"1.12.3/agent-down/status-verbose.txt":          ErrAgentDown,
		"1.20.2/no-such-command/shell-lb-maps-dump.txt": ErrCommandFailed,
		"generated-1.20.2/version.txt":                  ErrAgentDown,
		"generated-1.20.2/version.json":                 ErrAgentDown,
	}
	answersIn(t, func(path string, data []byte) {
		rel := filepath.ToSlash(strings.TrimPrefix(path, "testdata"+string(filepath.Separator)))
		_, _, err := decoders[filepath.Base(path)](data)
		if !errors.Is(err, meant[rel]) {
			t.Errorf("%s: error %v, want %v", rel, err, meant[rel])
		}
	})
}

func TestNothingIsDropped(t *testing.T) {
	answersIn(t, func(path string, data []byte) {
		lines := strings.Split(string(data), "\n")
		decode := decoders[filepath.Base(path)]
		if !strings.HasSuffix(path, ".txt") {
			return
		}
		checkTally(t, path, data, decode)
		// The same answer cut short, shuffled and with a stranger in it.
		checkTally(t, path+" cut", data[:len(data)*2/3], decode)
		odd := append([]string{}, lines[len(lines)/2:]...)
		odd = append(odd, "a line that nobody knows", "  and one below it")
		odd = append(odd, lines[:len(lines)/2]...)
		checkTally(t, path+" shuffled", []byte(strings.Join(odd, "\n")), decode)
	})
}

func checkTally(t testing.TB, path string, data []byte, decode func([]byte) (any, *tally, error)) {
	t.Helper()
	_, tally, err := decode(data)
	if tally == nil {
		return
	}
	if !tally.balanced() {
		t.Errorf("%s: %+v does not add up", path, *tally)
	}
	if want := len(splitLines(data)); tally.Lines != want {
		t.Errorf("%s: %d lines counted of %d", path, tally.Lines, want)
	}
	var de *DecodeErrors
	switch {
	case tally.Errors > 0 && err == nil:
		t.Errorf("%s: %d unreadable lines and no error", path, tally.Errors)
	case errors.As(err, &de) && len(de.Errors) == 0:
		t.Errorf("%s: an error without a line: %v", path, err)
	}
}

// Text and JSON of one agent are the same facts.
func TestTextAndJSONAgree(t *testing.T) {
	answersIn(t, func(path string, data []byte) {
		name := filepath.Base(path)
		if !strings.HasSuffix(name, ".json") || strings.Contains(path, "generated-") && name != "status.json" {
			return
		}
		stem := strings.TrimSuffix(path, ".json")
		text, err := os.ReadFile(stem + ".txt")
		textName := strings.TrimSuffix(name, ".json") + ".txt"
		if name == "status.json" {
			text, err = os.ReadFile(stem + "-verbose.txt")
			textName = "status-verbose.txt"
		}
		if err != nil {
			return
		}
		fromText, _, textErr := decoders[textName](text)
		fromJSON, _, jsonErr := decoders[name](data)
		if errors.Is(textErr, ErrAgentDown) && errors.Is(jsonErr, ErrAgentDown) {
			return
		}
		if textErr != nil || jsonErr != nil {
			t.Errorf("%s: text %v, json %v", path, textErr, jsonErr)
		}
		if diff := cmp.Diff(common(fromJSON), common(fromText), cmpAddr); diff != "" {
			t.Errorf("%s: the forms disagree (-json +text):\n%s", path, diff)
		}
	})
}
