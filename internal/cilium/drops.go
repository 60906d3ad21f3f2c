package cilium

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
)

// DecodeDrops reads the drops among the lines of `monitor`, with or without
// --type drop, in the order they were seen. What else it prints is passed over.
//
// Gaps are reported as *DecodeErrors together with what could be read.
func DecodeDrops(data []byte) ([]agent.Drop, error) {
	drops, a := monitorDrops(data)
	return drops, a.err()
}

func monitorDrops(data []byte) ([]agent.Drop, *answer) {
	a := newAnswer("monitor", data)
	var drops []agent.Drop
	for line, ok := a.next(); ok; line, ok = a.next() {
		rest, ok := strings.CutPrefix(line, "xx drop (")
		if !ok {
			if otherEvent.MatchString(line) && !strings.Contains(line, " DROP: ") {
				a.noise()
			} else {
				a.fail("no event of monitor")
			}
			continue
		}
		d, _, err := parseDrop(rest)
		if err != nil {
			a.fail(err.Error())
			continue
		}
		drops = append(drops, d)
		a.entry()
	}
	return drops, a
}

// otherEvent matches what monitor prints beside drops: its own first lines,
// traces, verdicts, agent events, translations of the socket LB, lost events.
var otherEvent = regexp.MustCompile(`^(?:Listening for events|Press Ctrl-C|CPU [0-9]+|-> |<- |>> |Policy verdict log|Dropped |L7 |\[pre-xlate|\[post-xlate|Ethernet\t|IPv4\t|IPv6\t|TCP\t|UDP\t|-{3,})`)

// parseDrop reads a drop behind "xx drop (", and the flags of its packet.
func parseDrop(s string) (agent.Drop, string, error) {
	var d agent.Drop
	reason, rest, ok := strings.Cut(s, ") flow ")
	if !ok {
		return d, "", errors.New("a drop without a flow")
	}
	d.Reason = reason
	// Identities are written like "276893->16777244: ", with no blank at the
	// arrow, so that the addresses' arrow is another.
	if _, after, ok := strings.Cut(rest, "identity "); ok {
		identities, ends, ok := strings.Cut(after, ": ")
		if ok {
			d.Identities, rest = identities, ends
		}
	}
	p, err := parsePacket("a drop", rest)
	if err != nil {
		return d, "", err
	}
	d.From, d.To, d.Protocol = p.from, p.to, p.protocol
	return d, p.flags, nil
}

// packet is how a line of monitor names a packet.
type packet struct {
	from, to        netip.AddrPort
	protocol, flags string
}

// packetEnd is what such a line ends with: "10.0.0.1:4000 -> 10.0.0.2:80 tcp
// SYN, ACK", or without ports for ICMP.
var packetEnd = regexp.MustCompile(`(\S+) -> (\S+)(?: (\S+)(?: (.*))?)?$`)

// parsePacket reads the end of a line that tells of what.
func parsePacket(what, text string) (packet, error) {
	m := packetEnd.FindStringSubmatch(text)
	if m == nil {
		return packet{}, fmt.Errorf("%s without addresses", what)
	}
	p := packet{protocol: strings.ToLower(m[3]), flags: strings.TrimSpace(m[4])}
	var err error
	if p.from, err = parseEnd(m[1]); err != nil {
		return packet{}, err
	}
	if p.to, err = parseEnd(m[2]); err != nil {
		return packet{}, err
	}
	return p, nil
}

// parseEnd reads one end of a packet; its port is 0 where it has none.
func parseEnd(s string) (netip.AddrPort, error) {
	if ip, err := netip.ParseAddr(s); err == nil {
		return netip.AddrPortFrom(ip.WithZone("").Unmap(), 0), nil
	}
	at, err := parseSocket(s)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("end of a packet: %w", err)
	}
	return at, nil
}
