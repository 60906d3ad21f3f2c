package cilium

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// DecodeMapListText reads `bpf lb list` of Cilium 1.9 to 1.20. Up to 1.10 a row
// is "BACKEND (revNAT)"; from 1.11 on "BACKEND (revNAT) (slot)". Up to 1.16 the
// rows of one frontend follow each other under one key; from 1.17 on the slot
// is part of the key, as is the protocol, and each row has its own key. The
// rows come sorted by frontend and slot.
//
// Gaps are reported as *DecodeErrors together with what could be read.
func DecodeMapListText(data []byte) ([]lb.MapRow, error) {
	rows, a := mapListText(data)
	return rows, a.err()
}

func mapListText(data []byte) ([]lb.MapRow, *answer) {
	a := newAnswer("bpf lb list", data)
	var rows []lb.MapRow
	a.keyed("SERVICE ADDRESS", "BACKEND ADDRESS", appendTo(&rows, parseMapRow))
	sortMapRows(rows)
	return rows, a
}

// DecodeMapListJSON reads `bpf lb list -o json`: an object of the same keys and
// rows as the text form's.
func DecodeMapListJSON(data []byte) ([]lb.MapRow, error) {
	var rows []lb.MapRow
	err := keyedJSON("bpf lb list", data, appendTo(&rows, parseMapRow))
	sortMapRows(rows)
	return rows, err
}

func sortMapRows(rows []lb.MapRow) {
	slices.SortStableFunc(rows, func(a, b lb.MapRow) int {
		return cmp.Or(a.Frontend.Compare(b.Frontend), cmp.Compare(a.Slot, b.Slot))
	})
}

// parseFrontendKey reads "ADDRESS" or "ADDRESS (slot)"; without a slot it is -1.
func parseFrontendKey(key string) (lb.Address, int, error) {
	word, rest := cutWord(key)
	address, err := parseAddress(word)
	if err != nil {
		return lb.Address{}, 0, err
	}
	if rest == "" {
		return address, -1, nil
	}
	slot, rest, ok := cutNumber(rest)
	if !ok || rest != "" {
		return lb.Address{}, 0, fmt.Errorf("frontend %s is followed by no slot", word)
	}
	return address, slot, nil
}

func parseMapRow(key, value string) (lb.MapRow, error) {
	frontend, keySlot, err := parseFrontendKey(key)
	if err != nil {
		return lb.MapRow{}, err
	}
	row := lb.MapRow{Frontend: frontend, Slot: keySlot}
	if id, ok := lostBackend(value); ok {
		row.Lost = true
		row.ID, err = parseCount(id)
		return row, err
	}
	word, rest := cutWord(value)
	backend, err := parseAddress(word)
	if err != nil {
		return lb.MapRow{}, err
	}
	var ok bool
	if row.RevNAT, rest, ok = cutNumber(rest); !ok {
		return lb.MapRow{}, fmt.Errorf("row of %s without a reverse NAT id", frontend)
	}
	if slot, after, ok := cutNumber(rest); ok {
		if keySlot >= 0 && slot != keySlot {
			return lb.MapRow{}, fmt.Errorf("row of %s says slot %d under slot %d", frontend, slot, keySlot)
		}
		row.Slot, rest = slot, after
	}
	if row.Flags, rest, row.Master = cutFlags(rest); !row.Master {
		row.Master = row.Slot == 0
	}
	if row.L7Port, rest, err = cutL7Port(rest); err != nil {
		return lb.MapRow{}, err
	}
	if rest != "" {
		return lb.MapRow{}, fmt.Errorf("row of %s ends in %q", frontend, rest)
	}
	if !row.Master {
		row.Backend = backend
	}
	return row, nil
}

// lostBackend finds N in "backend N not found".
func lostBackend(value string) (string, bool) {
	id, ok := strings.CutPrefix(strings.TrimSpace(value), "backend ")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(id, " not found")
}

// cutFlags reads "[ClusterIP, non-routable]". Flags may hold blanks: "check
// source-range".
func cutFlags(s string) (flags []string, rest string, ok bool) {
	inner, ok := strings.CutPrefix(s, "[")
	if !ok {
		return nil, s, false
	}
	inner, rest, ok = strings.Cut(inner, "]")
	if !ok {
		return nil, s, false
	}
	for flag := range strings.SplitSeq(inner, ",") {
		if flag = strings.TrimSpace(flag); flag != "" {
			flags = append(flags, flag)
		}
	}
	return flags, strings.TrimSpace(rest), true
}

// cutL7Port reads "(L7LB Proxy Port: 15735)" of frontends that the agent's
// proxy serves; 0 without.
func cutL7Port(s string) (int, string, error) {
	inner, ok := strings.CutPrefix(s, "(L7LB Proxy Port: ")
	if !ok {
		return 0, s, nil
	}
	number, rest, _ := strings.Cut(inner, ")")
	port, err := parseCount(number)
	if err != nil || port > 65535 {
		return 0, s, fmt.Errorf("proxy port %q is no port", number)
	}
	return port, strings.TrimSpace(rest), nil
}

// keyed reads the two-column tables of `bpf lb list`: a key and one value per
// row, further values of the same key on rows that leave the first column
// blank.
func (a *answer) keyed(first, second string, row func(key, value string) error) {
	key := ""
	for line, ok := a.next(); ok; line, ok = a.next() {
		trimmed := strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(trimmed, first); ok && strings.HasPrefix(strings.TrimSpace(rest), second) {
			a.header()
			key = ""
			continue
		}
		value := trimmed
		if line[0] != ' ' && line[0] != '\t' {
			key, value = cutKey(trimmed)
		}
		err := errors.New("row without a key")
		if key != "" {
			err = row(key, value)
		}
		if err != nil {
			a.fail(err.Error())
			continue
		}
		a.entry()
	}
}

// cutKey takes "ADDRESS (slot)" or "ADDRESS" off a row. A number in parentheses
// right behind the first word is a slot: values begin with an address.
func cutKey(row string) (key, value string) {
	word, rest := cutWord(row)
	if _, after, ok := cutNumber(rest); ok {
		slot, _ := cutWord(rest)
		return word + " " + slot, after
	}
	return word, rest
}

// keyedJSON reads the same tables from their JSON form, an object of arrays of
// strings.
func keyedJSON(name string, data []byte, row func(key, value string) error) error {
	d, err := openDocument(name, data)
	if d == nil {
		return err
	}
	return d.object(func(line int, key string, raw json.RawMessage) {
		var values []json.RawMessage
		if !d.into(line, raw, &values) {
			return
		}
		for _, raw := range values {
			var value string
			if !d.into(line, raw, &value) {
				continue
			}
			if err := row(key, value); err != nil {
				d.errs.add(line, key+": "+value, err.Error())
			}
		}
	})
}
