package netfilter

import (
	"regexp"
	"strconv"
	"strings"
)

// Versions are those of the two iptables that write a node's rules.
type Versions struct {
	Host, Agent string // "1.8.5", "" where not told
}

var versionLine = regexp.MustCompile(`^(?:(host|agent|cilium|node)\s*:\s*)?ip6?tables(?:-nft|-legacy)?\s+v?(\d+(?:\.\d+){1,3})`)

// DecodeVersions reads lines of `iptables -V`, "host: iptables v1.8.5
// (nf_tables)", "agent: …". A line without a word before it is the host's.
func DecodeVersions(data []byte) (Versions, error) {
	var v Versions
	var bad []int
	line := 0
	for text := range strings.Lines(string(data)) {
		line++
		text = strings.TrimSpace(text)
		if text == "" || text[0] == '#' {
			continue
		}
		m := versionLine.FindStringSubmatch(text)
		switch {
		case m == nil:
			bad = append(bad, line)
		case m[1] == "agent" || m[1] == "cilium":
			v.Agent = strings.Clone(m[2])
		default:
			v.Host = strings.Clone(m[2])
		}
	}
	if len(bad) > 0 {
		return v, unreadable(bad)
	}
	return v, nil
}

// Older compares versions of iptables; false where one is not known.
func Older(a, b string) bool {
	x, y := numbers(a), numbers(b)
	if x == nil || y == nil {
		return false
	}
	for i := range max(len(x), len(y)) {
		var m, n int
		if i < len(x) {
			m = x[i]
		}
		if i < len(y) {
			n = y[i]
		}
		if m != n {
			return m < n
		}
	}
	return false
}

func numbers(s string) []int {
	var out []int
	for part := range strings.SplitSeq(s, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil
		}
		out = append(out, n)
	}
	return out
}
