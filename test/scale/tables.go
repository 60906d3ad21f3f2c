package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// held is what one agent and its maps hold, in the forms in which its commands
// print it.
type held struct {
	serviceList, mapList, mapFrontends, mapRanges, mapBackends []byte
	mapsDump, frontendsTable                                   []byte
}

// damage is what differs on a node from what it should hold.
type damage struct {
	// lost is a backend that is missing in the backend map, 0 for none.
	lost int
	// stale is a Service whose first backend is an address that no endpoint has.
	stale int
}

// frontend is a row of all tables of a node.
type frontend struct {
	id       int
	address  string
	kind     string
	flags    []string // as bpf lb list prints them, without the kind
	service  *service
	backends []backend
	surface  bool // in the agent's list: all but the node's own address and wildcards
}

func (w world) frontends(list []service, node int) []frontend {
	var fs []frontend
	for i := range list {
		s := &list[i]
		f := frontend{service: s, kind: "ClusterIP", id: s.frontendIDs[0], surface: true}
		for _, b := range s.backends {
			if !s.local || b.node == node {
				f.backends = append(f.backends, b)
			}
		}
		if s.local && s.nodePort > 0 {
			f.flags = append(f.flags, "Local")
		}
		if s.local {
			f.flags = append(f.flags, "InternalLocal")
		}
		if s.affinity {
			f.flags = append(f.flags, "sessionAffinity")
		}
		wild := frontend{kind: "ClusterIP", address: s.clusterIP.String() + ":0/ANY", flags: []string{"non-routable"}}
		cluster := f
		cluster.address, cluster.flags = s.clusterIP.String()+":80/TCP", append(cluster.flags[:len(f.flags):len(f.flags)], "non-routable")
		fs = append(fs, wild, cluster)
		if s.nodePort == 0 {
			continue
		}
		f.kind, f.id, f.address = "NodePort", s.frontendIDs[1], fmt.Sprintf("0.0.0.0:%d/TCP", s.nodePort)
		own := f
		f.flags = append(f.flags[:len(f.flags):len(f.flags)], "non-routable")
		own.id, own.address, own.surface = s.frontendIDs[2], fmt.Sprintf("%s:%d/TCP", nodeIP(node), s.nodePort), false
		fs = append(fs, f, own)
	}
	return fs
}

// hold prints what a node holds.
func (w world) hold(list []service, node int, d damage) held {
	fs := w.frontends(list, node)
	if d.stale > 0 {
		for i := range fs {
			if f := &fs[i]; f.service != nil && f.service.number == d.stale && len(f.backends) > 0 {
				f.backends = append([]backend(nil), f.backends...)
				f.backends[0].ip = f.backends[0].ip.Prev().Prev()
			}
		}
	}
	return held{
		serviceList: serviceList(fs), mapList: mapList(fs, d.lost), mapFrontends: mapFrontends(fs), mapRanges: []byte("{}\n"),
		mapBackends: mapBackends(list, d.lost), mapsDump: mapsDump(list, fs, d.lost), frontendsTable: frontendsTable(fs),
	}
}

// The agent's API as its command line prints it, as far as it is needed.
type (
	spec struct {
		BackendAddresses []listed `json:"backend-addresses,omitempty"`
		Flags            flags    `json:"flags"`
		FrontendAddress  address  `json:"frontend-address"`
		ID               int      `json:"id"`
	}
	listed struct {
		IP        string `json:"ip"`
		NodeName  string `json:"nodeName"`
		Port      uint16 `json:"port"`
		Preferred bool   `json:"preferred"`
		Protocol  string `json:"protocol"`
		State     string `json:"state"`
		Weight    int    `json:"weight"`
	}
	flags struct {
		ExtTrafficPolicy string `json:"extTrafficPolicy"`
		IntTrafficPolicy string `json:"intTrafficPolicy"`
		Name             string `json:"name"`
		Namespace        string `json:"namespace"`
		TrafficPolicy    string `json:"trafficPolicy"`
		Type             string `json:"type"`
	}
	address struct {
		IP       string `json:"ip"`
		Port     uint16 `json:"port"`
		Protocol string `json:"protocol"`
		Scope    string `json:"scope"`
	}
)

func serviceList(fs []frontend) []byte {
	type realized struct {
		Realized *spec `json:"realized"`
	}
	type entry struct {
		Spec   *spec    `json:"spec"`
		Status realized `json:"status"`
	}
	out := []entry{}
	for _, f := range fs {
		if !f.surface {
			continue
		}
		policy := func(local bool) string {
			if local {
				return "Local"
			}
			return "Cluster"
		}
		external := policy(f.service.local && f.service.nodePort > 0)
		ip, port := "0.0.0.0", uint16(f.service.nodePort)
		if f.kind == "ClusterIP" {
			ip, port = f.service.clusterIP.String(), 80
		}
		sp := &spec{ID: f.id,
			FrontendAddress: address{IP: ip, Port: port, Protocol: "TCP", Scope: "external"},
			Flags: flags{ExtTrafficPolicy: external, TrafficPolicy: external, IntTrafficPolicy: policy(f.service.local),
				Name: f.service.name, Namespace: f.service.namespace, Type: f.kind},
		}
		for _, b := range f.backends {
			sp.BackendAddresses = append(sp.BackendAddresses, listed{IP: b.ip.String(), NodeName: nodeName(b.node), Port: 8080,
				Preferred: true, Protocol: "TCP", State: "active", Weight: 100})
		}
		out = append(out, entry{sp, realized{sp}})
	}
	data, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		panic(err) // plain values always have a JSON form
	}
	return append(data, '\n')
}

// rows prints the object of arrays that `bpf lb list -o json` is.
type rows struct{ bytes.Buffer }

func (r *rows) add(key, value string) {
	if r.Len() > 0 {
		r.WriteString(",\n")
	}
	_, _ = fmt.Fprintf(r, "  %q: [\n    %q\n  ]", key, value)
}

func (r *rows) done() []byte { return []byte("{\n" + r.String() + "\n}\n") }

func mapList(fs []frontend, lost int) []byte {
	var r rows
	for _, f := range fs {
		flags := strings.Join(append([]string{f.kind}, f.flags...), ", ")
		r.add(f.address+" (0)", fmt.Sprintf("0.0.0.0:0 (%d) (0) [%s] ", f.id, flags))
		for k, b := range f.backends {
			row := fmt.Sprintf("%s:8080/TCP (%d) (%d)", b.ip, f.id, k+1)
			if b.id == lost {
				row = fmt.Sprintf("backend %d not found", b.id)
			}
			r.add(fmt.Sprintf("%s (%d)", f.address, k+1), row)
		}
	}
	return r.done()
}

func (f frontend) timeout() int {
	if f.service != nil && f.service.affinity {
		return affinitySeconds
	}
	return 0
}

func mapFrontends(fs []frontend) []byte {
	var r rows
	for _, f := range fs {
		bits, more := 0, 0
		if f.kind == "NodePort" {
			bits |= 2
		}
		if f.service != nil && f.service.local {
			more = 0x10
		}
		r.add(f.address+" (0)", fmt.Sprintf("%d %d[0] (%d) [0x%x 0x%x]", f.timeout(), len(f.backends), f.id, bits, more))
		for k, b := range f.backends {
			r.add(fmt.Sprintf("%s (%d)", f.address, k+1), fmt.Sprintf("%d 0[0] (%d) [0x%x 0x%x]", b.id, f.id, bits, more))
		}
	}
	return r.done()
}

func mapBackends(list []service, lost int) []byte {
	var r rows
	for _, s := range list {
		for _, b := range s.backends {
			if b.id != lost {
				r.add(fmt.Sprint(b.id), "TCP://"+b.ip.String())
			}
		}
	}
	return r.done()
}

func mapsDump(list []service, fs []frontend, lost int) []byte {
	var out bytes.Buffer
	for _, s := range list {
		for _, b := range s.backends {
			if b.id != lost {
				fmt.Fprintf(&out, "BE: ID=%d ADDR=%s:8080/TCP STATE=active\n", b.id, b.ip)
			}
		}
	}
	for _, f := range fs {
		if f.id > 0 {
			fmt.Fprintf(&out, "REV: ID=%d ADDR=%s\n", f.id, strings.TrimSuffix(f.address, "/TCP"))
		}
	}
	for _, f := range fs {
		flags := strings.Join(append([]string{f.kind}, f.flags...), "+")
		fmt.Fprintf(&out, "SVC: ID=%d ADDR=%s SLOT=0 LBALG=undef AFFTimeout=%d COUNT=%d QCOUNT=0 FLAGS=%s\n", f.id, f.address, f.timeout(), len(f.backends), flags)
		for k, b := range f.backends {
			fmt.Fprintf(&out, "SVC: ID=%d ADDR=%s SLOT=%d BEID=%d COUNT=0 QCOUNT=0 FLAGS=%s\n", f.id, f.address, k+1, b.id, flags)
		}
	}
	return out.Bytes()
}

// frontendsTable is `db/show frontends`, which names five backends of a
// frontend and counts the others.
func frontendsTable(fs []frontend) []byte {
	var out bytes.Buffer
	format := "%-26s  %-10s  %-20s  %-9s  %-125s  %-11s  %-7s  %-6s  %s\n"
	fmt.Fprintf(&out, format, "Address", "Type", "ServiceName", "PortName", "Backends", "RedirectTo", "Status", "Since", "Error")
	for _, f := range fs {
		if !f.surface {
			continue
		}
		var bs []string
		for _, b := range f.backends[:min(5, len(f.backends))] {
			bs = append(bs, b.ip.String()+":8080/TCP")
		}
		cell := strings.Join(bs, ", ")
		if more := len(f.backends) - len(bs); more > 0 {
			cell += fmt.Sprintf(" + %d more ...", more)
		}
		fmt.Fprintf(&out, format, f.address, f.kind, f.service.namespace+"/"+f.service.name, "http", cell, "", "Done", "21m", "")
	}
	return out.Bytes()
}
