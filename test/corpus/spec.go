// Package corpus scores findings against the cases in this folder: clusters
// told by snapshots, each with an expected.md that says what a sound tool must
// find in it, what it must not claim, and what it may say besides.
package corpus

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"sigs.k8s.io/yaml"
)

// Spec is what is expected of one case.
type Spec struct {
	Expected []Expected `json:"expected"`
	// MustNot are claims that fail the case. Only some can be checked by a
	// program, see Forbids; the rest is for people.
	MustNot []string `json:"must_not"`
	// May are codes that are neither demanded nor counted as extra.
	May []string `json:"may"`
}

// Expected is one finding that a case demands.
type Expected struct {
	Code  string `json:"code"`  // the rule in capitals: BACKEND_STALE
	Level string `json:"level"` // error, warning or info
	Where string `json:"where"` // the objects and nodes it must name, in words
	Says  string `json:"says"`  // what it must say, in words
}

// Finding is one finding of the tool, as its JSON report has it.
type Finding struct{ Rule, Severity, Subject, Node, Message string }

// ReadSpec reads the first fenced YAML block of a case's expected.md. Fields
// that tell where the case is from are not read.
func ReadSpec(cases fs.FS, name string) (Spec, error) {
	data, err := fs.ReadFile(cases, path.Join(name, "expected.md"))
	if err != nil {
		return Spec{}, err
	}
	_, block, ok := bytes.Cut(data, []byte("```yaml\n"))
	block, _, closed := bytes.Cut(block, []byte("```"))
	if !ok || !closed {
		return Spec{}, fmt.Errorf("case %s: expected.md has no fenced yaml block", name)
	}
	var s Spec
	if err := yaml.Unmarshal(block, &s); err != nil {
		return Spec{}, fmt.Errorf("case %s: %w", name, err)
	}
	for _, e := range s.Expected {
		if e.Code == "" || e.Level == "" {
			return Spec{}, fmt.Errorf("case %s: expected finding without code or level", name)
		}
	}
	return s, nil
}

// Cases lists the names of all cases, sorted.
func Cases(cases fs.FS) ([]string, error) {
	found, err := fs.Glob(cases, "*/expected.md")
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(found))
	for _, f := range found {
		names = append(names, path.Dir(f))
	}
	return names, nil
}

// Pending is what the tool does not know yet: the expectations that wait for
// it are not demanded, everything else is.
type Pending struct {
	Rules []string `json:"rules"`
	Cases []string `json:"cases"` // nothing at all is demanded of these
}

// ReadPending reads pending.yaml. A missing file is an empty list.
func ReadPending(cases fs.FS) (Pending, error) {
	data, err := fs.ReadFile(cases, "pending.yaml")
	if errors.Is(err, fs.ErrNotExist) {
		return Pending{}, nil
	}
	if err != nil {
		return Pending{}, err
	}
	var p Pending
	if err := yaml.UnmarshalStrict(data, &p); err != nil {
		return Pending{}, fmt.Errorf("pending.yaml: %w", err)
	}
	return p, nil
}

// RuleOf is a code of the corpus as the name of a rule: BACKEND_STALE is
// backend-stale.
func RuleOf(code string) string { return strings.ReplaceAll(strings.ToLower(code), "_", "-") }
