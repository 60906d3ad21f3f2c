package netfilter

import (
	"net/netip"
	"strconv"
	"strings"
)

// command reads a line of a save or of -S: "-A CHAIN …" with its counters
// before it ([packets:bytes]) or behind it (-c packets bytes), "-N CHAIN",
// "-P CHAIN VERDICT".
func (d *decoder) command(text string) bool {
	r := Rule{Line: d.line}
	if text[0] == '[' {
		counters, rest, ok := strings.Cut(text[1:], "] ")
		packets, _, _ := strings.Cut(counters, ":")
		n, err := strconv.ParseUint(packets, 10, 64)
		if !ok || err != nil {
			return false
		}
		r.Packets, d.out.Counted, text = n, true, strings.TrimSpace(rest)
	}
	d.words = split(d.words[:0], text)
	words := d.words
	if len(words) < 2 {
		return false
	}
	switch words[0] {
	case "-N", "-P":
		return d.addChain(words[1])
	case "-A", "-I":
	default:
		return false
	}
	r.Chain = words[1]
	r.Table = d.tableOf(r.Chain)
	if d.options(&r, words[2:]) {
		d.out.Counted = true
	}
	d.out.Rules = append(d.out.Rules, r)
	return true
}

// options reads what stands behind the chain's name; true if that holds
// counters.
func (d *decoder) options(r *Rule, words []string) (counted bool) {
	negated := ""
	next := func(i int) string {
		if i+1 < len(words) {
			return words[i+1]
		}
		return ""
	}
	for i := 0; i < len(words); i++ {
		w := words[i]
		switch w {
		case "!":
			negated = "! "
			continue
		case "-j", "-g", "--jump", "--goto":
			r.Target = next(i)
			i++
		case "-c":
			n, err := strconv.ParseUint(next(i), 10, 64)
			if err == nil {
				r.Packets, counted = n, true
			}
			i += 2
		case "-s":
			r.Src = negated + next(i)
			r.Conditions++
			i++
		case "-d":
			r.Dst = negated + next(i)
			r.Conditions++
			i++
		case "-p":
			r.Proto = negated + next(i)
			r.Conditions++
			i++
		case "-i", "-o":
			r.Conditions++
			i++
		case "-m":
			if m := next(i); m != "comment" && m != r.Proto {
				r.Conditions++
			}
			i++
		case "--comment":
			r.Comment = next(i)
			i++
		case "--mark":
			r.Mark = true
			i++
		case "--to-destination":
			r.To = addrPort(next(i))
			i++
		}
		negated = ""
	}
	return counted
}

// addrPort reads "10.0.0.1:80", "[fd00::1]:80" and a bare address, of which
// the port is 0. Anything else is the zero AddrPort.
func addrPort(s string) netip.AddrPort {
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return netip.AddrPortFrom(ap.Addr().Unmap().WithZone(""), ap.Port())
	}
	if a, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return netip.AddrPortFrom(a.Unmap().WithZone(""), 0)
	}
	return netip.AddrPort{}
}

// split cuts a line into words as a shell would and appends them to out:
// blanks separate, double quotes hold together, a backslash inside them keeps
// the next character.
func split(out []string, text string) []string {
	for i := 0; i < len(text); {
		switch {
		case text[i] == ' ' || text[i] == '\t':
			i++
		case text[i] == '"':
			word, n := quoted(text[i+1:])
			out = append(out, word)
			i += n + 1
		default:
			n := strings.IndexAny(text[i:], " \t")
			if n < 0 {
				n = len(text) - i
			}
			out = append(out, text[i:i+n])
			i += n
		}
	}
	return out
}

// quoted reads up to the closing quote, or to the end where there is none.
func quoted(text string) (word string, read int) {
	if end := strings.IndexAny(text, `"\\`); end >= 0 && text[end] == '"' {
		return text[:end], end + 1
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\' && i+1 < len(text):
			i++
			b.WriteByte(text[i])
		case text[i] == '"':
			return b.String(), i + 1
		default:
			b.WriteByte(text[i])
		}
	}
	return b.String(), len(text)
}
