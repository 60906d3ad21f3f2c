package archtest

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Floors lists the rooms from the ground up. A room imports rooms of floors
// below its own and none beside it. A name ending in "/*" stands for each
// folder right below it. Rooms that are not built yet do no harm.
func Floors() [][]string {
	return [][]string{
		{"pkg/diag/lb", "pkg/diag/agent", "internal/version", "internal/words", "internal/yamlfile"}, // pure values
		{"pkg/diag/source"},
		{"pkg/exec", "internal/kube", "internal/redact"},
		{"internal/cilium", "internal/netfilter", "internal/helm", "internal/rancher", "internal/kube/write"},
		{"internal/distro"},
		{"pkg/diag/fact"},
		{"internal/evidence"},
		{"pkg/diag"},
		{"pkg/diag/trace", "pkg/diag/checks/*", "pkg/diag/lint", "pkg/diag/stage", "pkg/diag/request", "internal/plan"},
		{"pkg/diag/checks"}, // the one sorted list of them
		{"internal/rules"},
		{"pkg/diag/report"},
		{"internal/live", "internal/sysdump", "internal/baseline", "internal/plan/cluster"},
		{"internal/host", "internal/probe/guest"},
		{"internal/checkpoint", "internal/monitor", "internal/residue"},
		{"internal/probe", "internal/migrate"},
		{"internal/render"},
		{"internal/cli"},
		{"internal/cli/act"}, // which writes, and may use what reading commands share
		{"cmd/kubectl-kpr"},
	}
}

// Writers change a cluster or hold the steps that do. Nothing that only reads
// may reach one, not even through other packages.
func Writers() []string {
	return []string{"internal/kube/write", "internal/plan", "internal/plan/cluster", "internal/residue", "internal/migrate", "internal/host", "internal/probe/guest", "internal/cli/act"}
}

// joint is the only room that knows readers and writers: the front door, where
// both kinds of commands are put under one root.
const joint = "cmd/kubectl-kpr"

const (
	ciliumModule = "github.com/cilium/cilium"
	ciliumModels = ciliumModule + "/api/v1/models"
	ciliumRoom   = "internal/cilium"
)

// Rooms finds imports that go up or sideways, rooms without a floor, and
// packages for tests that the product would carry along.
func Rooms(t *Tree) []string {
	var found []string
	for from, imports := range t.graph() {
		at, ok := floor(from)
		if !ok {
			found = append(found, fmt.Sprintf("%s: on no floor; give it a place in Floors of internal/archtest/rooms.go", from))
			continue
		}
		for _, to := range imports {
			below, ok := floor(to)
			switch {
			case forTests(to):
				found = append(found, fmt.Sprintf("%s imports %s: only tests import packages for tests", from, to))
			case ok && below > at:
				found = append(found, fmt.Sprintf("%s imports %s, which stands above it: imports only go down", from, to))
			case ok && below == at:
				found = append(found, fmt.Sprintf("%s imports %s, which stands beside it: imports only go down", from, to))
			}
		}
	}
	slices.Sort(found)
	return found
}

// Reading finds packages that only read and yet reach one that writes.
func Reading(t *Tree) []string {
	var found []string
	graph := t.graph()
	for from := range graph {
		if from == joint || slices.Contains(Writers(), from) {
			continue
		}
		for _, w := range Writers() {
			if via := reach(graph, from, w); via != nil {
				found = append(found, fmt.Sprintf("%s reaches %s by %s: what reads never writes", from, w, strings.Join(via, " -> ")))
			}
		}
	}
	slices.Sort(found)
	return found
}

// Cilium finds imports of Cilium outside its room, or of more than its models.
// Tests are no exception: a test that knows Cilium's types breaks with them.
func Cilium(t *Tree) []string {
	var found []string
	for _, f := range t.Files {
		for _, p := range f.Imports() {
			switch {
			case !within(p, ciliumModule):
			case f.Dir() != ciliumRoom:
				found = append(found, fmt.Sprintf("%s imports %s: only %s knows Cilium's types", f.Path, p, ciliumRoom))
			case p != ciliumModels:
				found = append(found, fmt.Sprintf("%s imports %s: of Cilium only %s, the rest brings an agent's dependencies", f.Path, p, ciliumModels))
			}
		}
	}
	return found
}

// graph is who imports whom inside the module, without tests and without
// programs for developers, by folder.
func (t *Tree) graph() map[string][]string {
	g := map[string][]string{}
	for _, f := range t.Files {
		dir := f.Dir()
		if f.Test() || forTests(dir) || f.Program() && !within(dir, "cmd") {
			continue
		}
		if g[dir] == nil {
			g[dir] = []string{} // a room without imports is a room too
		}
		for _, p := range f.Imports() {
			if to, ok := strings.CutPrefix(p, t.Module+"/"); ok && !slices.Contains(g[dir], to) {
				g[dir] = append(g[dir], to)
			}
		}
	}
	for _, to := range g {
		slices.Sort(to)
	}
	return g
}

// forTests holds for what the product never contains: everything below test/,
// and packages named …test, such as sourcetest.
func forTests(dir string) bool {
	return within(dir, "test") || strings.HasSuffix(path.Base(dir), "test")
}

func floor(dir string) (int, bool) {
	for i, rooms := range Floors() {
		if slices.Contains(rooms, dir) || slices.Contains(rooms, path.Dir(dir)+"/*") {
			return i, true
		}
	}
	return 0, false
}

// reach is the shortest way from one package to another, both included, or nil.
func reach(graph map[string][]string, from, to string) []string {
	ways := [][]string{{from}}
	seen := map[string]bool{from: true}
	for len(ways) > 0 {
		way := ways[0]
		ways = ways[1:]
		for _, next := range graph[way[len(way)-1]] {
			longer := append(slices.Clone(way), next)
			if next == to {
				return longer
			}
			if !seen[next] {
				seen[next] = true
				ways = append(ways, longer)
			}
		}
	}
	return nil
}
