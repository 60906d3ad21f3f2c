package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// Tree is the Go source of one module, parsed.
type Tree struct {
	Module string          // module path
	Direct map[string]bool // modules that go.mod requires without "// indirect"
	Files  []File          // in order of their paths
	fset   *token.FileSet
}

// File is one Go file.
type File struct {
	Path      string // below the module's root, with slashes
	Lines     int
	Generated bool // says "Code generated … DO NOT EDIT."
	AST       *ast.File
}

// Load reads the module whose go.mod is at the root of fsys. Modules inside it,
// hidden folders, testdata and bin are left out, as the go command does. A file
// that cannot be parsed is an error.
func Load(fsys fs.FS) (*Tree, error) {
	mod, err := fs.ReadFile(fsys, "go.mod")
	if err != nil {
		return nil, fmt.Errorf("go.mod: %w", err)
	}
	t := &Tree{fset: token.NewFileSet()}
	t.Module, t.Direct = readMod(string(mod))
	err = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && leftOut(fsys, name):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".go":
			return nil
		}
		return t.add(fsys, name)
	})
	return t, err
}

func leftOut(fsys fs.FS, dir string) bool {
	base := path.Base(dir)
	if base == "testdata" || base == "bin" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return true
	}
	_, err := fs.Stat(fsys, dir+"/go.mod")
	return err == nil
}

func (t *Tree) add(fsys fs.FS, name string) error {
	src, err := fs.ReadFile(fsys, name)
	if err != nil {
		return err
	}
	f, err := parser.ParseFile(t.fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	t.Files = append(t.Files, File{Path: name, Lines: bytes.Count(src, []byte("\n")), Generated: ast.IsGenerated(f), AST: f})
	return nil
}

// readMod finds the module's path and its direct requirements.
func readMod(mod string) (module string, direct map[string]bool) {
	direct = map[string]bool{}
	block := ""
	for line := range strings.Lines(mod) {
		line, comment, _ := strings.Cut(strings.TrimSpace(line), "//")
		f := strings.Fields(line)
		switch {
		case len(f) == 0:
		case len(f) == 2 && f[0] == "module":
			module = f[1]
		case len(f) == 2 && f[1] == "(":
			block = f[0]
		case f[0] == ")":
			block = ""
		case strings.TrimSpace(comment) == "indirect":
		case block == "require":
			direct[f[0]] = true
		case f[0] == "require" && len(f) == 3:
			direct[f[1]] = true
		}
	}
	return module, direct
}

// Dir is the folder of the file below the module's root, "." for the root.
func (f File) Dir() string { return path.Dir(f.Path) }

// Test reports whether the file is read by `go test` only.
func (f File) Test() bool { return strings.HasSuffix(f.Path, "_test.go") }

// Program reports whether the file belongs to a command.
func (f File) Program() bool { return f.AST.Name.Name == "main" }

// Imports are the import paths of the file.
func (f File) Imports() []string {
	var all []string
	for _, spec := range f.AST.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err == nil {
			all = append(all, p)
		}
	}
	return all
}

// within reports whether an import path or a folder is p or below it.
func within(s, p string) bool { return s == p || strings.HasPrefix(s, p+"/") }
