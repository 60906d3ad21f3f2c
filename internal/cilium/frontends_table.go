package cilium

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// DecodeFrontendsTableText reads `shell -- db/show frontends` and `db/list
// frontends` (Cilium 1.18 and later). Which columns there are, and in which
// order, is told by the header. The rows come sorted by address.
//
// Gaps are reported as *DecodeErrors together with what could be read.
func DecodeFrontendsTableText(data []byte) ([]lb.TableRow, error) {
	rows, a := frontendsTableText(data)
	return rows, a.err()
}

func frontendsTableText(data []byte) ([]lb.TableRow, *answer) {
	a := newAnswer("frontends table", data)
	var rows []lb.TableRow
	var cs columns
	for line, ok := a.next(); ok; line, ok = a.next() {
		if header := findColumns(line, "Address", "Backends", "Status"); header != nil {
			cs = header
			a.header()
			continue
		}
		if cs == nil {
			a.fail("row before the header")
			continue
		}
		row, err := parseTableRow(cs.cells(line))
		if err != nil {
			a.fail(err.Error())
			continue
		}
		rows = append(rows, row)
		a.entry()
	}
	sortTableRows(rows)
	return rows, a
}

func sortTableRows(rows []lb.TableRow) {
	slices.SortStableFunc(rows, func(a, b lb.TableRow) int { return a.Address.Compare(b.Address) })
}

func parseTableRow(cells map[string]string) (lb.TableRow, error) {
	row := lb.TableRow{
		Type: cells["Type"], PortName: cells["PortName"], RedirectTo: cells["RedirectTo"],
		Status: cells["Status"], Since: cells["Since"], Error: cells["Error"],
	}
	var err error
	if row.Address, err = parseAddress(cells["Address"]); err != nil {
		return lb.TableRow{}, err
	}
	if row.Cluster, row.Service, err = parseName(cells["ServiceName"]); err != nil {
		return lb.TableRow{}, err
	}
	row.Backends, row.More, err = parseTableBackends(cells["Backends"])
	return row, err
}

// moreBackends ends a cell of more than five backends.
var moreBackends = regexp.MustCompile(` \+ (\d+) more \.\.\.$`)

// parseTableBackends reads "10.0.0.1:80/TCP, 10.0.0.2:80/TCP + 3 more ...".
// Releases of 1.18 write the state behind each address, 1.20 does not.
func parseTableBackends(cell string) (bs []lb.Backend, more int, err error) {
	if m := moreBackends.FindStringSubmatch(cell); m != nil {
		cell = strings.TrimSuffix(cell, m[0])
		if more, err = parseCount(m[1]); err != nil {
			return nil, 0, err
		}
	}
	if cell == "" {
		return nil, more, nil
	}
	for item := range strings.SplitSeq(cell, ", ") {
		b, err := parseBackend(item)
		if err != nil {
			return nil, 0, err
		}
		bs = append(bs, b)
	}
	return bs, more, nil
}

// DecodeFrontendsTableJSON reads the same table with `--format=json`: a run of
// objects, one per frontend, without commas between them. No object at all is
// an empty table.
//
// Addresses are strings in 1.20 and objects in 1.18; backends' states are
// numbers, whose meaning changed, see tableState.
func DecodeFrontendsTableJSON(data []byte) ([]lb.TableRow, error) {
	if len(strings.TrimSpace(string(data))) == 0 {
		return nil, nil
	}
	d, err := openDocument("frontends table", data)
	if d == nil {
		return nil, err
	}
	var rows []lb.TableRow
	err = d.run(func(line int, raw json.RawMessage) {
		if row, ok := d.tableRow(line, raw); ok {
			rows = append(rows, row)
		}
	})
	sortTableRows(rows)
	return rows, err
}

type tableFrontend struct {
	Address, ServiceName, PortName, Type, RedirectTo, Status json.RawMessage
	Backends                                                 []json.RawMessage
}

func (d *document) tableRow(line int, raw json.RawMessage) (lb.TableRow, bool) {
	var m tableFrontend
	if !d.into(line, raw, &m) {
		return lb.TableRow{}, false
	}
	var row lb.TableRow
	var err error
	if row.Address, _, err = tableAddress(m.Address); err != nil {
		d.errs.add(line, string(raw), err.Error())
		return lb.TableRow{}, false
	}
	d.optional(line, m.Type, &row.Type)
	d.optional(line, m.PortName, &row.PortName)
	if row.Cluster, row.Service, err = tableName(m.ServiceName); err != nil {
		d.errs.add(line, string(m.ServiceName), err.Error())
	}
	cluster, name, err := tableName(m.RedirectTo)
	if err != nil {
		d.errs.add(line, string(m.RedirectTo), err.Error())
	}
	row.RedirectTo = name.String()
	if cluster != "" {
		row.RedirectTo = cluster + "/" + row.RedirectTo
	}
	var status struct {
		Kind, Error string
		UpdatedAt   string `json:"updated-at"`
	}
	d.optional(line, m.Status, &status)
	row.Status, row.Error, row.Since = status.Kind, status.Error, status.UpdatedAt
	for _, raw := range m.Backends {
		if b, ok := d.tableBackend(line, raw); ok {
			row.Backends = append(row.Backends, b)
		}
	}
	return row, true
}

type tableBackendParts struct {
	Address, Zone, State json.RawMessage
	NodeName             string
	Weight               int
	Unhealthy            bool
}

func (d *document) tableBackend(line int, raw json.RawMessage) (lb.Backend, bool) {
	var m tableBackendParts
	d.into(line, raw, &m)
	address, spelled, err := tableAddress(m.Address)
	if err != nil {
		d.errs.add(line, string(raw), err.Error())
		return lb.Backend{}, false
	}
	b := lb.Backend{Address: address, Node: m.NodeName, Weight: m.Weight}
	if b.State, err = tableState(m.State, spelled); err != nil {
		d.errs.add(line, string(raw), err.Error())
	}
	// The agent's own health check, 1.18 and later: it writes such a backend to
	// the map among the quarantined ones and leaves State as the API has it.
	if m.Unhealthy && b.State == lb.Active {
		b.State = lb.Quarantined
	}
	b.Zone = tableZone(m.Zone)
	return b, true
}

// tableAddress reads both spellings; spelled is true for the string of 1.20.
func tableAddress(raw json.RawMessage) (a lb.Address, spelled bool, err error) {
	var s string
	if json.Unmarshal(raw, &s) == nil && s != "" {
		a, err = parseAddress(s)
		return a, true, err
	}
	var o struct {
		AddrCluster, Protocol string
		Port                  uint16
		Scope                 lb.Scope
	}
	if absent(raw) || json.Unmarshal(raw, &o) != nil {
		return lb.Address{}, false, fmt.Errorf("address %.80q: want a string or an object", raw)
	}
	if a, err = addressOf(o.AddrCluster, o.Port, o.Protocol, ""); err != nil {
		return lb.Address{}, false, err
	}
	if o.Scope > lb.Internal {
		return lb.Address{}, false, fmt.Errorf("scope %d: want 0 or 1", o.Scope)
	}
	a.Scope = o.Scope
	return a, false, nil
}

func tableName(raw json.RawMessage) (cluster string, name lb.Name, err error) {
	if absent(raw) {
		return "", lb.Name{}, nil
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return parseName(s)
	}
	var o struct{ Cluster, Namespace, Name string }
	if json.Unmarshal(raw, &o) != nil {
		return "", lb.Name{}, fmt.Errorf("service name %.80q: want a string or an object", raw)
	}
	return o.Cluster, lb.Name{Namespace: o.Namespace, Name: o.Name}, nil
}

// tableZone reads a zone's name (1.18), or the object that holds it beside the
// zones it serves (1.20); "" without.
func tableZone(raw json.RawMessage) string {
	var s string
	if absent(raw) || json.Unmarshal(raw, &s) == nil {
		return s
	}
	var o struct{ Zone string }
	if json.Unmarshal(raw, &o) != nil {
		return ""
	}
	return o.Zone
}

// tableState reads the number of a backend's state. The numbers are the order
// of the constants in Cilium's pkg/loadbalancer, which cilium/cilium#40969 (1.19,
// brought to 1.18 by #42708) changed: it put terminating-not-serving third and
// moved quarantined and maintenance up by one. The JSON names no version. An
// address spelled as a string is 1.20's, so the new order holds; else 2 and 3
// mean one thing or the other, and the state stays untold.
func tableState(raw json.RawMessage, spelled bool) (lb.State, error) {
	if absent(raw) {
		return "", nil
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return lb.State(strings.ToLower(s)), nil
	}
	var n int
	states := []lb.State{lb.Active, lb.Terminating, lb.TerminatingNotServing, lb.Quarantined, lb.Maintenance}
	if json.Unmarshal(raw, &n) != nil || n < 0 || n >= len(states) {
		return "", fmt.Errorf("backend state %.20q: want 0 to 4", raw)
	}
	if (n == 2 || n == 3) && !spelled {
		return "", nil
	}
	return states[n], nil
}
