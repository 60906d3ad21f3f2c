package redact

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// maxMemo bounds what is kept of what was computed. Beyond it the same is
// computed again.
const maxMemo = 1 << 20

// maxName is the length of a name of Kubernetes that has no dots, maxPort that
// of the name of a port.
const (
	maxName = 63
	maxPort = 15
)

// Redactor replaces names and addresses. It is not safe for concurrent use.
type Redactor struct {
	key      Key
	learning bool
	names    map[string]bool   // whole names that were learnt
	ports    map[string]bool   // names of ports among them
	parts    map[string]bool   // parts of names that are replaced wherever they stand
	hex      map[string]string // addresses in hexadecimal, in lower case

	addrs map[netip.Addr]netip.Addr
	bits  map[string]bool
	words map[string]string
	// allHex: every 8 hexadecimal digits are an address, as in /proc/net/ip_vs.
	allHex bool
}

// New is a Redactor that knows no name yet.
func New(key Key) *Redactor {
	return &Redactor{
		key: key, names: map[string]bool{}, ports: map[string]bool{}, parts: map[string]bool{}, hex: map[string]string{},
		addrs: map[netip.Addr]netip.Addr{}, bits: map[string]bool{}, words: map[string]string{},
	}
}

// Learn takes a name, to be replaced from now on. What cannot be the name of an
// object, and what is the same in every cluster, is left alone.
func (r *Redactor) Learn(name string) {
	name = strings.Trim(name, "-.")
	if !r.learning || !nameLike(name) || r.names[name] || stays(name) {
		return
	}
	r.names[name] = true
	for part := range pieces(name) {
		if len(part) >= 3 && !numeric(part) && !common(part) {
			r.parts[strings.ToLower(part)] = true
		}
	}
}

func (r *Redactor) learnPort(name string) {
	if r.learning && nameLike(name) && !stays(name) {
		r.names[name], r.ports[name] = true, true
	}
}

// Name replaces a name that stands for itself, learnt or not.
func (r *Redactor) Name(name string) string {
	if name == "" || stays(name) {
		return name
	}
	if a, err := netip.ParseAddr(name); err == nil {
		return r.Addr(a).String()
	}
	if r.ports[name] && len(name) <= maxPort {
		return r.port(name)
	}
	out := r.dotted(name)
	if len(out) > 253 {
		return r.word(name, 8)
	}
	return out
}

// port replaces the name of a port, which is short.
func (r *Redactor) port(name string) string {
	if out := r.dotted(name); len(out) <= maxPort {
		return out
	}
	return r.word(name, 5)
}

// dotted replaces the labels of a name, one by one.
func (r *Redactor) dotted(name string) string {
	var b strings.Builder
	for label := range pieces2(name, ".") {
		b.WriteString(r.label(label))
	}
	return b.String()
}

// label replaces one label of a name, with the dots behind it.
func (r *Redactor) label(label string) string {
	label, tail := strings.TrimRight(label, "."), label[len(strings.TrimRight(label, ".")):]
	out := r.dashed(label)
	if out == "" {
		var b strings.Builder
		first, _, _ := strings.Cut(label, "-")
		for part := range pieces2(label, "-_") {
			b.WriteString(r.part(part, installed[first]))
		}
		out = b.String()
	}
	if len(out) > maxName {
		out = r.word(label, 8)
	}
	return out + tail
}

// dashed replaces an IPv4 address written with dashes, as cloud providers name
// their machines: ip-10-0-3-9. It is "" where there is none.
func (r *Redactor) dashed(label string) string {
	f := strings.Split(label, "-")
	for i := 0; i+4 <= len(f); i++ {
		a, err := netip.ParseAddr(strings.Join(f[i:i+4], "."))
		if err != nil {
			continue
		}
		r.noteAddr(a)
		out := strings.ReplaceAll(r.Addr(a).String(), ".", "-")
		if i == 1 && f[0] == "ip" {
			out = "ip-" + out
		} else if i > 0 {
			out = r.label(strings.Join(f[:i], "-")) + "-" + out
		}
		if i+4 < len(f) {
			out += "-" + r.label(strings.Join(f[i+4:], "-"))
		}
		return out
	}
	return ""
}

// part replaces what stands between two dashes, with the separators at its end.
// Common words stay in what Kubernetes and Cilium install: cilium-gateway-NAME.
func (r *Redactor) part(part string, keep bool) string {
	bare := strings.TrimRight(part, "-_")
	tail := part[len(bare):]
	switch {
	case bare == "" || keep && common(bare):
		return part
	case numeric(bare):
		return r.digits(bare) + tail
	case bare == strings.ToUpper(bare) && len(bare) > 1:
		return strings.ToUpper(r.word(strings.ToLower(bare), 4)) + tail
	}
	return r.word(strings.ToLower(bare), 4) + tail
}

// digits replaces numbers of three digits and more: shorter ones count things.
// No two numbers of one length get the same.
func (r *Redactor) digits(s string) string {
	if len(s) < 3 || len(s) > 15 {
		if len(s) > 15 {
			return fmt.Sprintf("%015d", r.key.number("digits", s)%1e15)
		}
		return s
	}
	top, n := uint64(1), uint64(0)
	for _, d := range s {
		top, n = top*10, n*10+uint64(d-'0')
	}
	// Odd, and no multiple of 5, so that every number of the length comes out
	// once. Two halves keep the product small.
	step := r.key.number("step", fmt.Sprint(len(s)))%1000*10 + 3
	return fmt.Sprintf("%0*d", len(s), (n%top*(step%top)+r.key.number("shift", fmt.Sprint(len(s)))%top)%top)
}

// word is a pronounceable word of so many syllables for a text; with one of
// four syllables there are 70 million.
func (r *Redactor) word(text string, syllables int) string {
	memo := fmt.Sprint(syllables, text)
	if w, ok := r.words[memo]; ok {
		return w
	}
	const consonants, vowels = "bdfghjklmnprstvwz", "aeiou"
	w := make([]byte, 0, 2*syllables)
	for salt := 0; ; salt++ {
		sum := r.key.sum("word", fmt.Sprintf("%s/%d/%d", text, syllables, salt))
		w = w[:0]
		for i := range syllables {
			w = append(w, consonants[int(sum[2*i])%len(consonants)], vowels[int(sum[2*i+1])%len(vowels)])
		}
		if !common(string(w)) && string(w) != text {
			break
		}
	}
	if len(r.words) < maxMemo {
		r.words[memo] = string(w)
	}
	return string(w)
}

// Names are the names that were learnt and are replaced, with what stands for
// them. It fails where two of them would become one.
func (r *Redactor) Names() (map[string]string, error) {
	names, taken := map[string]string{}, map[string]bool{}
	for name := range r.names {
		to := r.Name(name)
		if taken[to] {
			return nil, fmt.Errorf("two names would both become %s: take another key", to)
		}
		if taken[to] = true; to != name {
			names[name] = to
		}
	}
	return names, nil
}

// Pair is a replacement and what it stands for.
type Pair struct{ Replacement, Original string }

// Pairs are the names that were learnt and the addresses that were met, sorted
// by replacement.
func (r *Redactor) Pairs() []Pair {
	var all []Pair
	for name := range r.names {
		if to := r.Name(name); to != name {
			all = append(all, Pair{to, name})
		}
	}
	for a, to := range r.addrs {
		if a != to {
			all = append(all, Pair{to.String(), a.String()})
		}
	}
	slices.SortFunc(all, func(x, y Pair) int {
		return cmp.Or(cmp.Compare(x.Replacement, y.Replacement), cmp.Compare(x.Original, y.Original))
	})
	return all
}
