package cilium

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// DecodeRedirectList reads `lrp list`: one row for each local redirect policy
// and one below it for each of its frontends. Rows come in the order printed.
//
// Gaps are reported as *DecodeErrors together with what could be read.
func DecodeRedirectList(data []byte) ([]lb.RedirectRow, error) {
	rows, a := redirectList(data)
	return rows, a.err()
}

func redirectList(data []byte) ([]lb.RedirectRow, *answer) {
	a := newAnswer("lrp list", data)
	var rows []lb.RedirectRow
	var cs columns
	whole := false // the last policy was read, so mappings below it are its own
	for line, ok := a.next(); ok; line, ok = a.next() {
		if found := findColumns(line, "LRP namespace", "LRP name", "FrontendType"); found != nil {
			cs = found
			a.header()
			continue
		}
		if cs == nil {
			a.fail("a row before the header")
			continue
		}
		if mapping, ok := strings.CutPrefix(strings.TrimSpace(line), "|"); ok {
			m, err := parseRedirectMapping(strings.TrimSpace(mapping))
			switch {
			case err != nil:
				a.fail(err.Error())
			case !whole:
				a.fail("a frontend below no policy")
			default:
				rows[len(rows)-1].Mappings = append(rows[len(rows)-1].Mappings, m)
				a.entry()
			}
			continue
		}
		row, err := parseRedirectRow(cs.cells(line))
		if whole = err == nil; !whole {
			a.fail(err.Error())
			continue
		}
		rows = append(rows, row)
		a.entry()
	}
	return rows, a
}

func parseRedirectRow(cells map[string]string) (lb.RedirectRow, error) {
	row := lb.RedirectRow{
		Policy: lb.Name{Namespace: cells["LRP namespace"], Name: cells["LRP name"]}, Kind: cells["FrontendType"],
	}
	if row.Policy.Namespace == "" || row.Policy.Name == "" {
		return row, errors.New("a policy without namespace or name")
	}
	// Policies that match addresses have no Service; the id is then empty or,
	// in old versions, a lone slash.
	if id := cells["Matching Service"]; id != "" && id != "/" {
		var err error
		if _, row.Service, err = parseName(id); err != nil {
			return row, err
		}
	}
	return row, nil
}

// parseRedirectMapping reads "IP:PORT/PROTOCOL -> IP:PORT(NAMESPACE/POD), ",
// where any number of targets may follow the arrow, none of them included.
// IPv6 addresses stand without brackets.
func parseRedirectMapping(s string) (lb.RedirectMapping, error) {
	var m lb.RedirectMapping
	left, right, ok := strings.Cut(s, "->")
	if !ok {
		return m, errors.New("a frontend without an arrow")
	}
	socket, protocol, _ := strings.Cut(strings.TrimSpace(left), "/")
	p, err := lb.ParseProtocol(protocol)
	if err != nil {
		return m, fmt.Errorf("frontend %q: %w", left, err)
	}
	m.Frontend.Protocol = p
	if port, ok := strings.CutPrefix(socket, "invalid IP:"); ok {
		n, err := parsePort(port)
		if err != nil {
			return m, err
		}
		m.Frontend.Port = n
	} else {
		at, err := parseSocket(socket)
		if err != nil {
			return m, err
		}
		m.Frontend.IP, m.Frontend.Port = at.Addr(), at.Port()
	}
	for word := range strings.SplitSeq(right, ",") {
		if word = strings.TrimSpace(word); word == "" {
			continue
		}
		t, err := parseRedirectTarget(word)
		if err != nil {
			return m, err
		}
		m.Targets = append(m.Targets, t)
	}
	return m, nil
}

func parseRedirectTarget(s string) (lb.RedirectTarget, error) {
	socket, pod, ok := strings.Cut(strings.TrimSuffix(s, ")"), "(")
	if !ok {
		return lb.RedirectTarget{}, fmt.Errorf("target %q: want IP:PORT(NAMESPACE/POD)", s)
	}
	at, err := parseSocket(socket)
	if err != nil {
		return lb.RedirectTarget{}, err
	}
	t := lb.RedirectTarget{Address: at}
	_, t.Pod, err = parseName(strings.Trim(pod, "/"))
	return t, err
}

// parseSocket reads "IP:PORT", "[IP]:PORT", and IPv6 as some commands print it:
// without brackets, the port behind the last colon.
func parseSocket(s string) (netip.AddrPort, error) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return netip.AddrPort{}, fmt.Errorf("address %q: want IP:PORT", s)
	}
	ip, err := parseIP(strings.TrimSuffix(strings.TrimPrefix(s[:i], "["), "]"))
	if err != nil {
		return netip.AddrPort{}, err
	}
	port, err := parsePort(s[i+1:])
	if err != nil {
		return netip.AddrPort{}, err
	}
	return netip.AddrPortFrom(ip, port), nil
}

func parsePort(s string) (uint16, error) {
	n, err := parseCount(s)
	if err != nil || n > 65535 {
		return 0, fmt.Errorf("%q is no port", s)
	}
	return uint16(n), nil
}
