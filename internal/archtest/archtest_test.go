package archtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// TestRepository holds this repository to every rule.
func TestRepository(t *testing.T) {
	tree, err := Load(os.DirFS(root(t)))
	if err != nil {
		t.Fatal(err)
	}
	if len(tree.Files) < 20 {
		t.Fatalf("only %d Go files found: this is not the repository", len(tree.Files))
	}
	for name, rule := range map[string]func(*Tree) []string{
		"imports only go down":          Rooms,
		"what reads never writes":       Reading,
		"Cilium stays in its room":      Cilium,
		"what only some may use":        Manners,
		"files of a readable length":    Length,
		"every package says what it is": Comments,
		"foundations are used":          Unused,
	} {
		t.Run(name, func(t *testing.T) {
			for _, v := range rule(tree) {
				t.Error(v)
			}
		})
	}
}

// TestFloorsAreConsistent keeps a room from standing on two floors, and the
// writers' names from going stale.
func TestFloorsAreConsistent(t *testing.T) {
	seen := map[string]int{}
	for i, rooms := range Floors() {
		for _, r := range rooms {
			if at, ok := seen[r]; ok {
				t.Errorf("%s is on floors %d and %d", r, at, i)
			}
			seen[r] = i
		}
	}
	for _, w := range append(Writers(), joint, ciliumRoom) {
		if _, ok := seen[w]; !ok {
			t.Errorf("%s is on no floor", w)
		}
	}
}

// TestNothingElseOfCilium looks at what is really linked, through every
// dependency: of Cilium the models only, and nothing of Kubernetes' servers.
func TestNothingElseOfCilium(t *testing.T) {
	list := exec.Command("go", "list", "-e", "-deps", "./...")
	list.Dir = root(t)
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for p := range strings.Lines(string(out)) {
		p = strings.TrimSpace(p)
		if within(p, ciliumModule) && p != ciliumModels || within(p, "k8s.io/kubernetes") {
			t.Errorf("%s is linked: of Cilium only %s, of Kubernetes nothing that a server is made of", p, ciliumModels)
		}
	}
}

const mod = "module example.org/m\n\nrequire k8s.io/kubectl v1.0.0\n\nrequire (\n\tgithub.com/spf13/cobra v1.0.0\n\tk8s.io/client-go v1.0.0 // indirect\n)\n"

func TestRules(t *testing.T) {
	tests := map[string]struct {
		rule  func(*Tree) []string
		files map[string]string
		want  []string
	}{
		"a room imports the room below": {Rooms, map[string]string{
			"pkg/diag/fact/f.go":   `package fact; import _ "example.org/m/internal/cilium"`,
			"internal/cilium/c.go": `package cilium; import (_ "example.org/m/pkg/diag/lb"; _ "os")`,
			"pkg/diag/lb/l.go":     `package lb`,
		}, nil},
		"a room imports up": {Rooms, map[string]string{
			"pkg/diag/lb/l.go":   `package lb; import _ "example.org/m/pkg/diag/fact"`,
			"pkg/diag/fact/f.go": `package fact`,
		}, []string{"pkg/diag/lb imports pkg/diag/fact, which stands above it: imports only go down"}},
		"a room imports the room beside": {Rooms, map[string]string{
			"internal/probe/p.go":   `package probe; import _ "example.org/m/internal/migrate"`,
			"internal/migrate/m.go": `package migrate`,
		}, []string{"internal/probe imports internal/migrate, which stands beside it: imports only go down"}},
		"checks know nothing of each other": {Rooms, map[string]string{
			"pkg/diag/checks/node/n.go":    `package node; import _ "example.org/m/pkg/diag/checks/service"`,
			"pkg/diag/checks/service/s.go": `package service; import _ "example.org/m/pkg/diag"`,
			"pkg/diag/d.go":                `package diag`,
		}, []string{"pkg/diag/checks/node imports pkg/diag/checks/service, which stands beside it: imports only go down"}},
		"a room on no floor": {Rooms, map[string]string{
			"internal/util/u.go": `package util`,
		}, []string{"internal/util: on no floor; give it a place in Floors of internal/archtest/rooms.go"}},
		"the product carries a package for tests": {Rooms, map[string]string{
			"internal/live/l.go":              `package live; import _ "example.org/m/pkg/diag/source/sourcetest"`,
			"pkg/diag/source/sourcetest/s.go": `package sourcetest; import _ "example.org/m/internal/live"`,
		}, []string{"internal/live imports pkg/diag/source/sourcetest: only tests import packages for tests"}},
		"tests import what they need": {Rooms, map[string]string{
			"pkg/diag/lb/l_test.go": `package lb; import _ "example.org/m/internal/cli"`,
			"test/importer/main.go": `package main; import _ "example.org/m/pkg/diag/source/sourcetest"`,
		}, nil},
		"a reader reaches a writer through another": {Reading, map[string]string{
			"internal/render/r.go":     `package render; import _ "example.org/m/internal/host"`,
			"internal/host/h.go":       `package host; import _ "example.org/m/internal/kube/write"`,
			"internal/kube/write/w.go": `package write`,
			"cmd/kubectl-kpr/main.go":  `package main; import _ "example.org/m/internal/host"`,
		}, []string{
			"internal/render reaches internal/host by internal/render -> internal/host: what reads never writes",
			"internal/render reaches internal/kube/write by internal/render -> internal/host -> internal/kube/write: what reads never writes",
		}},
		"Cilium's types outside their room": {Cilium, map[string]string{
			"pkg/diag/fact/f_test.go": `package fact; import _ "github.com/cilium/cilium/api/v1/models"`,
			"internal/cilium/c.go":    `package cilium; import (_ "github.com/cilium/cilium/api/v1/models"; _ "github.com/cilium/cilium/pkg/lock")`,
			"internal/live/l.go":      `package live; import _ "github.com/cilium/cilium-cli/defaults"`,
		}, []string{
			"internal/cilium/c.go imports github.com/cilium/cilium/pkg/lock: of Cilium only github.com/cilium/cilium/api/v1/models, the rest brings an agent's dependencies",
			"pkg/diag/fact/f_test.go imports github.com/cilium/cilium/api/v1/models: only internal/cilium knows Cilium's types",
		}},
		"a library leaves, prints, and reads the clock": {Manners, map[string]string{
			"pkg/diag/d.go":                 "package diag\nimport (\"os\"; f \"fmt\"; \"time\")\nfunc _() { f.Println(time.Second)\nos.Exit(1) }\nvar now = time.Now",
			"pkg/diag/d_test.go":            "package diag\nimport \"os\"\nfunc _() { os.Exit(1) }",
			"internal/live/l.go":            "package live\nimport \"time\"\nvar now = time.Now",
			"cmd/kubectl-kpr/main.go":       "package main\nimport \"os\"\nfunc main() { os.Exit(1) }",
			"internal/evidence/gen/main.go": "package main\nimport (\"os\"; \"fmt\")\nfunc main() { fmt.Print(); os.Exit(1) }",
			"internal/cli/own.go":           "package cli\nvar os, fmt exit\ntype exit struct{ Exit, Print func() }\nfunc _() { os.Exit(); fmt.Print() }",
		}, []string{
			"internal/evidence/gen/main.go:3: fmt.Print: streams are given, so that data and the rest stay apart",
			"pkg/diag/d.go:4: os.Exit: a library returns errors, the front door exits",
			"pkg/diag/d.go:3: fmt.Println: streams are given, so that data and the rest stay apart",
			"pkg/diag/d.go:5: time.Now: clocks are given, so that the report of a snapshot is the same tomorrow",
		}},
		"a file is too long": {Length, map[string]string{
			"a/a.go":      "package a" + strings.Repeat("\n", MaxLines+1),
			"a/b.go":      "package a" + strings.Repeat("\n", MaxLines),
			"a/gen.go":    "// Code generated by a; DO NOT EDIT.\n\npackage a" + strings.Repeat("\n", MaxLines),
			"a/a_test.go": "package a" + strings.Repeat("\n", 2*MaxLines),
		}, []string{"a/a.go: 301 lines, more than 300; it wants to be two"}},
		"a package does not say what it is": {Comments, map[string]string{
			"a/a.go":      "package a",
			"a/a_test.go": "// Package a is told in a test only.\npackage a",
			"b/b.go":      "// This is b.\npackage b",
			"c/c.go":      "package c",
			"c/doc.go":    "// Package c is good.\npackage c",
			"d/main.go":   "// Command d is good.\npackage main",
			"e/e_test.go": "package e",
		}, []string{
			"a: package a has no package comment",
			"b: the package comment does not begin with \"Package b \"",
		}},
		"foundations": {Unused, map[string]string{
			"internal/kube/k.go":      `package kube; import (_ "k8s.io/client-go/kubernetes"; _ "k8s.io/kubectl/pkg/x"; _ "k8s.io/cli-runtime/pkg/x")`,
			"internal/kube/k_test.go": `package kube; import (_ "github.com/spf13/cobra")`,
			"internal/cilium/c.go":    `package cilium; import _ "github.com/cilium/cilium/api/v1/models"`,
		}, []string{
			"github.com/cilium/cilium: go.mod does not require it directly",
			"github.com/olekukonko/tablewriter: go.mod does not require it directly",
			"github.com/olekukonko/tablewriter: no code of the product imports it",
			"github.com/spf13/cobra: no code of the product imports it",
			"k8s.io/cli-runtime: go.mod does not require it directly",
			"k8s.io/client-go: go.mod does not require it directly",
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			fsys := fstest.MapFS{"go.mod": {Data: []byte(mod)}}
			for p, src := range tt.files {
				fsys[p] = &fstest.MapFile{Data: []byte(src)}
			}
			tree, err := Load(fsys)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, tt.rule(tree)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestLoadLeavesOut(t *testing.T) {
	fsys := fstest.MapFS{
		"go.mod":             {Data: []byte(mod)},
		"a/a.go":             {Data: []byte("package a")},
		"a/testdata/t.go":    {Data: []byte("not Go")},
		"tools/lint/go.mod":  {Data: []byte("module other")},
		"tools/lint/main.go": {Data: []byte("package main")},
		".git/x.go":          {Data: []byte("not Go")},
		"bin/x.go":           {Data: []byte("not Go")},
	}
	tree, err := Load(fsys)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range tree.Files {
		got = append(got, f.Path)
	}
	if diff := cmp.Diff([]string{"a/a.go"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	fsys["a/b.go"] = &fstest.MapFile{Data: []byte("not Go")}
	if _, err := Load(fsys); err == nil {
		t.Error("a file that is no Go was read without an error")
	}
}

// root is the folder of this module's go.mod.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above this test")
		}
		dir = up
	}
}
