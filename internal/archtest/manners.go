package archtest

import (
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// MaxLines is how long a file may be that a person reads from top to bottom.
const MaxLines = 300

// Longer lists the files that may be longer than MaxLines, each with a reason.
func Longer() map[string]string {
	return map[string]string{}
}

// Forbidden is something of the standard library that a library does not use.
type Forbidden struct {
	Package  string
	Name     *regexp.Regexp
	But      []string // folders where it is allowed, with everything below
	Programs bool     // allowed in commands, also in those for developers
	Why      string
}

// Forbiddens lists what only some folders may use.
func Forbiddens() []Forbidden {
	return []Forbidden{
		{"os", regexp.MustCompile(`^Exit$`), []string{"cmd"}, true,
			"a library returns errors, the front door exits"},
		{"log", regexp.MustCompile(`^(Fatal|Panic)(f|ln)?$`), []string{"cmd"}, true,
			"a library returns errors, the front door exits"},
		{"fmt", regexp.MustCompile(`^Print(f|ln)?$`), nil, false,
			"streams are given, so that data and the rest stay apart"},
		{"time", regexp.MustCompile(`^(Now|Since|Until)$`), []string{"cmd", "internal/cli", "internal/live"}, true,
			"clocks are given, so that the report of a snapshot is the same tomorrow"},
	}
}

// Manners finds uses of what is forbidden where it is.
func Manners(t *Tree) []string {
	var found []string
	for _, f := range t.Files {
		if f.Test() || strings.HasSuffix(f.Dir(), "test") {
			continue
		}
		for _, rule := range Forbiddens() {
			if rule.Programs && f.Program() || slices.ContainsFunc(rule.But, func(dir string) bool { return within(f.Dir(), dir) }) {
				continue
			}
			for _, use := range uses(f, rule) {
				where := t.fset.Position(use.Pos())
				found = append(found, fmt.Sprintf("%s:%d: %s.%s: %s", f.Path, where.Line, rule.Package, use.Sel.Name, rule.Why))
			}
		}
	}
	return found
}

// uses are the places where a file names what a rule forbids, called or not.
func uses(f File, rule Forbidden) []*ast.SelectorExpr {
	name := localName(f, rule.Package)
	if name == "" {
		return nil
	}
	var all []*ast.SelectorExpr
	ast.Inspect(f.AST, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok && x.Name == name && rule.Name.MatchString(sel.Sel.Name) {
			all = append(all, sel)
		}
		return true
	})
	return all
}

// localName is what a file calls a package that it imports, "" if it does not.
func localName(f File, pkg string) string {
	for _, spec := range f.AST.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err != nil || p != pkg {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path.Base(pkg)
	}
	return ""
}

// Length finds files over MaxLines, and exceptions that are none any more.
func Length(t *Tree) []string {
	var found []string
	excused := Longer()
	for _, f := range t.Files {
		if f.Test() || f.Generated {
			continue
		}
		_, ok := excused[f.Path]
		delete(excused, f.Path)
		switch {
		case !ok && f.Lines > MaxLines:
			found = append(found, fmt.Sprintf("%s: %d lines, more than %d; it wants to be two", f.Path, f.Lines, MaxLines))
		case ok && f.Lines <= MaxLines:
			found = append(found, fmt.Sprintf("%s: %d lines; strike it from Longer", f.Path, f.Lines))
		}
	}
	for p := range excused {
		found = append(found, p+": not there; strike it from Longer")
	}
	slices.Sort(found)
	return found
}

// Comments finds packages without a package comment, or with one that does not
// begin the way go doc expects: "Package name", "Command name".
func Comments(t *Tree) []string {
	docs := map[string]string{}
	for _, f := range t.Files {
		if f.Test() {
			continue
		}
		if key := f.Dir() + " " + f.AST.Name.Name; docs[key] == "" {
			docs[key] = f.AST.Doc.Text()
		}
	}
	var found []string
	for key, doc := range docs {
		dir, name, _ := strings.Cut(key, " ")
		switch {
		case doc == "":
			found = append(found, fmt.Sprintf("%s: package %s has no package comment", dir, name))
		case name != "main" && !strings.HasPrefix(doc, "Package "+name+" "):
			found = append(found, fmt.Sprintf("%s: the package comment does not begin with \"Package %s \"", dir, name))
		}
	}
	slices.Sort(found)
	return found
}
