package corpus

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Score is how a tool did on one case.
type Score struct {
	Met, Missed []Expected
	// Near counts the missed ones that were found with another severity.
	Near int
	// Addresses counts the addresses that the expectations mention, Named
	// those of them that findings of the right rule name too.
	Addresses, Named int
	Forbidden        []string // claims that a must_not line forbids
	Extra            []string // errors and warnings that nobody asked for
}

// incomplete may be said of any case: evidence always ends somewhere.
const incomplete = "incomplete"

// Judge compares findings with what is expected of a case.
//
// An expected finding is met when the findings of that rule and severity,
// taken together, name everything that its Where names.
func Judge(s Spec, found []Finding) Score {
	var out Score
	claimed := map[string]bool{incomplete: true}
	for _, e := range s.Expected {
		rule, level := RuleOf(e.Code), RuleOf(e.Level)
		claimed[rule] = true
		same := pick(found, func(f Finding) bool { return RuleOf(f.Rule) == rule })
		exact := pick(same, func(f Finding) bool { return RuleOf(f.Severity) == level })
		switch {
		case len(exact) > 0 && nameAll(exact, e.Where):
			out.Met = append(out.Met, e)
		case len(same) > 0 && nameAll(same, e.Where):
			out.Near++
			fallthrough
		default:
			out.Missed = append(out.Missed, e)
		}
		var told []string
		for _, f := range same {
			told = append(told, f.text())
		}
		all := strings.Join(told, " ")
		for _, a := range addresses.FindAllString(e.Says, -1) {
			out.Addresses++
			if holds(a, all) {
				out.Named++
			}
		}
	}
	for _, m := range s.MustNot {
		out.Forbidden = append(out.Forbidden, broken(m, s.Expected, found)...)
	}
	for _, code := range s.May {
		claimed[RuleOf(code)] = true
	}
	for _, f := range found {
		if bad(f.Severity) && !claimed[RuleOf(f.Rule)] {
			out.Extra = append(out.Extra, f.String())
		}
	}
	return out
}

// broken are the findings that a must_not line forbids, told as text. A line
// about certain rules is broken once, however many findings break it; one that
// forbids findings of any rule is broken by each.
func broken(line string, expected []Expected, found []Finding) []string {
	ban, ok := Forbids(line, expected)
	if !ok {
		return nil
	}
	var out []string
	for _, f := range found {
		if ban.covers(f) {
			out = append(out, line+"  <- "+f.String())
		}
	}
	if ban.Rules != nil && len(out) > 1 {
		out = out[:1]
	}
	return out
}

func pick(fs []Finding, want func(Finding) bool) []Finding {
	return slices.DeleteFunc(slices.Clone(fs), func(f Finding) bool { return !want(f) })
}

// nameAll holds when every name in words is in the text of some finding.
func nameAll(fs []Finding, words string) bool {
	for _, n := range names(words) {
		if !slices.ContainsFunc(fs, func(f Finding) bool { return strings.Contains(f.text(), strings.ToLower(n)) }) {
			return false
		}
	}
	return true
}

// bad holds for the severities that trouble a user.
func bad(severity string) bool {
	s := RuleOf(severity)
	return s == "error" || s == "warning"
}

// text is all that a finding names, in lower case.
func (f Finding) text() string {
	return strings.ToLower(f.Subject + " " + f.Node + " " + f.Message)
}

// String is the finding on one line.
func (f Finding) String() string {
	return fmt.Sprintf("%s %s %s %s: %s", f.Severity, f.Rule, f.Subject, f.Node, f.Message)
}

// silent are words of a Where that name no object.
var silent = strings.Fields(`on and in port same service cluster pod daemonset configmap with operator kubernetes the
	of nodeport a runtimeclass table chain every node nodes for plan`)

// names are the words that a finding must contain: those that are neither
// silent words nor plain numbers.
func names(words string) []string {
	var out []string
	for _, w := range strings.FieldsFunc(words, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune(",()", r)
	}) {
		w = strings.Trim(w, ".,:;()")
		if slices.Contains(silent, strings.ToLower(w)) || !strings.ContainsFunc(w, wordRune) ||
			!strings.ContainsFunc(w, func(r rune) bool { return !unicode.IsDigit(r) }) {
			continue
		}
		out = append(out, w)
	}
	return out
}

var addresses = regexp.MustCompile(`\d+\.\d+\.\d+\.\d+(?::\d+)?`)

// holds is true when text, in lower case, contains the word as a whole: not as
// part of a longer name, and not as the beginning of a longer address.
func holds(word, text string) bool {
	word = strings.ToLower(word)
	for at := 0; ; {
		i := strings.Index(text[at:], word)
		if i < 0 {
			return false
		}
		i += at
		before, after := []rune(text[:i]), []rune(text[i+len(word):])
		if !joins(before) && !goesOn(after) {
			return true
		}
		at = i + 1
	}
}

// joins holds when the last rune would be part of the same word.
func joins(before []rune) bool {
	if len(before) == 0 {
		return false
	}
	r := before[len(before)-1]
	return wordRune(r) || r == '.' || r == '-'
}

// goesOn holds when the next runes are part of the same word: a dot is only
// before a digit, else it ends a sentence.
func goesOn(after []rune) bool {
	if len(after) == 0 {
		return false
	}
	if after[0] == '.' {
		return len(after) > 1 && unicode.IsDigit(after[1])
	}
	return wordRune(after[0]) || after[0] == '-'
}

func wordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) || r == '_' }
