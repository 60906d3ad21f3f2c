package cilium

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// DecodeConntrack reads `bpf ct list global`, with or without --time-diff. The
// entries come in the order printed.
//
// Up to 1.13 a Service's entry is an OUT row with the frontend on the left and
// the word "service" behind the client; later it is an SVC row with the client
// on the left. Up to 1.15 the id of its backend stands in RxBytes, which no
// Service entry counts; later BackendID tells it.
//
// Gaps are reported as *DecodeErrors together with what could be read.
func DecodeConntrack(data []byte) ([]lb.Connection, error) {
	cs, a := conntrack(data)
	return cs, a.err()
}

func conntrack(data []byte) ([]lb.Connection, *answer) {
	a := newAnswer("bpf ct list", data)
	var cs []lb.Connection
	for line, ok := a.next(); ok; line, ok = a.next() {
		c, err := parseConnection(strings.Fields(line))
		if err != nil {
			a.fail(err.Error())
			continue
		}
		cs = append(cs, c)
		a.entry()
	}
	return cs, a
}

// parseConnection reads "TCP SVC 10.0.0.1:4000 -> 10.96.0.1:443 expires=9 …".
func parseConnection(words []string) (lb.Connection, error) {
	if len(words) < 5 || words[3] != "->" {
		return lb.Connection{}, errors.New("want PROTOCOL DIRECTION ADDRESS -> ADDRESS")
	}
	c := lb.Connection{Protocol: strings.ToUpper(words[0])}
	switch words[1] {
	case "IN":
		c.Direction = lb.Inward
	case "OUT":
		c.Direction = lb.Outward
	case "SVC":
		c.Direction = lb.ServiceEntry
	default:
		return c, fmt.Errorf("direction %q", words[1])
	}
	var err error
	if c.From, err = parseSocket(words[2]); err != nil {
		return c, err
	}
	if c.To, err = parseSocket(words[4]); err != nil {
		return c, err
	}
	words = words[5:]
	c.Related = slices.Contains(words, "related")
	if slices.Contains(words, "service") {
		c.Direction = lb.ServiceEntry
		c.From, c.To = c.To, c.From
	}
	return c, connectionFields(&c, words)
}

// connectionFields reads what stands behind the addresses. Fields that hold
// nothing of a Connection are passed over, as are those of later versions.
func connectionFields(c *lb.Connection, words []string) error {
	pinned := 0
	told := false
	for _, w := range words {
		key, value, ok := strings.Cut(w, "=")
		var into *int
		switch {
		case !ok:
			continue
		case strings.EqualFold(key, "RevNAT"):
			into = &c.RevNAT
		case key == "BackendID":
			into, told = &c.Backend, true
		case c.Direction == lb.ServiceEntry && strings.EqualFold(key, "RxBytes"):
			into = &pinned
		default:
			continue
		}
		n, err := parseCount(value)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		*into = n
	}
	switch {
	case c.Direction != lb.ServiceEntry:
		c.Backend = 0
	case !told:
		c.Backend = pinned
	}
	tx, rx := slices.Contains(words, "TxClosing"), slices.Contains(words, "RxClosing")
	// A Service's entry sees one direction only.
	c.Closing = tx && rx || c.Direction == lb.ServiceEntry && (tx || rx)
	return nil
}
