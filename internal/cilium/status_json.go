package cilium

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/cilium/cilium/api/v1/models"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
)

// DecodeStatusJSON reads `status -o json`, and `cilium-status` of a debuginfo
// file. Every part of the status is decoded on its own, so that a field of an
// unexpected type costs that part only; the error then is *DecodeErrors.
//
// Booleans that are false are left out of this JSON. Absent therefore means Off
// where the object around it is there, and NotTold where it is not.
func DecodeStatusJSON(data []byte) (*agent.Status, error) {
	d, err := openDocument("status", data)
	if err != nil {
		return nil, err
	}
	if d == nil {
		return nil, fmt.Errorf("status: %w", ErrEmpty)
	}
	parts := map[string]part{}
	err = d.object(func(line int, key string, raw json.RawMessage) { parts[key] = part{line, raw} })
	if !knowsAny(parts) {
		d.errs.add(0, "", "the JSON has no part of a status")
		return nil, d.err()
	}
	s := newStatus()
	j := statusJSON{d, parts, s}
	j.health()
	j.controllers()
	j.replacement()
	j.routing()
	j.masquerade()
	j.ipam()
	settle(s)
	if len(d.errs.Errors) > 0 {
		return s, d.err()
	}
	return s, err
}

// part is one top-level member of the status.
type part struct {
	line int
	raw  json.RawMessage
}

func knowsAny(parts map[string]part) bool {
	for _, key := range []string{"cilium", "kubernetes", "kvstore", "kube-proxy-replacement", "controllers"} {
		if _, ok := parts[key]; ok {
			return true
		}
	}
	return false
}

type statusJSON struct {
	d     *document
	parts map[string]part
	s     *agent.Status
}

// read decodes a part into v, as far as it can be; false where it is absent.
func (j statusJSON) read(key string, v any) bool {
	p := j.parts[key]
	j.d.optional(p.line, p.raw, v)
	return !absent(p.raw)
}

func (j statusJSON) health() {
	var m models.Status
	if j.read("cilium", &m) {
		j.s.Cilium = component(m.State, m.Msg)
	}
	m = models.Status{}
	if j.read("kvstore", &m) {
		j.s.KVStore = component(m.State, m.Msg)
	}
	var k models.K8sStatus
	if j.read("kubernetes", &k) {
		j.s.Kubernetes = component(k.State, k.Msg)
		j.s.APIs = k.K8sAPIVersions
	}
	var e models.EncryptionStatus
	if j.read("encryption", &e) {
		j.s.Encryption = e.Mode
	}
	var maps models.BPFMapStatus
	j.read("bpf-maps", &maps)
	for _, m := range maps.Maps {
		if m != nil {
			j.s.Maps = append(j.s.Maps, agent.MapSize{Name: m.Name, Size: int(m.Size)})
		}
	}
}

func (j statusJSON) controllers() {
	p := j.parts["controllers"]
	var all []json.RawMessage
	j.d.optional(p.line, p.raw, &all)
	j.s.Controllers = len(all)
	for _, raw := range all {
		var m struct {
			Name   string
			Status *struct {
				Failures int    `json:"consecutive-failure-count"`
				Message  string `json:"last-failure-msg"`
			}
		}
		if j.d.into(p.line, raw, &m) && m.Status != nil && m.Status.Failures > 0 {
			j.s.FailedControllers = append(j.s.FailedControllers,
				agent.Controller{Name: m.Name, Failures: m.Status.Failures, Error: strings.TrimSpace(m.Status.Message)})
		}
	}
}

func (j statusJSON) replacement() {
	var m models.KubeProxyReplacement
	if !j.read("kube-proxy-replacement", &m) {
		return
	}
	line := j.parts["kube-proxy-replacement"].line
	if err := setMode(j.s, m.Mode); err != nil {
		j.d.errs.add(line, m.Mode, err.Error())
	}
	if m.Features != nil {
		j.features(m.Features)
	}
	// Without NodePort the agent balances on no device, and the text form lists
	// none; the list is there all the same.
	if j.s.Mode != agent.ModeFalse || j.s.NodePort == agent.On {
		j.s.Devices = j.devices(line, &m)
		j.s.DirectRouting = m.DirectRoutingDevice
	}
}

// devices takes the list with addresses, which 1.10 added, else the names.
func (j statusJSON) devices(line int, m *models.KubeProxyReplacement) []agent.Device {
	var ds []agent.Device
	for _, item := range m.DeviceList {
		if item == nil {
			continue
		}
		ips, err := parseAddresses(item.IP)
		if err != nil {
			j.d.errs.add(line, item.Name, err.Error())
		}
		ds = append(ds, agent.Device{Name: item.Name, Addresses: ips, Direct: item.Name == m.DirectRoutingDevice})
	}
	if len(m.DeviceList) == 0 {
		for _, name := range m.Devices {
			ds = append(ds, agent.Device{Name: name, Direct: name == m.DirectRoutingDevice})
		}
	}
	return ds
}

func (j statusJSON) features(f *models.KubeProxyReplacementFeatures) {
	s := j.s
	// No version can switch the ClusterIP balancing off, and none reports it.
	s.ClusterIP = agent.On
	if f.SocketLB != nil {
		s.SocketLB = agent.Of(f.SocketLB.Enabled)
		s.SocketLBHostOnly = agent.Of(f.BpfSocketLBHostnsOnly)
	}
	if h := f.HostReachableServices; h != nil { // socketLB up to 1.11
		s.SocketLBProtos = h.Protocols
		if f.SocketLB == nil {
			s.SocketLB = agent.Of(h.Enabled)
		}
	}
	if f.SocketLBTracing != nil {
		s.SocketLBTracing = agent.Of(f.SocketLBTracing.Enabled)
	}
	if f.SessionAffinity != nil {
		s.Affinity = agent.Of(f.SessionAffinity.Enabled)
	}
	if f.GracefulTermination != nil {
		s.Graceful = agent.Of(f.GracefulTermination.Enabled)
	}
	if f.Nat46X64 != nil {
		s.NAT46 = agent.Of(f.Nat46X64.Enabled)
	}
	if f.ExternalIPs != nil {
		s.ExternalIPs = agent.Of(f.ExternalIPs.Enabled)
	}
	if f.HostPort != nil {
		s.HostPort = agent.Of(f.HostPort.Enabled)
	}
	s.Annotations = f.Annotations
	j.nodePort(f.NodePort)
}

func (j statusJSON) nodePort(np *models.KubeProxyReplacementFeaturesNodePort) {
	if np == nil {
		return
	}
	s := j.s
	s.NodePort = agent.Of(np.Enabled)
	s.LoadBalancer = s.NodePort // one switch for both; only the text names the second
	if !np.Enabled {
		return
	}
	s.NodePortMin, s.NodePortMax = int(np.PortMin), int(np.PortMax)
	s.LBMode, s.XDP, s.Algorithm = np.Mode, np.Acceleration, np.Algorithm
	if np.Algorithm == models.KubeProxyReplacementFeaturesNodePortAlgorithmMaglev {
		s.MaglevSize = int(np.LutSize)
	}
	// dsrMode is filled in whatever the mode is; with SNAT nothing is dispatched.
	switch np.Mode {
	case models.KubeProxyReplacementFeaturesNodePortModeDSR, models.KubeProxyReplacementFeaturesNodePortModeHybrid:
		s.DSRDispatch = np.DsrMode
	}
}

func (j statusJSON) routing() {
	var r models.Routing
	if j.read("routing", &r) {
		j.s.NetworkRouting = r.InterHostRoutingMode
		if r.InterHostRoutingMode == models.RoutingInterHostRoutingModeTunnel {
			j.s.TunnelProtocol = r.TunnelProtocol
		}
		j.s.HostRouting = r.IntraHostRoutingMode
	}
	var old struct{ Mode string } // up to 1.15
	if j.read("host-routing", &old) && j.s.HostRouting == "" {
		j.s.HostRouting = old.Mode
	}
	var mode string
	j.read("attach-mode", &mode)
	j.s.AttachMode = attachMode(mode)
	j.read("datapath-mode", &j.s.DatapathMode)
}

func (j statusJSON) masquerade() {
	var m models.Masquerading
	if !j.read("masquerading", &m) {
		return
	}
	to := &j.s.Masquerade
	if p := m.EnabledProtocols; p != nil {
		to.IPv4, to.IPv6 = agent.Of(p.IPv4), agent.Of(p.IPv6)
	} else if !m.Enabled {
		to.IPv4, to.IPv6 = agent.Off, agent.Off
	}
	if to.IPv4 == agent.Off && to.IPv6 == agent.Off {
		to.Mode = "Disabled"
		return
	}
	to.Mode = m.Mode
	line := j.parts["masquerading"].line
	cidrs := []string{m.SnatExclusionCidrV4, m.SnatExclusionCidrV6}
	if cidrs[0] == "" && cidrs[1] == "" { // up to 1.9 there is one field
		cidrs = []string{m.SnatExclusionCidr}
	}
	for _, cidr := range cidrs {
		if cidr == "" {
			continue
		}
		p, err := parsePrefix(cidr)
		if err != nil {
			j.d.errs.add(line, cidr, err.Error())
			continue
		}
		to.Exclude = append(to.Exclude, p)
	}
	if m.Mode != models.MasqueradingModeBPF {
		return
	}
	// BPF masquerading runs on the devices of the replacement, and the
	// ip-masq-agent works with BPF only.
	to.Agent = agent.Of(m.IPMasqAgent)
	to.Devices = j.deviceNames()
}

func (j statusJSON) deviceNames() []string {
	var m struct {
		DeviceList []struct{ Name string }
		Devices    []string
	}
	if absent(j.parts["kube-proxy-replacement"].raw) || json.Unmarshal(j.parts["kube-proxy-replacement"].raw, &m) != nil {
		return nil
	}
	var names []string
	for _, d := range m.DeviceList {
		names = append(names, d.Name)
	}
	if len(names) == 0 {
		return m.Devices
	}
	return names
}
