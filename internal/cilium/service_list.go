package cilium

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/cilium/api/v1/models"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// RemoteCluster is the Cluster of a frontend that the text form of `service
// list` marks as another cluster's, whose name it does not print. It cannot be
// mistaken for a name: these hold no parentheses.
const RemoteCluster = "(Remote)"

// DecodeServiceListText reads `service list` of Cilium 1.9 to 1.20: rows of id,
// frontend, type and first backend, and one further row per further backend.
// Protocols are printed from 1.17 on, states from 1.11 on, "/i" marks internal
// scope. The frontends come sorted by address, their backends as printed.
//
// Gaps are reported as *DecodeErrors together with what could be read.
func DecodeServiceListText(data []byte) ([]lb.Frontend, error) {
	fs, a := serviceListText(data)
	return fs, a.err()
}

func serviceListText(data []byte) ([]lb.Frontend, *answer) {
	a := newAnswer("service list", data)
	var fs []lb.Frontend
	current := -1 // index of the frontend that further rows belong to
	for line, ok := a.next(); ok; line, ok = a.next() {
		switch word, _ := cutWord(line); {
		case word == "ID" && strings.Contains(line, "Frontend"):
			a.header()
			current = -1
		case isBackendCell(line):
			b, err := parseBackendCell(line)
			if err == nil && current < 0 {
				err = fmt.Errorf("backend without a frontend")
			}
			if err != nil {
				a.fail(err.Error())
				continue
			}
			fs[current].Backends = append(fs[current].Backends, b)
			a.entry()
		default:
			f, err := parseFrontendRow(line)
			if err != nil {
				current = -1
				a.fail(err.Error())
				continue
			}
			fs = append(fs, f)
			current = len(fs) - 1
			a.entry()
		}
	}
	sortFrontends(fs)
	return fs, a
}

func sortFrontends(fs []lb.Frontend) {
	slices.SortStableFunc(fs, func(a, b lb.Frontend) int {
		return cmp.Or(a.Address.Compare(b.Address), cmp.Compare(a.ID, b.ID))
	})
}

// isBackendCell holds for "1 => 10.0.0.1:80 (active)".
func isBackendCell(s string) bool {
	_, rest := cutWord(s)
	return strings.HasPrefix(rest, "=> ")
}

// parseFrontendRow goes by the words, not by the columns: their widths follow
// the longest cell, and people shorten the blanks when they paste.
func parseFrontendRow(line string) (lb.Frontend, error) {
	id, rest := cutWord(line)
	n, err := parseCount(id)
	if err != nil {
		return lb.Frontend{}, fmt.Errorf("frontend id %w", err)
	}
	address, rest := cutWord(rest)
	f := lb.Frontend{ID: n}
	if f.Address, err = parseAddress(address); err != nil {
		return lb.Frontend{}, err
	}
	f.Type, rest = cutWord(rest)
	if f.Type == "" {
		return lb.Frontend{}, fmt.Errorf("frontend without a service type")
	}
	if after, ok := strings.CutPrefix(rest, RemoteCluster); ok {
		f.Cluster, rest = RemoteCluster, strings.TrimLeft(after, " \t")
	}
	switch {
	case rest == "":
		return f, nil
	case !isBackendCell(rest):
		return lb.Frontend{}, fmt.Errorf("neither a backend nor the end of the row after type %s", f.Type)
	}
	b, err := parseBackendCell(rest)
	if err != nil {
		return lb.Frontend{}, err
	}
	f.Backends = []lb.Backend{b}
	return f, nil
}

// parseBackendCell reads "1 => ADDRESS[ (state)][ (preferred)]".
func parseBackendCell(s string) (lb.Backend, error) {
	number, rest := cutWord(s)
	if _, err := parseCount(number); err != nil {
		return lb.Backend{}, fmt.Errorf("backend number %w", err)
	}
	arrow, rest := cutWord(rest)
	if arrow != "=>" {
		return lb.Backend{}, fmt.Errorf("backend %s without =>", number)
	}
	return parseBackend(rest)
}

// parseBackend reads "ADDRESS[ (state)][ (preferred)]".
func parseBackend(s string) (lb.Backend, error) {
	address, rest := cutWord(s)
	var b lb.Backend
	var err error
	if b.Address, err = parseAddress(address); err != nil {
		return lb.Backend{}, err
	}
	for rest != "" {
		var note string
		note, rest = cutWord(rest)
		if len(note) < 3 || note[0] != '(' || note[len(note)-1] != ')' {
			return lb.Backend{}, fmt.Errorf("backend %s is followed by %q", address, note)
		}
		if note = note[1 : len(note)-1]; note == "preferred" {
			b.Preferred = true
		} else {
			b.State = lb.State(note)
		}
	}
	return b, nil
}

// DecodeServiceListJSON reads `service list -o json`: an array of services of
// the agent's API. What the agent has realised counts, what was asked of it
// only where it realised nothing. Sorted as by DecodeServiceListText.
//
// The models of 1.20 read all versions: fields were added, and those that were
// dropped say nothing of load balancing.
func DecodeServiceListJSON(data []byte) ([]lb.Frontend, error) {
	d, err := openDocument("service list", data)
	if d == nil {
		return nil, err
	}
	fs := []lb.Frontend{}
	err = d.list(func(line int, raw json.RawMessage) {
		if f, ok := d.frontend(line, raw); ok {
			fs = append(fs, f)
		}
	})
	sortFrontends(fs)
	return fs, err
}

// frontend takes a service as a whole, and in parts if it has fields of a wrong
// type: such a field must cost its part only, and must not give a backend the
// port 0.
func (d *document) frontend(line int, raw json.RawMessage) (lb.Frontend, bool) {
	var m models.Service
	if absent(raw) || json.Unmarshal(raw, &m) != nil {
		var ok bool
		if m, ok = d.serviceInParts(line, raw); !ok {
			return lb.Frontend{}, false
		}
	}
	spec := m.Spec
	if m.Status != nil && m.Status.Realized != nil {
		spec = m.Status.Realized
	}
	if spec == nil || spec.FrontendAddress == nil {
		d.errs.add(line, string(raw), "service without a frontend address")
		return lb.Frontend{}, false
	}
	f := lb.Frontend{ID: int(spec.ID)}
	var err error
	a := spec.FrontendAddress
	if f.Address, err = addressOf(a.IP, a.Port, a.Protocol, a.Scope); err != nil {
		d.errs.add(line, string(raw), err.Error())
		return lb.Frontend{}, false
	}
	if spec.Flags != nil {
		setFlags(&f, spec.Flags)
	}
	for _, m := range spec.BackendAddresses {
		b, err := backendOf(m)
		if err != nil {
			d.errs.add(line, string(raw), err.Error())
			continue
		}
		f.Backends = append(f.Backends, b)
	}
	return f, true
}

type specParts struct {
	ID       json.RawMessage
	Frontend json.RawMessage   `json:"frontend-address"`
	Backends []json.RawMessage `json:"backend-addresses"`
	Flags    json.RawMessage
}

// serviceInParts reads a service that cannot be read at once, and reports why.
// Backends that cannot be read are left out.
func (d *document) serviceInParts(line int, raw json.RawMessage) (models.Service, bool) {
	var parts struct {
		Spec   *specParts
		Status struct{ Realized *specParts }
	}
	if !d.into(line, raw, &parts) {
		return models.Service{}, false
	}
	p := cmp.Or(parts.Status.Realized, parts.Spec)
	if p == nil {
		d.errs.add(line, string(raw), "service without a spec")
		return models.Service{}, false
	}
	spec := &models.ServiceSpec{FrontendAddress: &models.FrontendAddress{}, Flags: &models.ServiceSpecFlags{}}
	if !d.into(line, p.Frontend, spec.FrontendAddress) {
		return models.Service{}, false
	}
	d.optional(line, p.ID, &spec.ID)
	d.optional(line, p.Flags, spec.Flags)
	for _, raw := range p.Backends {
		var m models.BackendAddress
		if d.into(line, raw, &m) {
			spec.BackendAddresses = append(spec.BackendAddresses, &m)
		}
	}
	return models.Service{Spec: spec}, true
}

func setFlags(f *lb.Frontend, m *models.ServiceSpecFlags) {
	f.Type = m.Type
	f.Service = lb.Name{Namespace: m.Namespace, Name: m.Name}
	f.Cluster = m.Cluster
	// trafficPolicy is the only policy up to 1.12 and means the external one.
	f.External = cmp.Or(m.ExtTrafficPolicy, m.TrafficPolicy)
	f.Internal = m.IntTrafficPolicy
	f.HealthCheckNodePort = int(m.HealthCheckNodePort)
	if m.NatPolicy != models.ServiceSpecFlagsNatPolicyNone {
		f.NAT = m.NatPolicy
	}
}

func addressOf(ip string, port uint16, protocol, scope string) (lb.Address, error) {
	a := lb.Address{Port: port}
	var err error
	if a.IP, err = parseIP(ip); err != nil {
		return lb.Address{}, err
	}
	if a.Protocol, err = lb.ParseProtocol(protocol); err != nil {
		return lb.Address{}, err
	}
	switch scope {
	case "", models.FrontendAddressScopeExternal:
	case models.FrontendAddressScopeInternal:
		a.Scope = lb.Internal
	default:
		return lb.Address{}, fmt.Errorf("scope %q: want external or internal", scope)
	}
	return a, nil
}

func backendOf(m *models.BackendAddress) (lb.Backend, error) {
	if m == nil || m.IP == nil {
		return lb.Backend{}, fmt.Errorf("backend without an address")
	}
	address, err := addressOf(*m.IP, m.Port, m.Protocol, "")
	if err != nil {
		return lb.Backend{}, err
	}
	b := lb.Backend{Address: address, State: lb.State(m.State), Node: m.NodeName, Zone: m.Zone, Preferred: m.Preferred}
	if m.Weight != nil {
		b.Weight = int(*m.Weight)
	}
	return b, nil
}
