package cilium

import (
	"cmp"
	"fmt"
	"strings"
)

// StartFault is a combination of settings with which an agent exits when it
// starts. The agent that runs may have started before.
type StartFault struct {
	Keys []string // of cilium-config, the one to change first
	Why  string   // consequence in words
}

// told are settings with the agent's defaults below them.
type told struct {
	get      func(key string) string
	settings map[string]Setting
}

func toldBy(get func(string) string) told {
	t := told{get, map[string]Setting{}}
	for _, s := range Settings() {
		t.settings[s.Key] = s
	}
	return t
}

func (t told) is(key, want string) bool { return t.word(key) == want }

func (t told) word(key string) string {
	s := t.settings[key]
	v, _ := s.Normal(cmp.Or(t.get(key), s.Default))
	return v
}

// StartFaults finds combinations of cilium-config's values that end the agent
// of a version at its start. get gives "" for a key that is not set. Where the
// version is not known, or its code was not read, nothing is said.
//
// Source: daemon/cmd and pkg/kpr/initializer of 1.14.19, 1.15.19, 1.17.6 and
// 1.20.2; what the first and the last of these have holds for those between.
func StartFaults(get func(key string) string, c Capabilities) []StartFault {
	if !c.known {
		return nil
	}
	t := toldBy(get)
	var out []StartFault
	add := func(when bool, why string, keys ...string) {
		if when {
			out = append(out, StartFault{keys, why})
		}
	}
	kpr, bpf := t.is(kprKey, "true"), t.is("enable-bpf-masquerade", "true")
	masquerade := t.is("enable-ipv4-masquerade", "true") || t.is("enable-ipv6-masquerade", "true")
	tunnel := !t.is("routing-mode", "native") && t.get("tunnel") != "disabled"
	if !kprWord(t.settings[kprKey], get(kprKey), c) {
		add(true, fmt.Sprintf("kube-proxy-replacement=%q: this version takes true and false only", get(kprKey)), kprKey)
	}

	add(bpf && !kpr && !t.is("enable-node-port", "true") && c.minor(15, 17),
		"BPF masquerade requires NodePort, which KPR off leaves out", "enable-bpf-masquerade", kprKey)
	add((kpr || bpf) && t.is("install-iptables-rules", "false"), "KPR and BPF masquerade need Cilium's iptables rules", "install-iptables-rules")
	add(bpf && masquerade && t.is("enable-masquerade-to-route-source", "true"), "BPF masquerade cannot masquerade to the route's source", "enable-masquerade-to-route-source", "enable-bpf-masquerade")
	add(bpf && masquerade && get("egress-masquerade-interfaces") != "", "BPF masquerade takes its devices from devices, not from egress-masquerade-interfaces", "egress-masquerade-interfaces", "enable-bpf-masquerade")
	add(bpf && !masquerade && c.minor(16, 20), "BPF masquerade needs masquerading on for IPv4 or IPv6", "enable-bpf-masquerade", "enable-ipv4-masquerade")
	add(t.is("enable-ip-masq-agent", "true") && !(bpf && masquerade), "ip-masq-agent works with BPF masquerade only", "enable-ip-masq-agent", "enable-bpf-masquerade")
	add(tunnel && t.is("auto-direct-node-routes", "true"), "direct node routes cannot be used with tunneling", "auto-direct-node-routes", "routing-mode")
	add(t.is("enable-ipv4", "false") && t.is("enable-ipv6", "false") && get("enable-ipv6") != "", "IPv4 and IPv6 are both off", "enable-ipv4", "enable-ipv6")
	out = append(out, noConntrackFaults(t, kpr, bpf, masquerade, tunnel)...)
	if kpr {
		out = append(out, dsrFaults(t, tunnel, c)...)
		add(t.is("enable-ipsec", "true") && c.minor(0, 15), "IPsec cannot be used with BPF NodePort before 1.16", "enable-ipsec", kprKey)
	}
	return out
}

// kprWord holds that the words of 1.15 and earlier end an agent of 1.16: the
// flag's values were reduced there, and 1.19 made it a bool.
func kprWord(s Setting, v string, c Capabilities) bool {
	if v == "" || c.minor(0, 15) {
		return true
	}
	n, ok := s.Normal(v)
	return ok && n == strings.ToLower(v) && (n == "true" || n == "false")
}

func noConntrackFaults(t told, kpr, bpf, masquerade, tunnel bool) []StartFault {
	const key = "install-no-conntrack-iptables-rules"
	if !t.is(key, "true") {
		return nil
	}
	switch {
	case !kpr:
		return []StartFault{{[]string{key, kprKey}, "rules that bypass conntrack need KPR"}}
	case masquerade && !bpf:
		return []StartFault{{[]string{key, "enable-bpf-masquerade"}, "rules that bypass conntrack need BPF masquerade"}}
	case tunnel:
		return []StartFault{{[]string{key, "routing-mode"}, "rules that bypass conntrack need native routing"}}
	}
	return nil
}

// dsrFaults are about replies that go straight to the client: a tunnel carries
// them with Geneve only.
func dsrFaults(t told, tunnel bool, c Capabilities) []StartFault {
	mode, dispatch, protocol := t.word("bpf-lb-mode"), t.word("bpf-lb-dsr-dispatch"), t.word("tunnel-protocol")
	if old := t.get("tunnel"); old == "vxlan" || old == "geneve" {
		protocol = old
	}
	dsr := mode == "dsr" || mode == "hybrid"
	switch {
	case tunnel && dsr && c.minor(0, 12):
		return []StartFault{{[]string{"bpf-lb-mode", "routing-mode"}, "LB mode " + mode + " needs native routing"}}
	case tunnel && dsr && protocol == "vxlan":
		return []StartFault{{[]string{"bpf-lb-mode", "tunnel-protocol"}, "LB mode " + mode + " cannot be used with a VXLAN tunnel; Geneve with bpf-lb-dsr-dispatch=geneve can carry it, or native routing"}}
	case tunnel && dsr && dispatch != "geneve":
		return []StartFault{{[]string{"bpf-lb-dsr-dispatch", "bpf-lb-mode"}, "LB mode " + mode + " through a tunnel needs bpf-lb-dsr-dispatch=geneve"}}
	case dsr && dispatch == "geneve" && protocol != "geneve":
		return []StartFault{{[]string{"tunnel-protocol", "bpf-lb-dsr-dispatch"}, "DSR dispatch geneve needs tunnel-protocol=geneve"}}
	case tunnel && t.word("underlay-protocol") == "ipv6" && t.word("bpf-lb-acceleration") != "disabled":
		return []StartFault{{[]string{"bpf-lb-acceleration", "underlay-protocol"}, "XDP acceleration cannot be used with an IPv6 underlay"}}
	}
	return nil
}

// minor tells whether the version is 1.from to 1.to.
func (c Capabilities) minor(from, to int) bool {
	return c.known && c.release.major == 1 && c.release.minor >= from && c.release.minor <= to
}
