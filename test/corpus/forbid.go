package corpus

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Ban is what a must_not line forbids: findings of these rules and severities
// that concern every one of Keys and Nodes.
type Ban struct {
	Rules  []string // nil: any rule but incomplete
	Levels []string // error, warning
	Keys   []string // objects (namespace/name) and addresses, to be named anywhere
	Nodes  []string // to be named by subject or node
}

var (
	banAll  = regexp.MustCompile(`^any finding(?: above info)?$`)
	banOn   = regexp.MustCompile(`^(?:a|any) finding (?:on|for) `)
	banCode = regexp.MustCompile(`^[A-Z][A-Z_0-9]{2,}(?: or [A-Z][A-Z_0-9]{2,})*\b`)
	level   = regexp.MustCompile(`\b(?:error|warning)\b`)
)

// Forbids reads a must_not line. It is a ban when it reads "any finding above
// info", "a finding on X" or "any finding for X", or begins with a code ("A or
// B"). A code's ban is on errors and warnings, or on errors only where the line
// says "error". Words after the first " (" are a reason and are not read.
//
// A line about a code that the case itself expects forbids only the severities
// that it names and that are not expected, unless it names objects or nodes.
// Every other line is for people: ok is false.
func Forbids(line string, expected []Expected) (ban Ban, ok bool) {
	if banAll.MatchString(line) {
		return Ban{Levels: []string{"error", "warning"}}, true
	}
	on := banOn.FindString(line)
	code := banCode.FindString(line)
	if on == "" && code == "" {
		return Ban{}, false
	}
	rest, _, _ := strings.Cut(line[len(on+code):], " (")
	ban.Keys, ban.Nodes = keys(rest), nodes(rest)
	said, _, _ := strings.Cut(rest, ":")
	named := level.FindAllString(said, -1)
	ban.Levels = named
	if len(named) == 0 {
		ban.Levels = []string{"error", "warning"}
	}
	if on != "" {
		return ban, len(ban.Keys)+len(ban.Nodes) > 0
	}
	for _, c := range strings.Split(code, " or ") {
		ban.Rules = append(ban.Rules, RuleOf(c))
	}
	var levels []string
	for _, e := range expected {
		if slices.Contains(ban.Rules, RuleOf(e.Code)) {
			levels = append(levels, RuleOf(e.Level))
		}
	}
	if len(levels) > 0 && len(ban.Keys)+len(ban.Nodes) == 0 {
		ban.Levels = slices.DeleteFunc(named, func(l string) bool { return slices.Contains(levels, l) })
	}
	return ban, true
}

// covers holds for a finding that the ban forbids.
func (b Ban) covers(f Finding) bool {
	rule := RuleOf(f.Rule)
	if b.Rules == nil && rule == incomplete || b.Rules != nil && !slices.Contains(b.Rules, rule) {
		return false
	}
	if !slices.Contains(b.Levels, RuleOf(f.Severity)) {
		return false
	}
	for _, k := range b.Keys {
		if !holds(k, f.text()) {
			return false
		}
	}
	place := strings.ToLower(f.Subject + " " + f.Node)
	for _, n := range b.Nodes {
		if !holds(n, place) {
			return false
		}
	}
	return true
}

var (
	address  = regexp.MustCompile(`^\d+\.\d+\.\d+\.\d+(?::\d+)?`)
	slashed  = regexp.MustCompile(`^[\pL\pN_-]+/[\pL\pN_.-]*[\pL\pN_]`)
	numbered = regexp.MustCompile(`^([a-z][a-z0-9]*(?:-[a-z0-9]+)*-\d+)(?:[^\pL\pN_/-]|\z)`)
)

// keys are the addresses and the namespace/name pairs in a text.
func keys(text string) []string {
	return scan(text, func(before rune, rest string) string {
		if a := address.FindString(rest); a != "" {
			return a
		}
		if before >= '0' && before <= '9' || before == ':' || before == '.' {
			return ""
		}
		return slashed.FindString(rest)
	})
}

// nodes are the words in a text that look like a node's name: kpr-w-1, not
// part of an object's name.
func nodes(text string) []string {
	return scan(text, func(before rune, rest string) string {
		if before != 0 && (wordRune(before) || strings.ContainsRune("/.-", before)) {
			return ""
		}
		if m := numbered.FindStringSubmatch(rest); m != nil {
			return m[1]
		}
		return ""
	})
}

// scan collects, from left to right and without overlap, what match finds at a
// place. It is given the rune before the place, 0 at the start: the regular
// expressions of Go cannot look behind themselves.
func scan(text string, match func(before rune, rest string) string) []string {
	var out []string
	var before rune
	for i := 0; i < len(text); {
		m := match(before, text[i:])
		if m != "" {
			out = append(out, m)
			i += len(m)
		} else {
			_, size := utf8.DecodeRuneInString(text[i:])
			i += size
		}
		before, _ = utf8.DecodeLastRuneInString(text[:i])
	}
	return out
}
