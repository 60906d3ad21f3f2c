package redact

import (
	"encoding/hex"
	"net/netip"
	"strings"
)

// classes are prefixes that tell what an address is for. They stay, and no
// address moves from one to another; of those that are fixed no bit changes.
var classes = []struct {
	netip.Prefix
	fixed bool
}{
	{netip.MustParsePrefix("0.0.0.0/8"), true},
	{netip.MustParsePrefix("10.0.0.0/8"), false},
	{netip.MustParsePrefix("100.64.0.0/10"), false},
	{netip.MustParsePrefix("127.0.0.0/8"), true},
	{netip.MustParsePrefix("169.254.0.0/16"), true},
	{netip.MustParsePrefix("172.16.0.0/12"), false},
	{netip.MustParsePrefix("192.168.0.0/16"), false},
	{netip.MustParsePrefix("192.192.192.192/32"), true}, // the dummy endpoint of Cilium's Gateways
	{netip.MustParsePrefix("224.0.0.0/3"), true},        // multicast, reserved, broadcast, and netmasks
	{netip.MustParsePrefix("::/64"), true},
	{netip.MustParsePrefix("fc00::/8"), false},
	{netip.MustParsePrefix("fd00::/8"), false},
	{netip.MustParsePrefix("fe80::/64"), false}, // the rest of it can be made of a MAC address
	{netip.MustParsePrefix("ff00::/8"), true},
}

// embedding are prefixes of 96 bits behind which an IPv4 address stands.
var embedding = []netip.Prefix{
	netip.MustParsePrefix("::ffff:0:0/96"),
	netip.MustParsePrefix("64:ff9b::/96"),
}

// Addr replaces an address so that prefixes stay: as many leading bits as two
// addresses have in common, as many have their replacements. It does so by
// turning each bit or not, as the key says for the bits before it, as Xu, Fan
// and others describe (Prefix-Preserving IP Address Anonymization, 2002). The first bit that may
// turn always does, so no address outside the fixed classes is replaced by itself.
func (r *Redactor) Addr(a netip.Addr) netip.Addr {
	if to, ok := r.addrs[a]; ok {
		return to
	}
	zone := a.Zone()
	for _, p := range embedding {
		if plain := a.WithZone(""); p.Contains(plain) && plain.Is6() {
			raw := plain.As16()
			inner := r.Addr(netip.AddrFrom4([4]byte(raw[12:]))).As4()
			copy(raw[12:], inner[:])
			return netip.AddrFrom16(raw).WithZone(zone)
		}
	}
	to := r.turn(a.WithZone("")).WithZone(zone)
	if len(r.addrs) < maxMemo {
		r.addrs[a] = to
	}
	return to
}

func (r *Redactor) turn(a netip.Addr) netip.Addr {
	raw := a.AsSlice()
	out := append([]byte(nil), raw...)
	first := true
	for bit := range a.BitLen() {
		if settled(a, bit) || !a.Is4() && leading(raw, bit) {
			continue
		}
		if first || r.turns(a, bit) {
			out[bit/8] ^= 0x80 >> (bit % 8)
		}
		first = false
	}
	to, _ := netip.AddrFromSlice(out)
	return to
}

// settled holds for a bit that decides, or may decide, about a class: those of
// a class' prefix, and those before it on the way to any class.
func settled(a netip.Addr, bit int) bool {
	before, _ := a.Prefix(bit)
	for _, c := range classes {
		if c.Addr().Is4() != a.Is4() {
			continue
		}
		if c.Bits() > bit && before.Contains(c.Addr()) || c.fixed && c.Contains(a) {
			return true
		}
	}
	return false
}

// leading holds for bits of a group of IPv6 with nothing but zeros before them,
// and for the first that is not: so a group keeps its digits, and :: its place.
func leading(raw []byte, bit int) bool {
	group := uint(raw[bit/16*2])<<8 | uint(raw[bit/16*2+1])
	return group>>(16-bit%16) == 0
}

func (r *Redactor) turns(a netip.Addr, bit int) bool {
	before, _ := a.Prefix(bit)
	k, _ := before.Addr().MarshalBinary()
	k = append(k, byte(bit))
	turn, ok := r.bits[string(k)]
	if !ok {
		turn = r.key.sum("bit", string(k))[0]&1 == 1
		if len(r.bits) < maxMemo {
			r.bits[string(k)] = turn
		}
	}
	return turn
}

// prefix replaces the address of a CIDR. One that has nothing behind the prefix
// has nothing there afterwards.
func (r *Redactor) prefix(a netip.Addr, bits int) netip.Addr {
	to := r.Addr(a)
	if p, err := a.Prefix(bits); err == nil && p.Addr() == a.WithZone("") {
		masked, _ := to.Prefix(bits)
		return masked.Addr()
	}
	return to
}

// fixedAddr holds for addresses that are the same in every cluster.
func fixedAddr(a netip.Addr) bool {
	for _, c := range classes {
		if c.fixed && c.Contains(a.WithZone("")) {
			return true
		}
	}
	return false
}

// noteAddr remembers an address for its forms in hexadecimal: as the kernel
// prints it in /proc, in either order of bytes.
func (r *Redactor) noteAddr(a netip.Addr) {
	if !r.learning || fixedAddr(a) || len(r.hex) > 4*maxMemo {
		return
	}
	from, to := a.AsSlice(), r.Addr(a.WithZone("")).AsSlice()
	r.hex[hex.EncodeToString(from)] = hex.EncodeToString(to)
	if a.Is4() {
		r.hex[hex.EncodeToString(reversed(from))] = hex.EncodeToString(reversed(to))
	}
}

func reversed(b []byte) []byte {
	out := make([]byte, len(b))
	for i, x := range b {
		out[len(b)-1-i] = x
	}
	return out
}

// hexed replaces an address that is written as 8 or 32 hexadecimal digits.
func (r *Redactor) hexed(s string) (string, bool) {
	if len(s) != 8 && len(s) != 32 {
		return s, false
	}
	to, ok := r.hex[strings.ToLower(s)]
	if !ok && r.allHex && len(s) == 8 {
		raw, err := hex.DecodeString(s)
		if err != nil {
			return s, false
		}
		a := r.Addr(netip.AddrFrom4([4]byte(raw))).As4()
		to, ok = hex.EncodeToString(a[:]), true
	}
	if ok && s == strings.ToUpper(s) {
		to = strings.ToUpper(to)
	}
	return to, ok
}
