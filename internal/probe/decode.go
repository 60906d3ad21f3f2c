package probe

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/internal/cilium"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/request"
)

// told is what a dialer said so far of one try.
type told struct {
	order, try int
	word       string // open, reply, failed, late
	took       time.Duration
	local      netip.AddrPort
	remote     netip.AddrPort
	data       []byte
	words      string
}

// errNotOurs: a line that the dialer did not write.
var errNotOurs = errors.New("not a line of the dialer")

// header is a line that is about no request: "where PATH" or "done".
type header struct{ word, rest string }

// parseLine reads one line of a dialer. Exactly one of the results is set.
func parseLine(nonce, line string) (*told, *header, error) {
	rest, ok := strings.CutPrefix(line, nonce+" ")
	if !ok {
		return nil, nil, errNotOurs
	}
	word, after, _ := strings.Cut(rest, " ")
	if word == "where" || word == "done" {
		return nil, &header{word, cilium.PlainLine(after, 300)}, nil
	}
	f := strings.SplitN(rest, " ", 5)
	if len(f) < 4 {
		return nil, nil, fmt.Errorf("%q: want REQUEST TRY WORD MICROS", cilium.PlainLine(rest, 80))
	}
	var t told
	var micros int64
	var err error
	if t.order, err = strconv.Atoi(f[0]); err == nil {
		t.try, err = strconv.Atoi(f[1])
	}
	if err == nil {
		micros, err = strconv.ParseInt(f[3], 10, 64)
	}
	if err != nil || t.order < 0 || t.try < 0 || micros < 0 || micros > int64(24*time.Hour/time.Microsecond) {
		return nil, nil, fmt.Errorf("%q: want REQUEST TRY WORD MICROS", cilium.PlainLine(rest, 80))
	}
	t.word, t.took = f[2], time.Duration(micros)*time.Microsecond
	tail := ""
	if len(f) == 5 {
		tail = f[4]
	}
	switch t.word {
	case "open", "late":
		t.local, t.remote, _ = parseRow(tail)
	case "reply":
		if t.data, err = hex.DecodeString(strings.TrimSpace(tail)); err != nil {
			return nil, nil, fmt.Errorf("answer: %w", err)
		}
	case "failed":
		t.words = plainFailure(tail)
	default:
		return nil, nil, fmt.Errorf("word %q", cilium.PlainLine(t.word, 20))
	}
	return &t, nil, nil
}

// plainFailure takes the program's name and line off bash's words.
func plainFailure(s string) string {
	s = cilium.PlainLine(s, 200)
	if i := strings.LastIndex(s, ": "); i >= 0 {
		s = s[i+2:]
	}
	return strings.ToLower(s)
}

// parseRow reads a socket of /proc/net/tcp and its like: "0: 0100007F:1F90
// 0200007F:ABCD 01 …". Addresses are words of four bytes in the order of the
// node's processor; all that run Kubernetes are little-endian but s390x, whose
// rows are told by an impossible address and are not read.
func parseRow(s string) (local, remote netip.AddrPort, err error) {
	f := strings.Fields(s)
	if len(f) < 4 {
		return local, remote, errors.New("no row of a socket")
	}
	if local, err = parseHex(f[1]); err != nil {
		return local, remote, err
	}
	remote, err = parseHex(f[2])
	return local, remote, err
}

func parseHex(s string) (netip.AddrPort, error) {
	address, port, ok := strings.Cut(s, ":")
	raw, err := hex.DecodeString(address)
	if !ok || err != nil || len(raw) != 4 && len(raw) != 16 {
		return netip.AddrPort{}, fmt.Errorf("%q: no address of /proc/net", s)
	}
	for i := 0; i < len(raw); i += 4 {
		word := raw[i : i+4]
		binary.BigEndian.PutUint32(word, binary.LittleEndian.Uint32(word))
	}
	p, err := strconv.ParseUint(port, 16, 16)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("%q: no port of /proc/net", s)
	}
	ip, _ := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(ip.Unmap(), uint16(p)), nil
}

// answered judges the bytes of an answer: what it is in a line, and whether it
// is one. Any answer proves the way; a server's complaint is told, not counted.
func answered(ask request.Ask, data []byte) (line string, err error) {
	switch ask {
	case request.HTTP:
		first, _, _ := bytes.Cut(data, []byte("\n"))
		if !bytes.HasPrefix(first, []byte("HTTP/")) {
			return "", errors.New("what answers does not speak HTTP")
		}
		return cilium.PlainLine(strings.TrimSpace(string(first)), 80), nil
	case request.HTTPS:
		// 22 is a handshake, 21 an alert: both are TLS.
		if len(data) < 3 || data[0] != 22 && data[0] != 21 || data[1] != 3 {
			return "", errors.New("what answers does not speak TLS")
		}
		if data[0] == 21 {
			return "TLS alert", nil
		}
		return "TLS handshake", nil
	case request.DNS:
		return dnsAnswer(data)
	}
	return cilium.PlainLine(strings.TrimSpace(string(data)), 80), nil
}
