package cilium

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
)

// DecodeEvents reads what `monitor` prints, as text or, line by line, as JSON;
// versions up to 1.20 mix the two. Lines that tell of no packet are passed over.
//
// Gaps are reported as *DecodeErrors together with what could be read.
func DecodeEvents(data []byte) ([]agent.Event, error) {
	events, a := monitorEvents(data)
	return events, a.err()
}

func monitorEvents(data []byte) ([]agent.Event, *answer) {
	a := newAnswer("monitor", data)
	var events []agent.Event
	for line, ok := a.next(); ok; line, ok = a.next() {
		e, ok, err := DecodeEvent(line)
		switch {
		case err != nil:
			a.fail(err.Error())
		case !ok:
			a.noise()
		default:
			events = append(events, e)
			a.entry()
		}
	}
	return events, a
}

// DecodeEvent reads one line of `monitor`; false for lines that are no event:
// its own first lines, log lines, details of a packet, details of debugging.
func DecodeEvent(line string) (agent.Event, bool, error) {
	line = strings.TrimSpace(line)
	// The processor that an event came from stands before some of them.
	if rest, ok := strings.CutPrefix(line, "CPU "); ok {
		if _, after, ok := strings.Cut(rest, ": "); ok {
			line = after
		}
	}
	switch {
	case line == "", beside.MatchString(line):
		return agent.Event{}, false, nil
	case strings.HasPrefix(line, "{"):
		return eventJSON(line)
	case strings.HasPrefix(line, "xx drop ("):
		return dropEvent(strings.TrimPrefix(line, "xx drop ("))
	case strings.HasPrefix(line, "Policy verdict log: "):
		return verdictEvent(strings.TrimPrefix(line, "Policy verdict log: "))
	case strings.HasPrefix(line, "["):
		return translationEvent(line)
	case strings.HasPrefix(line, "-> "), strings.HasPrefix(line, "<- "):
		return traceEvent(line)
	case strings.HasPrefix(line, "Lost "):
		n, err := strconv.Atoi(strings.Fields(line + " x x")[1])
		if err != nil {
			return agent.Event{}, false, errors.New("lost events without a number")
		}
		return agent.Event{Kind: agent.Lost, Count: n}, true, nil
	}
	return agent.Event{}, false, errors.New("no event of monitor")
}

// beside matches what is printed beside events: first lines, log lines, agent
// events, requests of L7, details of debugging and of a packet's headers.
var beside = regexp.MustCompile(`^(?:Listening for events|Press Ctrl-C|level=|time=|>> |L7 |-> Request|-> Response|<- Request|<- Response|MARK 0x|Conntrack |-{3,}|(?:Ethernet|IPv4|IPv6|TCP|UDP|ICMPv4|ICMPv6|SCTP|Packet|Decode|Failed to decode)\b|[0-9a-f]{8}  |Attempting |Successfully |\*\*)`)

func (e *eventLine) ends(text string) error {
	p, err := parsePacket("an event", text)
	if err != nil {
		return err
	}
	e.From, e.To, e.Protocol, e.Flags = p.from, p.to, p.protocol, p.flags
	return nil
}

// eventLine is an event as it is being read.
type eventLine struct{ agent.Event }

func dropEvent(text string) (agent.Event, bool, error) {
	d, flags, err := parseDrop(text)
	if err != nil {
		return agent.Event{}, false, err
	}
	e := agent.Event{
		Kind: agent.Dropped, Reason: d.Reason, Identities: d.Identities, From: d.From, To: d.To, Protocol: d.Protocol, Flags: flags,
	}
	if m := toEndpoint.FindStringSubmatch(text); m != nil {
		e.Endpoint, _ = strconv.Atoi(m[1])
	}
	return e, true, nil
}

var toEndpoint = regexp.MustCompile(`to endpoint ([0-9]{1,7}),`)

// verdictEvent reads fields that are parted by commas, in whatever order the
// version has them; the last one ends with the addresses.
func verdictEvent(text string) (agent.Event, bool, error) {
	e := eventLine{agent.Event{Kind: agent.Verdict}}
	rest := text
	for {
		field, after, more := strings.Cut(rest, ", ")
		if !more || strings.Contains(field, " -> ") {
			break
		}
		switch {
		case strings.HasPrefix(field, "flow ") && strings.Contains(field, "local EP ID "), strings.HasPrefix(field, "local EP ID "):
			_, id, _ := strings.Cut(field, "local EP ID ")
			e.Endpoint, _ = strconv.Atoi(id)
		case strings.HasPrefix(field, "remote ID "):
			e.Remote = strings.TrimPrefix(field, "remote ID ")
		case field == "ingress" || field == "egress":
			e.Direction = field
		case strings.HasPrefix(field, "action "):
			e.Action = strings.TrimPrefix(field, "action ")
		case strings.HasPrefix(field, "match "):
			e.Match = strings.TrimPrefix(field, "match ")
		}
		rest = after
	}
	if e.Action == "" {
		return agent.Event{}, false, errors.New("a policy verdict without an action")
	}
	if err := e.ends(rest); err != nil {
		return agent.Event{}, false, err
	}
	return e.Event, true, nil
}

var translated = regexp.MustCompile(`^\[((?:pre|post)-xlate-(?:fwd|rev))\] (?:cgroup_id: ([0-9]+) )?(?:sock_cookie: ([0-9]+), )?dst \[([0-9a-fA-F:.]+)\]:([0-9]{1,5}) ?(\w*)`)

func translationEvent(line string) (agent.Event, bool, error) {
	m := translated.FindStringSubmatch(line)
	if m == nil {
		return agent.Event{}, false, errors.New("no translation of the socket LB")
	}
	ip, err := netip.ParseAddr(m[4])
	if err != nil {
		return agent.Event{}, false, fmt.Errorf("translation: %w", err)
	}
	port, err := strconv.ParseUint(m[5], 10, 16)
	if err != nil {
		return agent.Event{}, false, fmt.Errorf("translation: %w", err)
	}
	return agent.Event{
		Kind: agent.Translation, Phase: m[1], Cookie: m[3], Protocol: strings.ToLower(m[6]), To: netip.AddrPortFrom(ip.Unmap(), uint16(port)),
	}, true, nil
}

var traced = regexp.MustCompile(`^(->|<-) ([a-z-]+)(?: ([0-9]{1,7}))? flow \S+ ?, (?:identity (\S+) )?(?:state ([a-z]+) )?`)

func traceEvent(line string) (agent.Event, bool, error) {
	m := traced.FindStringSubmatch(line)
	if m == nil {
		return agent.Event{}, false, errors.New("a trace of another form")
	}
	e := eventLine{agent.Event{Kind: agent.Traced, Identities: m[4], State: m[5], Point: map[string]string{"->": "to-", "<-": "from-"}[m[1]] + m[2]}}
	e.Endpoint, _ = strconv.Atoi(m[3])
	_, ends, ok := strings.Cut(line, "orig-ip ")
	if ok {
		_, ends, ok = strings.Cut(ends, ": ")
	}
	if !ok {
		ends = line[len(m[0]):]
	}
	if err := e.ends(ends); err != nil {
		return agent.Event{}, false, err
	}
	return e.Event, true, nil
}

// eventJSON reads a line of monitor -j.
func eventJSON(line string) (agent.Event, bool, error) {
	var v struct {
		Type, State, ObservationPoint, Reason string
		Source, DstID                         int
		Count                                 int
		Summary                               struct {
			L3       struct{ Src, Dst string }
			L4       struct{ Src, Dst string }
			TCP, UDP string
		}
	}
	if err := json.Unmarshal([]byte(line), &v); err != nil {
		return agent.Event{}, false, fmt.Errorf("an event in JSON: %w", err)
	}
	e := agent.Event{Endpoint: v.Source, State: v.State, Point: v.ObservationPoint, Reason: v.Reason}
	switch v.Type {
	case "trace":
		e.Kind = agent.Traced
	case "drop":
		e.Kind, e.Endpoint = agent.Dropped, v.DstID
	case "lost":
		return agent.Event{Kind: agent.Lost, Count: v.Count}, true, nil
	default:
		return agent.Event{}, false, nil
	}
	switch {
	case v.Summary.TCP != "":
		e.Protocol = "tcp"
	case v.Summary.UDP != "":
		e.Protocol = "udp"
	}
	var err error
	if e.From, err = joinEnd(v.Summary.L3.Src, v.Summary.L4.Src); err != nil {
		return agent.Event{}, false, err
	}
	if e.To, err = joinEnd(v.Summary.L3.Dst, v.Summary.L4.Dst); err != nil {
		return agent.Event{}, false, err
	}
	return e, true, nil
}

func joinEnd(ip, port string) (netip.AddrPort, error) {
	if ip == "" {
		return netip.AddrPort{}, nil // not an IP packet
	}
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("an event's address: %w", err)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if port != "" && err != nil {
		return netip.AddrPort{}, fmt.Errorf("an event's port: %w", err)
	}
	return netip.AddrPortFrom(addr.WithZone("").Unmap(), uint16(n)), nil
}
