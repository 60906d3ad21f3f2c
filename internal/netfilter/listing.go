package netfilter

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// columns are those of a listing: `iptables -L`, more with -v, one more with
// --line-numbers. The zero value is a listing whose head was not seen.
type columns struct{ seen, numbered, counted bool }

// listed reads a line of `iptables -L`.
func (d *decoder) listed(text string) bool {
	f := strings.Fields(text)
	if slices.Contains(f, "target") && slices.Contains(f, "prot") {
		d.columns = columns{seen: true, numbered: f[0] == "num", counted: slices.Contains(f, "pkts")}
		return true
	}
	r, ok := d.row(f)
	if !ok {
		return false
	}
	r.Chain, r.Line = d.chain, d.line
	r.Table = d.tableOf(r.Chain)
	if r.Table == "" && hashed(r.Target) {
		r.Table = "nat"
	}
	d.out.Rules = append(d.out.Rules, r)
	return true
}

// row reads the columns of one row. Where no head was seen, as in rows that
// grep picked out, a row must begin with its counters.
func (d *decoder) row(f []string) (Rule, bool) {
	var r Rule
	if d.columns.numbered && len(f) > 0 {
		f = f[1:]
	}
	if d.columns.counted || !d.columns.seen {
		if len(f) < 4 {
			return r, false
		}
		packets, ok := count(f[0])
		if _, bytes := count(f[1]); !ok || !bytes {
			return r, false
		}
		r.Packets, d.out.Counted = packets, true
		f = f[2:]
	}
	if len(f) > 0 && !protocol(f[0]) { // a row without a target only counts
		r.Target, f = f[0], f[1:]
	}
	if len(f) == 0 || !protocol(f[0]) {
		return r, false
	}
	r.Proto = protocolName(f[0])
	if r.Proto != "" {
		r.Conditions++
	}
	f = f[1:]
	if len(f) > 0 && (f[0] == "--" || f[0] == "-f" || f[0] == "!f") { // ip6tables leaves it blank
		f = f[1:]
	}
	ends := 2
	if d.columns.counted || !d.columns.seen {
		ends = 4
	}
	if len(f) < ends {
		return r, false
	}
	for _, device := range f[:ends-2] {
		if device != "*" && device != "any" {
			r.Conditions++
		}
	}
	r.Src, r.Dst = d.end(&r, f[ends-2]), d.end(&r, f[ends-1])
	d.matches(&r, f[ends:])
	return r, true
}

// end is a source or destination, "" for any.
func (d *decoder) end(r *Rule, s string) string {
	switch s {
	case "0.0.0.0/0", "::/0", "anywhere":
		return ""
	}
	r.Conditions++
	if rest, ok := strings.CutPrefix(s, "!"); ok {
		return "! " + rest
	}
	return s
}

// matches reads what stands behind the columns: the comment, matches in the
// words of their modules, and what the target does.
func (d *decoder) matches(r *Rule, f []string) {
	for i := 0; i < len(f); i++ {
		switch w := f[i]; {
		case w == "/*":
			end := slices.Index(f[i:], "*/")
			if end < 0 {
				end = len(f) - i
			}
			r.Comment = strings.Join(f[i+1:i+end], " ")
			i += end
		case w == "mark" && i+1 < len(f) && f[i+1] == "match":
			r.Mark = true
			r.Conditions++
		case strings.HasPrefix(w, "to:"):
			r.To = addrPort(w[len("to:"):])
		case w == "match", w == "ctstate", w == "match-set", strings.HasPrefix(w, "dpt"), strings.HasPrefix(w, "spt"), w == "statistic":
			r.Conditions++
		}
	}
}

// protocol holds for a word of the column prot: a name, or a number since
// iptables 1.8.9, with "!" before it where it is negated.
func protocol(s string) bool {
	s = strings.TrimPrefix(s, "!")
	if n, err := strconv.Atoi(s); err == nil {
		return n >= 0 && n < 256
	}
	return slices.Contains([]string{"all", "tcp", "udp", "sctp", "icmp", "icmpv6", "ipv6-icmp", "udplite", "esp", "ah", "igmp", "dccp", "gre", "ipip", "ipencap", "vrrp", "ospf", "ipv6"}, s)
}

func protocolName(s string) string {
	switch s {
	case "all", "0":
		return ""
	case "6":
		return "tcp"
	case "17":
		return "udp"
	case "132":
		return "sctp"
	}
	return s
}

// count reads a counter, which -v without -x shortens: 12K, 3M, 7G.
func count(s string) (uint64, bool) {
	factor := uint64(1)
	if s != "" {
		switch s[len(s)-1] {
		case 'K':
			factor = 1e3
		case 'M':
			factor = 1e6
		case 'G':
			factor = 1e9
		case 'T':
			factor = 1e12
		}
	}
	if factor > 1 {
		s = s[:len(s)-1]
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if n > math.MaxUint64/factor {
		return math.MaxUint64, err == nil
	}
	return n * factor, err == nil
}
