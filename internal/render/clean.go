package render

import (
	"io"
	"regexp"
	"strings"
	"unicode"

	"github.com/mattn/go-runewidth"
)

// Clean makes text that came from a cluster safe for a terminal: control
// characters, the escape among them, and characters that turn the direction of
// writing are shown as "�", line breaks as blanks.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r) && r != '\u200d', r == '\u2028', r == '\u2029':
			return '�'
		}
		return r
	}, s)
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:=@,+-]+$`)

// quote writes an argv as a shell would read it back.
func quote(argv []string) string {
	words := make([]string, len(argv))
	for i, w := range argv {
		words[i] = w
		if !plainWord.MatchString(w) {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

// fold breaks text at blanks so that no line is wider than width columns, and
// indents all lines but the first. A width of 0 leaves it as it is.
func fold(s string, width, indent int) string {
	if width <= indent+10 {
		return s
	}
	var b strings.Builder
	col := indent
	for i, word := range strings.Fields(s) {
		n := runewidth.StringWidth(word)
		switch {
		case i == 0:
		case col+1+n > width:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			col = indent
		default:
			b.WriteByte(' ')
			col++
		}
		b.WriteString(word)
		col += n
	}
	return b.String()
}

func width(s string) int { return runewidth.StringWidth(s) }

// trimmer takes the blanks off the ends of lines.
type trimmer struct{ w io.Writer }

// Write expects whole lines, as a table renderer gives them.
func (t trimmer) Write(b []byte) (int, error) {
	lines := strings.Split(string(b), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	if _, err := t.w.Write([]byte(strings.Join(lines, "\n"))); err != nil {
		return 0, err
	}
	return len(b), nil
}
