package lb

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
)

// endpoints are those behind one Service port in one family, over all slices.
type endpoints struct {
	members []member // sorted by address, each once
	// all is what a node holds that filters nothing; most nodes share it.
	all []Entry
	// cause and reason say why all has nothing that must be there.
	cause  Cause
	reason string
}

// member is an endpoint with the conditions that decide its state.
type member struct {
	backend Backend
	ready   bool // includes publishNotReadyAddresses: the API says ready then
	serving bool
	leaving bool
	mute    string // why it may be left out whatever its conditions, or ""
	zones   []string
	nodes   []string
}

// rank orders reports of one endpoint, the best being the highest: slices
// overlap while an endpoint moves from one to another.
func (m member) rank() int {
	switch {
	case m.mute != "":
		return 0
	case m.ready:
		return 3
	case m.serving:
		return 2
	}
	return 1
}

// joiner joins the slices of one Service to its ports.
type joiner struct {
	slices     []discoveryv1.EndpointSlice
	unmirrored int // addresses in an Endpoints object
	selector   map[string]string
}

// The operator gives Gateway and Ingress Services this endpoint, so that they
// have one. It is not meant to be reached, and from 1.18 on not kept.
var placeholder = netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 192, 192, 192}), 9999)

// join is a union over all slices: one endpoint may come in several, with
// different ports.
func (j joiner) join(p port, f family) endpoints {
	var e endpoints
	names := map[string]bool{}
	dummy, some := false, false
	for i := range j.slices {
		s := &j.slices[i]
		if !ofFamily(s.AddressType, f) {
			continue
		}
		some = some || len(s.Endpoints) > 0
		for _, sp := range s.Ports {
			number, mute, ok := joined(p, sp)
			if !ok {
				if sp.Port != nil && protocolOf(sp) == p.protocol {
					names[nameOf(sp)] = true
				}
				continue
			}
			e.members = slices.Grow(e.members, len(s.Endpoints))
			for k := range s.Endpoints {
				e.members = appendMembers(e.members, &s.Endpoints[k], number, p.protocol, mute)
			}
		}
	}
	e.members = slices.DeleteFunc(e.members, func(m member) bool {
		d := netip.AddrPortFrom(m.backend.Address.IP, m.backend.Address.Port) == placeholder
		dummy = dummy || d
		return d
	})
	slices.SortStableFunc(e.members, func(a, b member) int {
		return cmp.Or(a.backend.Address.Compare(b.backend.Address), cmp.Compare(b.rank(), a.rank()), cmp.Compare(a.backend.Node, b.backend.Node))
	})
	e.members = slices.CompactFunc(e.members, func(a, b member) bool { return a.backend.Address == b.backend.Address })
	e.all = entriesOf(e.members)
	if !slices.ContainsFunc(e.all, func(e Entry) bool { return e.Optional == "" }) {
		e.cause, e.reason = j.why(p, f, e, names, dummy, some)
	} else if !slices.ContainsFunc(e.members, func(m member) bool { return m.ready && m.mute == "" }) {
		e.cause, e.reason = AllDraining, "no endpoint is ready; those that terminate and still serve are used"
	}
	return e
}

// joined tells whether a slice port stands behind a Service port: by name and
// protocol. Agents from 1.18 on also join where one of the two is unnamed;
// Kubernetes does not, so such an endpoint is optional.
func joined(p port, sp discoveryv1.EndpointPort) (number uint16, mute string, ok bool) {
	if sp.Port == nil || *sp.Port <= 0 || *sp.Port > 65535 || protocolOf(sp) != p.protocol {
		return 0, "", false
	}
	number = uint16(*sp.Port)
	switch name := nameOf(sp); {
	case name == p.name:
		return number, "", true
	case name == "" || p.name == "":
		return number, fmt.Sprintf("slice port %q does not join Service port %q by name", name, p.name), true
	}
	return 0, "", false
}

func nameOf(p discoveryv1.EndpointPort) string {
	if p.Name == nil {
		return ""
	}
	return *p.Name
}

func protocolOf(p discoveryv1.EndpointPort) Protocol {
	if p.Protocol == nil {
		return TCP
	}
	return Protocol(strings.ToUpper(string(*p.Protocol)))
}

func ofFamily(t discoveryv1.AddressType, f family) bool {
	return f == v4 && t == discoveryv1.AddressTypeIPv4 || f == v6 && t == discoveryv1.AddressTypeIPv6
}

func appendMembers(ms []member, e *discoveryv1.Endpoint, number uint16, p Protocol, mute string) []member {
	// An absent ready means ready, an absent serving means as ready, an
	// absent terminating means no.
	told := func(b *bool, otherwise bool) bool {
		if b == nil {
			return otherwise
		}
		return *b
	}
	m := member{mute: mute, ready: told(e.Conditions.Ready, true), leaving: told(e.Conditions.Terminating, false)}
	m.serving = told(e.Conditions.Serving, m.ready)
	if h := e.Hints; h != nil {
		for _, z := range h.ForZones {
			m.zones = append(m.zones, z.Name)
		}
		for _, n := range h.ForNodes {
			m.nodes = append(m.nodes, n.Name)
		}
	}
	if e.NodeName != nil {
		m.backend.Node = *e.NodeName
	}
	if e.Zone != nil {
		m.backend.Zone = *e.Zone
	}
	for _, s := range e.Addresses {
		ip, err := netip.ParseAddr(s)
		if err != nil {
			continue
		}
		m.backend.Address = Address{IP: ip.Unmap(), Port: number, Protocol: p}
		ms = append(ms, m)
	}
	return ms
}

// entriesOf says what an agent holds of these endpoints: ready ones are active
// and must be there; while there is any, those that terminate may stay to
// finish their connections; without, those that still serve must be there.
func entriesOf(ms []member) []Entry {
	if len(ms) == 0 {
		return nil
	}
	anyReady := slices.ContainsFunc(ms, func(m member) bool { return m.ready && m.mute == "" })
	es := make([]Entry, len(ms))
	for i, m := range ms {
		e := Entry{Backend: m.backend, Optional: m.mute}
		switch {
		case m.ready:
			e.State = Active
		case m.leaving && m.serving:
			e.State = Terminating
			if anyReady {
				e.Optional = cmp.Or(e.Optional, "terminating; it still serves the connections it has")
			}
		case m.leaving:
			e.State = TerminatingNotServing
			e.Optional = cmp.Or(e.Optional, "terminating and no longer serving")
		default:
			// Agents from 1.18 on keep it, in maintenance and out of the map.
			e.State = Maintenance
			e.Optional = cmp.Or(e.Optional, "not ready")
		}
		es[i] = e
	}
	return es
}

// withoutDraining is for agents that drop terminating backends at once.
func withoutDraining(es []Entry) []Entry {
	es = slices.Clone(es)
	for i := range es {
		if es[i].State == Terminating && es[i].Optional == "" {
			es[i].Optional = "terminating; this version drops such backends"
		}
	}
	return es
}

// why explains endpoints of which none must be there.
func (j joiner) why(p port, f family, e endpoints, names map[string]bool, dummy, some bool) (Cause, string) {
	other := v6
	if f == v6 {
		other = v4
	}
	switch {
	case dummy:
		return Placeholder, "the only endpoint is a placeholder; the node's Envoy answers"
	case len(j.slices) == 0 && j.unmirrored > 0:
		return NoSlice, fmt.Sprintf("the Service has no EndpointSlice, though its Endpoints have %s; Cilium reads EndpointSlices", addresses(j.unmirrored))
	case len(j.slices) == 0 && len(j.selector) == 0:
		return NoSlice, "the Service has no selector and no EndpointSlice"
	case len(j.slices) == 0:
		return NoSlice, "the Service has no EndpointSlice"
	case !some && j.has(other):
		return FamilyMissing, fmt.Sprintf("the Service has endpoints in %s only, none in %s", other, f)
	case !some:
		return NoEndpoints, "no pod or address is behind the Service"
	case slices.ContainsFunc(e.members, func(m member) bool { return m.mute != "" }):
		return PortNames, e.members[slices.IndexFunc(e.members, func(m member) bool { return m.mute != "" })].mute
	case len(e.members) == 0 && len(names) > 0:
		quoted := slices.Sorted(maps.Keys(names))
		for i := range quoted {
			quoted[i] = fmt.Sprintf("%q", quoted[i])
		}
		return PortNames, fmt.Sprintf("Service port %q (%d/%s) is in no slice; the slices have %s", p.name, p.number, p.protocol, strings.Join(quoted, ", "))
	case len(e.members) == 0:
		return PortNames, fmt.Sprintf("no slice has a %s port for Service port %q (%d)", p.protocol, p.name, p.number)
	}
	return NoneReady, fmt.Sprintf("none of %d endpoints is ready", len(e.members))
}

func addresses(n int) string {
	if n == 1 {
		return "1 address"
	}
	return fmt.Sprintf("%d addresses", n)
}

func (j joiner) has(f family) bool {
	return slices.ContainsFunc(j.slices, func(s discoveryv1.EndpointSlice) bool {
		return ofFamily(s.AddressType, f) && len(s.Endpoints) > 0
	})
}
