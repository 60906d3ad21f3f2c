package cilium

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// DecodeMapBackendsText reads `bpf lb list --backends`: the backend map by id,
// sorted by id. Cilium 1.13 and older print "TCP://10.0.0.1:80"; with the map of
// 1.14 the port is left out, and a zone may follow in brackets. State is always
// empty: DecodeMapsDump tells it.
func DecodeMapBackendsText(data []byte) ([]lb.MapBackend, error) {
	bs, a := mapBackendsText(data)
	return bs, a.err()
}

func mapBackendsText(data []byte) ([]lb.MapBackend, *answer) {
	a := newAnswer("bpf lb list --backends", data)
	var bs []lb.MapBackend
	a.keyed("ID", "BACKEND ADDRESS", appendTo(&bs, parseMapBackend))
	sortMapBackends(bs)
	return bs, a
}

// DecodeMapBackendsJSON reads `bpf lb list --backends -o json`.
func DecodeMapBackendsJSON(data []byte) ([]lb.MapBackend, error) {
	var bs []lb.MapBackend
	err := keyedJSON("bpf lb list --backends", data, appendTo(&bs, parseMapBackend))
	sortMapBackends(bs)
	return bs, err
}

func sortMapBackends(bs []lb.MapBackend) {
	slices.SortStableFunc(bs, func(a, b lb.MapBackend) int { return cmp.Compare(a.ID, b.ID) })
}

func parseMapBackend(key, value string) (lb.MapBackend, error) {
	id, err := parseCount(key)
	if err != nil {
		return lb.MapBackend{}, fmt.Errorf("backend id %w", err)
	}
	protocol, host, ok := strings.Cut(value, "://")
	if !ok {
		return lb.MapBackend{}, errors.New("want PROTOCOL://ADDRESS")
	}
	b := lb.MapBackend{ID: id}
	if i := strings.IndexByte(host, '['); i > 0 && strings.HasSuffix(host, "]") {
		host = host[:i] // the zone; MapBackend has no field for it
	}
	if b.Address.IP, err = parseIP(host); err != nil {
		if b.Address, err = parseAddress(host); err != nil {
			return lb.MapBackend{}, err
		}
	}
	b.Address.Protocol, err = lb.ParseProtocol(protocol)
	return b, err
}

// DecodeMapFrontendsText reads `bpf lb list --frontends`: the service map by
// backend id, with the counts of the master rows, sorted by frontend and slot.
//
// Up to 1.16 the key holds no slot. The master row of a frontend is then found
// by its content, and the others have slot -1. Up to 1.15 there is no count of
// quarantined backends; Quarantined is -1 on such master rows.
func DecodeMapFrontendsText(data []byte) ([]lb.SlotRow, error) {
	rows, a := mapFrontendsText(data)
	return rows, a.err()
}

func mapFrontendsText(data []byte) ([]lb.SlotRow, *answer) {
	a := newAnswer("bpf lb list --frontends", data)
	var rows []lb.SlotRow
	a.keyed("SERVICE ADDRESS", "BACKEND ID", appendTo(&rows, parseSlotRow))
	sortSlotRows(rows)
	return rows, a
}

// DecodeMapFrontendsJSON reads `bpf lb list --frontends -o json`.
func DecodeMapFrontendsJSON(data []byte) ([]lb.SlotRow, error) {
	var rows []lb.SlotRow
	err := keyedJSON("bpf lb list --frontends", data, appendTo(&rows, parseSlotRow))
	sortSlotRows(rows)
	return rows, err
}

func sortSlotRows(rows []lb.SlotRow) {
	slices.SortStableFunc(rows, func(a, b lb.SlotRow) int {
		return cmp.Or(a.Frontend.Compare(b.Frontend), cmp.Compare(a.Slot, b.Slot), cmp.Compare(a.Value, b.Value))
	})
	for i := 0; i < len(rows); {
		j := i + 1
		for j < len(rows) && rows[j].Frontend == rows[i].Frontend {
			j++
		}
		findMaster(rows[i:j])
		i = j
	}
	for i := range rows {
		if rows[i].Slot != 0 {
			rows[i].Quarantined = 0
		}
	}
}

// findMaster looks for the master among rows of one frontend without slots. It
// alone counts backends; without any it stands alone, and a backend's id is
// never 0.
func findMaster(rows []lb.SlotRow) {
	if rows[0].Slot >= 0 {
		return
	}
	i := slices.IndexFunc(rows, func(r lb.SlotRow) bool { return r.Count > 0 || r.Value == 0 })
	if i < 0 && len(rows) == 1 {
		i = 0
	}
	if i < 0 {
		return
	}
	master := rows[i]
	master.Slot = 0
	copy(rows[1:], rows[:i])
	rows[0] = master
}

// slotValue is "3 2[1] (9) [0x2 0x10]": backend id or the master row's timeout,
// count, quarantined count, reverse NAT id, flags.
var slotValue = regexp.MustCompile(`^(\d+) (\d+)(?:\[(\d+)\])? \((\d+)\) \[0x([0-9a-f]{1,2}) 0x([0-9a-f]{1,2})\]$`)

func parseSlotRow(key, value string) (lb.SlotRow, error) {
	frontend, slot, err := parseFrontendKey(key)
	if err != nil {
		return lb.SlotRow{}, err
	}
	m := slotValue.FindStringSubmatch(strings.TrimSpace(value))
	if m == nil {
		return lb.SlotRow{}, fmt.Errorf("row of %s: want ID COUNT[QUARANTINED] (REVNAT) [FLAGS]", frontend)
	}
	row := lb.SlotRow{Frontend: frontend, Slot: slot, Quarantined: -1}
	for i, field := range []*int{&row.Value, &row.Count, &row.Quarantined, &row.RevNAT} {
		if m[i+1] == "" {
			continue
		}
		if *field, err = parseCount(m[i+1]); err != nil {
			return lb.SlotRow{}, fmt.Errorf("row of %s: %w", frontend, err)
		}
	}
	for i := range row.Flags {
		n, err := strconv.ParseUint(m[i+5], 16, 8)
		if err != nil {
			return lb.SlotRow{}, fmt.Errorf("row of %s: flags %w", frontend, err)
		}
		row.Flags[i] = uint8(n)
	}
	return row, nil
}

// DecodeMapRangesText reads `bpf lb list --source-ranges`, sorted by reverse
// NAT id and prefix.
func DecodeMapRangesText(data []byte) ([]lb.SourceRange, error) {
	rs, a := mapRangesText(data)
	return rs, a.err()
}

func mapRangesText(data []byte) ([]lb.SourceRange, *answer) {
	a := newAnswer("bpf lb list --source-ranges", data)
	var rs []lb.SourceRange
	a.keyed("SOURCE RANGE (REVNAT_ID)", "", appendTo(&rs, parseSourceRange))
	sortSourceRanges(rs)
	return rs, a
}

// DecodeMapRangesJSON reads `bpf lb list --source-ranges -o json`.
func DecodeMapRangesJSON(data []byte) ([]lb.SourceRange, error) {
	var rs []lb.SourceRange
	err := keyedJSON("bpf lb list --source-ranges", data, appendTo(&rs, parseSourceRange))
	sortSourceRanges(rs)
	return rs, err
}

func sortSourceRanges(rs []lb.SourceRange) {
	slices.SortStableFunc(rs, func(a, b lb.SourceRange) int {
		return cmp.Or(cmp.Compare(a.RevNAT, b.RevNAT), a.Prefix.Addr().Compare(b.Prefix.Addr()), cmp.Compare(a.Prefix.Bits(), b.Prefix.Bits()))
	})
}

// parseSourceRange reads "172.30.0.0/24 (10)"; the row has no second column.
func parseSourceRange(key, value string) (lb.SourceRange, error) {
	word, rest := cutWord(key)
	prefix, err := parsePrefix(word)
	if err != nil {
		return lb.SourceRange{}, err
	}
	id, rest, ok := cutNumber(rest)
	if !ok || rest != "" || value != "" {
		return lb.SourceRange{}, fmt.Errorf("source range %s without a reverse NAT id", prefix)
	}
	return lb.SourceRange{Prefix: prefix, RevNAT: id}, nil
}

func parsePrefix(s string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%q is no prefix", s)
	}
	return p, nil
}

// DecodeMapRevNATText reads `bpf lb list --revnat`, sorted by id. The rows name
// no protocol.
func DecodeMapRevNATText(data []byte) ([]lb.RevNAT, error) {
	rs, a := mapRevNATText(data)
	return rs, a.err()
}

func mapRevNATText(data []byte) ([]lb.RevNAT, *answer) {
	a := newAnswer("bpf lb list --revnat", data)
	var rs []lb.RevNAT
	a.keyed("ID", "BACKEND ADDRESS", appendTo(&rs, parseRevNAT))
	sortRevNAT(rs)
	return rs, a
}

// DecodeMapRevNATJSON reads `bpf lb list --revnat -o json`.
func DecodeMapRevNATJSON(data []byte) ([]lb.RevNAT, error) {
	var rs []lb.RevNAT
	err := keyedJSON("bpf lb list --revnat", data, appendTo(&rs, parseRevNAT))
	sortRevNAT(rs)
	return rs, err
}

func sortRevNAT(rs []lb.RevNAT) {
	slices.SortStableFunc(rs, func(a, b lb.RevNAT) int { return cmp.Compare(a.ID, b.ID) })
}

func parseRevNAT(key, value string) (lb.RevNAT, error) {
	id, err := parseCount(key)
	if err != nil {
		return lb.RevNAT{}, fmt.Errorf("reverse NAT id %w", err)
	}
	address, err := parseAddress(value)
	return lb.RevNAT{ID: id, Address: address}, err
}

// appendTo makes a row parser collect into a slice.
func appendTo[T any](rows *[]T, parse func(key, value string) (T, error)) func(key, value string) error {
	return func(key, value string) error {
		row, err := parse(key, value)
		if err == nil {
			*rows = append(*rows, row)
		}
		return err
	}
}
