package netfilter

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Flow is one entry of the kernel's connection tracking.
type Flow struct {
	Proto    string         // "udp"
	From, To netip.AddrPort // as the first packet had them
	// Answers is who is expected to answer: To, or where a DNAT sends the packets.
	Answers netip.AddrPort
	Replied bool // an answer was seen
}

// Translated holds where netfilter sends the packets elsewhere than they were sent.
func (f Flow) Translated() bool { return f.Answers != f.To }

// DecodeFlows reads `conntrack -L` and /proc/net/nf_conntrack, which writes the
// family in front. Entries of protocols without ports are passed over.
func DecodeFlows(data []byte) ([]Flow, error) {
	var out []Flow
	var bad []int
	line := 0
	for text := range strings.Lines(string(data)) {
		line++
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		if words[0] == "ipv4" || words[0] == "ipv6" {
			words = words[min(2, len(words)):]
		}
		f, ok, ports := flow(words)
		switch {
		case ok:
			out = append(out, f)
		case ports:
			bad = append(bad, line)
		}
	}
	if len(bad) > 0 {
		return out, unreadable(bad)
	}
	return out, nil
}

// flow reads "udp 17 25 src=A dst=B sport=1 dport=2 [UNREPLIED] src=B dst=A
// sport=2 dport=1 mark=0 use=1". ports tells whether the protocol has any.
func flow(words []string) (f Flow, ok, ports bool) {
	if len(words) == 0 {
		return f, false, true
	}
	if !slices.Contains([]string{"udp", "tcp", "sctp", "dccp", "udplite"}, words[0]) {
		_, err := strconv.Atoi(strings.Join(words[1:min(2, len(words))], ""))
		return f, false, err != nil
	}
	f = Flow{Proto: words[0], Replied: true}
	var ips []netip.Addr
	var numbers []uint16
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "[UNREPLIED]":
			f.Replied = false
		case "src", "dst":
			ip, err := netip.ParseAddr(value)
			if err != nil {
				return f, false, true
			}
			ips = append(ips, ip.Unmap())
		case "sport", "dport":
			n, err := strconv.ParseUint(value, 10, 16)
			if err != nil {
				return f, false, true
			}
			numbers = append(numbers, uint16(n))
		}
	}
	if len(ips) != 4 || len(numbers) != 4 {
		return f, false, true
	}
	f.From, f.To = netip.AddrPortFrom(ips[0], numbers[0]), netip.AddrPortFrom(ips[1], numbers[1])
	f.Answers = netip.AddrPortFrom(ips[2], numbers[2])
	return f, true, true
}
