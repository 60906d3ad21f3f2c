package cilium

import (
	"encoding/json"
	"path/filepath"
	"testing"
)

const seedSize = 2048

// fuzz seeds a target with the answers of testdata and checks that no input
// makes the decoder panic, drop a line, or give a value that cannot be printed.
func fuzz(f *testing.F, names ...string) {
	answersIn(f, func(path string, data []byte) {
		for _, name := range names {
			if filepath.Base(path) == name {
				// Short seeds mutate better. The whole answers are in the goldens.
				for len(data) > 2*seedSize {
					f.Add(data[:seedSize])
					data = data[len(data)/2:]
				}
				f.Add(data)
			}
		}
	})
	decode := decoders[names[0]]
	f.Fuzz(func(t *testing.T, data []byte) {
		checkTally(t, names[0], data, decode)
		value, _, err := decode(data)
		if _, failed := json.Marshal(value); failed != nil {
			t.Errorf("value cannot be printed: %v", failed)
		}
		if err != nil && err.Error() == "" {
			t.Error("error without words")
		}
	})
}

func FuzzStatusJSON(f *testing.F) { fuzz(f, "status.json") }
func FuzzStatusText(f *testing.F) { fuzz(f, "status-verbose.txt", "status.txt") }
func FuzzEvents(f *testing.F) {
	fuzz(f, "monitor-verbose.txt", "monitor-policies.txt", "monitor-lines.json")
}
func FuzzCgroup(f *testing.F)             { fuzz(f, "bpftool-cgroup-show.txt", "bpftool-cgroup-tree.txt") }
func FuzzServiceListJSON(f *testing.F)    { fuzz(f, "service-list.json") }
func FuzzServiceListText(f *testing.F)    { fuzz(f, "service-list.txt") }
func FuzzMapListJSON(f *testing.F)        { fuzz(f, "bpf-lb-list.json") }
func FuzzMapListText(f *testing.F)        { fuzz(f, "bpf-lb-list.txt") }
func FuzzMapBackendsJSON(f *testing.F)    { fuzz(f, "bpf-lb-list-backends.json") }
func FuzzMapBackendsText(f *testing.F)    { fuzz(f, "bpf-lb-list-backends.txt") }
func FuzzMapFrontendsJSON(f *testing.F)   { fuzz(f, "bpf-lb-list-frontends.json") }
func FuzzMapFrontendsText(f *testing.F)   { fuzz(f, "bpf-lb-list-frontends.txt") }
func FuzzMapRangesJSON(f *testing.F)      { fuzz(f, "bpf-lb-list-source-ranges.json") }
func FuzzMapRangesText(f *testing.F)      { fuzz(f, "bpf-lb-list-source-ranges.txt") }
func FuzzMapRevNATJSON(f *testing.F)      { fuzz(f, "bpf-lb-list-revnat.json") }
func FuzzMapRevNATText(f *testing.F)      { fuzz(f, "bpf-lb-list-revnat.txt") }
func FuzzServiceTablesJSON(f *testing.F)  { fuzz(f, "shell-db-prefix-frontends.json") }
func FuzzFrontendsTableJSON(f *testing.F) { fuzz(f, "shell-db-show-frontends.json") }
func FuzzFrontendsTableText(f *testing.F) { fuzz(f, "shell-db-show-frontends.txt") }
func FuzzMapsDump(f *testing.F)           { fuzz(f, "shell-lb-maps-dump.txt") }
func FuzzRedirectList(f *testing.F)       { fuzz(f, "lrp-list.txt") }
func FuzzConntrack(f *testing.F)          { fuzz(f, "bpf-ct-list-global.txt") }
func FuzzDrops(f *testing.F)              { fuzz(f, "monitor-drop.txt") }
func FuzzVersionJSON(f *testing.F)        { fuzz(f, "version.json") }
func FuzzVersionText(f *testing.F)        { fuzz(f, "version.txt") }
func FuzzConfigJSON(f *testing.F)         { fuzz(f, "config.json") }
func FuzzAgentLog(f *testing.F)           { fuzz(f, "agent.log") }
func FuzzBGPRoutes(f *testing.F)          { fuzz(f, "bgp-routes.txt") }
func FuzzMapCounts(f *testing.F)          { fuzz(f, "bpf-counts.yaml") }
func FuzzConfigText(f *testing.F)         { fuzz(f, "config-all.txt", "config.txt") }
