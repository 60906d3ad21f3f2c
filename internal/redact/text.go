package redact

import (
	"net/netip"
	"strings"
)

// Text replaces what is known of names, and every address, in free text.
// Columns do not move on purpose, see table.
func (r *Redactor) Text(s string) string {
	var b strings.Builder
	b.Grow(len(s) + len(s)/8)
	for i := 0; i < len(s); {
		if to, n := r.address(s, i); n > 0 {
			b.WriteString(to)
			i += n
			continue
		}
		if !alnum(s[i]) {
			b.WriteByte(s[i])
			i++
			continue
		}
		end := tokenEnd(s, i)
		b.WriteString(r.token(s[i:end]))
		i = end
	}
	return b.String()
}

// address replaces the address that begins at s[i], if one does; n is how much
// of s it is.
func (r *Redactor) address(s string, i int) (to string, n int) {
	if !hexDigit(s[i]) && s[i] != ':' || i > 0 && (alnum(s[i-1]) || s[i-1] == '.') {
		return r.quads(s, i)
	}
	end, dots, colons := i, 0, 0
	for end < len(s) && (hexDigit(s[end]) || s[end] == '.' || s[end] == ':') && end-i < 64 {
		switch s[end] {
		case '.':
			dots++
		case ':':
			colons++
		}
		end++
	}
	if dots < 3 && colons < 2 || end < len(s) && alnum(s[end]) {
		return r.quads(s, i)
	}
	run := s[i:end]
	if colons == 5 && dots == 0 && isMAC(run) {
		return r.mac(run), len(run)
	}
	for text := strings.TrimRight(run, "."); ; text = text[:len(text)-1] {
		if a, err := netip.ParseAddr(text); err == nil {
			to, extra := r.written(a, s[i+len(text):])
			return to, len(text) + extra
		}
		if !strings.HasSuffix(text, ":") || strings.HasSuffix(text, "::") {
			break
		}
	}
	return r.quads(s, i)
}

// quads replaces an IPv4 address where something else is close by, a port or a
// word: 10.0.0.1:80, eth0=10.0.0.1.
func (r *Redactor) quads(s string, i int) (to string, n int) {
	if s[i] < '0' || s[i] > '9' || i > 0 && (alnum(s[i-1]) || s[i-1] == '.') {
		return "", 0
	}
	end, dots := i, 0
	for end < len(s) && end-i < 15 && (s[end] >= '0' && s[end] <= '9' || s[end] == '.' && dots < 3) {
		if s[end] == '.' {
			dots++
		}
		end++
	}
	if dots < 3 || end < len(s) && (alnum(s[end]) || s[end] == '.' && end+1 < len(s) && s[end+1] >= '0' && s[end+1] <= '9') {
		return "", 0
	}
	a, err := netip.ParseAddr(s[i:end])
	if err != nil {
		return "", 0
	}
	to, extra := r.written(a, s[end:])
	return to, end - i + extra
}

// written is an address as text; rest is what follows it. The length of a
// prefix is looked at, and taken along.
func (r *Redactor) written(a netip.Addr, rest string) (to string, extra int) {
	r.noteAddr(a)
	if len(rest) < 2 || rest[0] != '/' {
		return r.Addr(a).String(), 0
	}
	bits, n := 0, 1
	for n < len(rest) && n < 4 && rest[n] >= '0' && rest[n] <= '9' {
		bits = bits*10 + int(rest[n]-'0')
		n++
	}
	if n == 1 || bits > a.BitLen() || n < len(rest) && alnum(rest[n]) {
		return r.Addr(a).String(), 0
	}
	return r.prefix(a, bits).String() + rest[:n], n
}

func isMAC(s string) bool {
	if len(s) != 17 {
		return false
	}
	for i := range len(s) {
		if (i%3 == 2) != (s[i] == ':') {
			return false
		}
	}
	return true
}

// mac is a hardware address of nobody: unicast and locally administered.
func (r *Redactor) mac(s string) string {
	if low := strings.ToLower(s); low == "00:00:00:00:00:00" || low == "ff:ff:ff:ff:ff:ff" {
		return s
	}
	sum := r.key.sum("mac", strings.ToLower(s))
	const digits = "0123456789abcdef"
	out := []byte("02:00:00:00:00:00")
	for i := 1; i < 6; i++ {
		out[3*i], out[3*i+1] = digits[sum[i]>>4], digits[sum[i]&15]
	}
	return string(out)
}

// tokenEnd is where the word ends that begins at s[i]: letters and digits, and
// single dashes, dots and underscores among them.
func tokenEnd(s string, i int) int {
	for i < len(s) {
		switch c := s[i]; {
		case alnum(c):
		case (c == '-' || c == '.' || c == '_') && i+1 < len(s) && alnum(s[i+1]):
		case (c == '-' || c == '_') && i+2 < len(s) && s[i+1] == c && alnum(s[i+2]): // cluster names of cloud providers
		default:
			return i
		}
		i++
	}
	return i
}

// token replaces a word: as a whole where it is a known name, else the longest
// known names within it, else its known parts.
func (r *Redactor) token(t string) string {
	if r.names[t] {
		return r.Name(t)
	}
	if to, ok := r.special(t); ok {
		return to
	}
	var ps []string
	for p := range pieces2(t, "-._") {
		ps = append(ps, p)
	}
	var b strings.Builder
	for i := 0; i < len(ps); {
		if n := r.longest(ps[i:]); n > 0 {
			name := strings.Join(ps[i:i+n], "")
			bare := strings.TrimRight(name, "-._")
			b.WriteString(r.Name(bare) + name[len(bare):])
			i += n
			continue
		}
		bare := strings.TrimRight(ps[i], "-._")
		if r.parts[strings.ToLower(bare)] {
			b.WriteString(r.part(bare, false) + ps[i][len(bare):])
		} else {
			b.WriteString(ps[i])
		}
		i++
	}
	return b.String()
}

// longest is how many of the parts, from the first on, make a known name.
func (r *Redactor) longest(ps []string) int {
	if len(ps) < 2 || len(ps) > 64 {
		return 0
	}
	text := strings.Join(ps, "")
	for n := len(ps); n > 0; n-- {
		if name := strings.TrimRight(text, "-._"); r.names[name] {
			return n
		}
		text = text[:len(text)-len(ps[n-1])]
	}
	return 0
}

func alnum(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

func hexDigit(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}
