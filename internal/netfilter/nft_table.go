package netfilter

import (
	"fmt"
	"strings"
)

// ProxyTable checks that text is the listing of one table of kube-proxy in that
// family, and nothing besides, so that nft may read it: braces are balanced,
// and what stands outside of them is the table's own line.
func ProxyTable(text []byte, f Family) error {
	want := NFTable{Family: f}.Name()
	depth, tables := 0, 0
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line = strings.TrimSpace(line)
		if depth == 0 && line != "" {
			if line != "table "+want+" {" || tables > 0 {
				return fmt.Errorf("line %d: not a listing of the table %s alone", n, want)
			}
			tables++
		}
		open, shut, ended := braces(line)
		if !ended {
			return fmt.Errorf("line %d: a string without its end", n)
		}
		if depth += open - shut; depth < 0 {
			return fmt.Errorf("line %d: a brace too many", n)
		}
		if depth == 0 && line != "" && line != "}" {
			return fmt.Errorf("line %d: more than the table's end", n)
		}
	}
	if depth != 0 || tables == 0 {
		return fmt.Errorf("the listing of the table %s is not whole", want)
	}
	return nil
}

// braces counts them outside of strings.
func braces(line string) (open, shut int, ended bool) {
	inside := false
	for _, c := range line {
		switch {
		case c == '"':
			inside = !inside
		case inside:
		case c == '{':
			open++
		case c == '}':
			shut++
		}
	}
	return open, shut, !inside
}
