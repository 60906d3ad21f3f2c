package netfilter

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// VirtualServer is a virtual server of IPVS.
type VirtualServer struct {
	Proto   string         // "tcp"; "" for one by mark
	Address netip.AddrPort // the zero value for one by mark
	Targets []netip.AddrPort
}

// DecodeIPVS reads `ipvsadm -Ln`, `ipvsadm --save -n` and /proc/net/ip_vs,
// which writes IPv4 addresses and ports in hexadecimal. Names in place of
// addresses, as without -n, are named in the error.
func DecodeIPVS(data []byte) ([]VirtualServer, error) {
	var out []VirtualServer
	var bad []int
	line := 0
	for text := range strings.Lines(string(data)) {
		line++
		f := strings.Fields(text)
		if len(f) == 0 || f[0] == "IP" || f[0] == "Prot" || f[0][0] == '#' {
			continue
		}
		switch {
		case f[0] == "->" && len(f) > 1 && f[1] == "RemoteAddress:Port":
		case f[0] == "->" && len(f) > 1:
			to := ipvsAddress(f[1])
			if len(out) == 0 || !to.IsValid() {
				bad = append(bad, line)
				continue
			}
			last := &out[len(out)-1]
			last.Targets = append(last.Targets, to)
		case f[0] == "-A" || f[0] == "-a":
			if !ipvsSaved(&out, f) {
				bad = append(bad, line)
			}
		case f[0] == "FWM" && len(f) > 1:
			out = append(out, VirtualServer{})
		case (f[0] == "TCP" || f[0] == "UDP" || f[0] == "SCTP") && len(f) > 1:
			at := ipvsAddress(f[1])
			if !at.IsValid() {
				bad = append(bad, line)
				continue
			}
			out = append(out, VirtualServer{Proto: strings.ToLower(f[0]), Address: at})
		default:
			bad = append(bad, line)
		}
	}
	if len(bad) > 0 {
		return out, unreadable(bad)
	}
	return out, nil
}

// ipvsSaved reads "-A -t 10.96.0.1:443 -s rr" and, of its targets, "-a -t
// 10.96.0.1:443 -r 10.0.0.1:6443 -m -w 1".
func ipvsSaved(out *[]VirtualServer, f []string) bool {
	if len(f) < 3 {
		return false
	}
	proto, ok := map[string]string{"-t": "tcp", "-u": "udp", "--sctp-service": "sctp", "-f": ""}[f[1]]
	if !ok {
		return false
	}
	if f[0] == "-A" {
		v := VirtualServer{Proto: proto}
		if proto != "" {
			v.Address = ipvsAddress(f[2])
		}
		*out = append(*out, v)
		return proto == "" || v.Address.IsValid()
	}
	if len(f) < 5 || f[3] != "-r" || len(*out) == 0 {
		return false
	}
	to := ipvsAddress(f[4])
	last := &(*out)[len(*out)-1]
	if to.IsValid() {
		last.Targets = append(last.Targets, to)
	}
	return to.IsValid()
}

// ipvsAddress reads 10.96.0.1:443, [fd00::1]:443 and the kernel's 0A600001:01BB
// and [fd00::1]:01BB. A port of four digits and a bracketed address can be
// either; only the kernel pads, so a leading zero or a letter decides.
func ipvsAddress(s string) netip.AddrPort {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return netip.AddrPort{}
	}
	host, port := s[:i], s[i+1:]
	if len(host) == 8 && len(port) == 4 {
		raw, err := hex.DecodeString(host)
		n, bad := strconv.ParseUint(port, 16, 16)
		if err == nil && bad == nil {
			return netip.AddrPortFrom(netip.AddrFrom4([4]byte(raw)), uint16(n))
		}
	}
	a, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if err != nil {
		return netip.AddrPort{}
	}
	base := 10
	if len(port) == 4 && (port[0] == '0' || strings.Trim(port, "0123456789") != "") {
		base = 16
	}
	n, err := strconv.ParseUint(port, base, 16)
	if err != nil {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(a.Unmap().WithZone(""), uint16(n))
}

// DecodeSets reads names of IP sets: `ipset list -n`, one name a line, and the
// "Name: …" lines of the full list. Other lines of the full list are members.
func DecodeSets(data []byte) ([]string, error) {
	var out []string
	full := strings.Contains(string(data), "Name: ")
	for text := range strings.Lines(string(data)) {
		text = strings.TrimSpace(text)
		name, isName := strings.CutPrefix(text, "Name: ")
		switch {
		case text == "" || full && !isName:
			continue
		case len(name) > 31 || strings.ContainsAny(name, " \t"):
			return out, fmt.Errorf("%.60q: no name of an IP set", name)
		}
		out = append(out, strings.Clone(name))
	}
	return out, nil
}

// ProxySet holds for the names of IP sets that kube-proxy's IPVS mode makes;
// of IPv6 they begin with KUBE-6-.
func ProxySet(name string) bool {
	rest, ok := strings.CutPrefix(name, "KUBE-")
	rest = strings.TrimPrefix(rest, "6-")
	if !ok {
		return false
	}
	for _, prefix := range []string{"LOOP-BACK", "CLUSTER-IP", "EXTERNAL-IP", "LOAD-BALANCER", "NODE-PORT-", "HEALTH-CHECK-NODE-PORT", "IPVS-IPS"} {
		if strings.HasPrefix(rest, prefix) {
			return true
		}
	}
	return false
}
