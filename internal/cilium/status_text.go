package cilium

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
)

// DecodeStatusText reads `status --verbose`, and as much as is there of
// `status`, of Cilium 1.9 to 1.20. Lines that no rule knows are kept in
// Status.Unread and are no error: each version adds some. An error that comes
// with a Status lists known lines whose content could not be read.
func DecodeStatusText(data []byte) (*agent.Status, error) {
	s, a := statusText(data)
	return s, a.err()
}

func statusText(data []byte) (*agent.Status, *answer) {
	a := newAnswer("status", data)
	t := statusReader{answer: a, s: newStatus()}
	for line, ok := a.next(); ok; line, ok = a.next() {
		if line[0] == ' ' || line[0] == '\t' {
			t.indented(line)
			continue
		}
		key, value, ok := strings.Cut(line, ":")
		if !ok {
			t.title(line)
			continue
		}
		t.top(key, strings.TrimSpace(value))
	}
	if t.known == 0 {
		if a.tally.Entries > 0 {
			a.tally.Errors += a.tally.Entries
			a.tally.Entries = 0
			a.errs.add(1, t.s.Unread[0], "no line of this is a status")
		}
		return nil, a
	}
	socketLBOfOldVersions(t.s, t.details)
	settle(t.s)
	return t.s, a
}

// statusReader is at some line of a status. section is the last line without
// indentation; the indented lines below belong to it.
type statusReader struct {
	*answer
	s       *agent.Status
	section string
	known   int  // lines that made clear that this is a status
	details bool // the block KubeProxyReplacement Details was there
	list    string
	columns columns
}

// Sections whose content is of no use here. Their indented lines are noise.
var unused = map[string]bool{
	"Host firewall": true, "SRv6": true, "CNI Chaining": true, "CNI Config file": true, "NodeMonitor": true,
	"Cilium health daemon": true, "IPAM": true, "Allocated addresses": true, "IPv4 BIG TCP": true, "IPv6 BIG TCP": true,
	"BandwidthManager": true, "Clock Source for BPF": true, "Proxy Status": true, "Global Identity Range": true,
	"Hubble": true, "ClusterMesh": true, "Name": true,
}

// top reads a line without indentation.
func (t *statusReader) top(key, value string) {
	t.section, t.list, t.columns = key, "", nil
	s := t.s
	word, rest := cutWord(value)
	var err error
	switch key {
	case "Cilium":
		s.Cilium = component(word, rest)
	case "Kubernetes":
		s.Kubernetes = component(word, rest)
	case "KVStore":
		s.KVStore = component(word, rest)
	case "Kubernetes APIs":
		s.APIs = quotedWords(value)
	case "KubeProxyReplacement":
		err = t.replacement(word, rest)
	case "KubeProxyReplacement Details":
		t.details = true
		t.known++
		t.header()
		return
	case "Host Routing": // up to 1.15
		s.HostRouting = word
	case "Routing":
		err = t.routing(value)
	case "IPAM":
		s.PodRanges = podRanges(value)
	case "Attach Mode":
		s.AttachMode = attachMode(value)
	case "Device Mode":
		s.DatapathMode = word // "netkit [Configured: auto]"
	case "Masquerading":
		err = t.masquerade(value)
	case "Controller Status":
		_, s.Controllers, err = parseRatio(word)
	case "BPF Maps":
		t.header()
		return
	case "Encryption":
		s.Encryption = word
	case "Cluster health":
		// "Probe disabled" and "Warning cilium-health daemon unreachable" too
		// stand here: nothing is told then.
		if n, of, err := parseRatio(word); err == nil {
			s.ClusterReachable, s.ClusterNodes = n, of
		}
	case "Modules Health":
		err = t.modules(value)
	default:
		if unused[key] {
			t.noise()
			return
		}
		t.unread()
		return
	}
	t.known++
	t.keep(err)
}

// title reads a line without indentation and without a colon: the header of the
// health table, or something new.
func (t *statusReader) title(line string) {
	if strings.HasPrefix(line, "Name ") && strings.Contains(line, "Endpoints") {
		t.section = "Name"
		t.header()
		return
	}
	t.section = ""
	t.unread()
}

func (t *statusReader) keep(err error) {
	if err != nil {
		t.fail(err.Error())
		return
	}
	t.entry()
}

func (t *statusReader) unread() {
	t.s.Unread = append(t.s.Unread, t.lines[t.at-1])
	t.entry()
}

// indented reads a line of the current section.
func (t *statusReader) indented(line string) {
	switch t.section {
	case "KubeProxyReplacement Details":
		t.detail(line)
	case "Controller Status":
		t.controller(line)
	case "BPF Maps":
		t.mapSize(line)
	case "Cluster health", "Modules Health":
		t.noise()
	default:
		if unused[t.section] {
			t.noise()
			return
		}
		t.unread()
	}
}

// replacement reads "True   [eth0 10.0.0.1 (Direct Routing)]".
func (t *statusReader) replacement(mode, rest string) error {
	if err := setMode(t.s, mode); err != nil {
		return err
	}
	inner, ok := strings.CutPrefix(rest, "[")
	if !ok {
		return nil
	}
	inner, rest, _ = strings.Cut(inner, "]")
	if strings.TrimSpace(rest) != "" { // 1.7 and 1.8 list the features behind the devices
		t.s.Unread = append(t.s.Unread, "KubeProxyReplacement: "+strings.TrimSpace(rest))
	}
	return t.devices(inner)
}

// devices reads "eth0 10.0.0.1 fe80::1 (Direct Routing), eth1 10.0.1.1". Up to
// 1.9 no addresses stand there, and 1.16 to 1.20 pad with blanks.
func (t *statusReader) devices(list string) error {
	var ds []agent.Device
	for item := range strings.SplitSeq(list, ",") {
		item, direct := strings.CutSuffix(strings.TrimSpace(item), "(Direct Routing)")
		words := strings.Fields(item)
		if len(words) == 0 {
			continue // a comma may end the list
		}
		ips, err := parseAddresses(words[1:])
		if err != nil {
			return fmt.Errorf("device %s: %w", words[0], err)
		}
		ds = append(ds, agent.Device{Name: words[0], Addresses: ips, Direct: direct})
		if direct {
			t.s.DirectRouting = words[0]
		}
	}
	t.s.Devices = ds
	return nil
}

// routing reads "Network: Tunnel [vxlan]   Host: BPF".
func (t *statusReader) routing(value string) error {
	network, host, ok := strings.Cut(value, "Host:")
	network, ok2 := strings.CutPrefix(network, "Network:")
	if !ok || !ok2 {
		return errors.New("routing without network and host")
	}
	t.s.HostRouting = strings.TrimSpace(host)
	network, tunnel := cutWord(network)
	t.s.NetworkRouting = network
	t.s.TunnelProtocol = strings.Trim(strings.TrimSpace(tunnel), "[]")
	return nil
}

var protocols = regexp.MustCompile(`\s*\[IPv4: (\w+), IPv6: (\w+)\]$`)

// masquerade reads "IPTables [IPv4: Enabled, IPv6: Disabled]" and "BPF
// (ip-masq-agent) [eth0, eth1] 10.0.0.0/8 fd00::/64 [IPv4: …]".
func (t *statusReader) masquerade(value string) error {
	m := agent.Masquerade{}
	if p := protocols.FindStringSubmatch(value); p != nil {
		value = strings.TrimSuffix(value, p[0])
		var err error
		if m.IPv4, err = parseSwitch(p[1]); err != nil {
			return err
		}
		if m.IPv6, err = parseSwitch(p[2]); err != nil {
			return err
		}
	}
	word, rest := cutWord(value)
	switch word {
	case "Disabled":
		m.Mode, m.IPv4, m.IPv6 = word, agent.Off, agent.Off
	case "Enabled": // by a version that does not tell how
		t.s.Unread = append(t.s.Unread, "Masquerading: "+value)
	case "IPTables":
		m.Mode = "iptables"
	case "BPF":
		m.Mode = word
		rest, m.Agent = cutAgent(rest)
		inner, ok := strings.CutPrefix(rest, "[")
		if !ok {
			break
		}
		inner, rest, _ = strings.Cut(inner, "]")
		m.Devices = strings.FieldsFunc(inner, func(r rune) bool { return r == ',' || r == ' ' })
		for _, w := range strings.Fields(rest) {
			p, err := parsePrefix(w)
			if err != nil {
				return err
			}
			m.Exclude = append(m.Exclude, p)
		}
	default:
		return fmt.Errorf("masquerading by %q", word)
	}
	t.s.Masquerade = m
	return nil
}

func cutAgent(s string) (string, agent.Switch) {
	rest, ok := strings.CutPrefix(s, "(ip-masq-agent)")
	return strings.TrimSpace(rest), agent.Of(ok)
}

var degraded = regexp.MustCompile(`Degraded\((\d+)\)`)

func (t *statusReader) modules(value string) error {
	m := degraded.FindStringSubmatch(value)
	if m == nil {
		return errors.New("modules without a count of degraded ones")
	}
	n, err := parseCount(m[1])
	t.s.ModulesDegraded = n
	return err
}
