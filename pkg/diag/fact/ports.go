package fact

import (
	"bufio"
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// Knock is the outcome of dialling one port of a node from its own network
// namespace, over IPv4 and IPv6 loopback.
type Knock struct {
	Open    bool   // one of the addresses took the connection
	Refused bool   // every address refused it
	Code    int    // HTTP status, 0 without an answer
	Body    string // first line of the body, trimmed
}

// decodeKnock reads the pump's report: a line "connect: WORD ADDRESS" for each
// address tried, and below an open one the HTTP answer.
func decodeKnock(a source.Artifact) (Knock, error) {
	var k Knock
	tried, refused, body := 0, 0, false
	sc := bufio.NewScanner(bytes.NewReader(a.Data))
	for sc.Scan() {
		line := strings.TrimSpace(sc.Text())
		word, isConnect := strings.CutPrefix(line, "connect: ")
		switch {
		case isConnect:
			tried++
			switch w, _, _ := strings.Cut(word, " "); w {
			case "open":
				k.Open = true
			case "refused":
				refused++
			}
		case strings.HasPrefix(line, "HTTP/") && k.Code == 0:
			if f := strings.Fields(line); len(f) > 1 {
				k.Code, _ = strconv.Atoi(f[1])
			}
		case line == "" && k.Code != 0:
			body = true
		case body && k.Body == "":
			k.Body = line
		}
	}
	if tried == 0 {
		return k, fmt.Errorf("%s: no line tells whether the port was open", a.Origin)
	}
	k.Refused = !k.Open && refused == tried
	return k, nil
}

// Listener is a listening TCP socket of a node.
type Listener struct {
	Address string
	Port    int
	Process string // "" where the list has no names
}

var processOf = regexp.MustCompile(`users:\(\("([^"]{1,64})"`)

// decodeListeners reads `ss -lnt`, with or without a header, the protocol
// column (-u), and process names (-p).
func decodeListeners(a source.Artifact) ([]Listener, error) {
	var out []Listener
	sc := bufio.NewScanner(bytes.NewReader(a.Data))
	sc.Buffer(nil, 1<<20)
	lines := 0
	for sc.Scan() {
		f := strings.Fields(sc.Text())
		if len(f) == 0 {
			continue
		}
		lines++
		if f[0] == "udp" || f[0] == "UNCONN" {
			continue
		}
		if f[0] == "tcp" {
			f = f[1:]
		}
		if len(f) < 4 || f[0] != "LISTEN" {
			continue
		}
		i := strings.LastIndexByte(f[3], ':')
		port, err := strconv.Atoi(f[3][i+1:])
		if i < 0 || err != nil {
			continue
		}
		l := Listener{Address: f[3][:i], Port: port}
		if m := processOf.FindStringSubmatch(sc.Text()); m != nil {
			l.Process = m[1]
		}
		out = append(out, l)
	}
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", a.Origin, err)
	}
	// A node without one listening TCP socket has no kubelet and no agent: the
	// list is empty because it could not be read.
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: no listening TCP socket in %d lines: %w", a.Origin, lines, source.ErrCut)
	}
	return out, nil
}
