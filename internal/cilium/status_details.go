package cilium

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
)

// Lists below a line of the details that has no value of its own.
const (
	servicesList    = "Services"
	annotationsList = "Annotations"
	nat46List       = "NAT46/64 Support"
)

// detail reads a line of the block KubeProxyReplacement Details.
func (t *statusReader) detail(line string) {
	item := strings.TrimSpace(line)
	if entry, ok := strings.CutPrefix(item, "- "); ok {
		t.keep(t.listed(strings.TrimSpace(entry)))
		return
	}
	key, value, ok := strings.Cut(item, ":")
	if !ok {
		t.unread()
		return
	}
	value = strings.TrimSpace(value)
	switch key {
	case servicesList, annotationsList:
		t.list = key
		t.header() // "Annotations: (n/a)" lists none
		return
	case nat46List:
		t.list = key
		if value == "" { // the switches of its parts follow
			t.s.NAT46 = agent.On
			t.entry()
			return
		}
	case "Prefixes": // of the NAT46/64 gateway
		t.noise()
		return
	default:
		t.list = ""
	}
	known, err := t.setting(key, value)
	if !known {
		t.unread()
		return
	}
	t.keep(err)
}

// setting reads one "key: value" of the details.
func (t *statusReader) setting(key, value string) (known bool, err error) {
	s := t.s
	switches := map[string]*agent.Switch{
		"Socket LB": &s.SocketLB, "Socket LB Tracing": &s.SocketLBTracing, "Session Affinity": &s.Affinity,
		"Graceful Termination": &s.Graceful, nat46List: &s.NAT46,
	}
	if to, ok := switches[key]; ok {
		*to, err = parseSwitch(value)
		return true, err
	}
	switch key {
	case "Status":
		err = setMode(s, value)
	case "Socket LB Coverage":
		switch value {
		case "Full":
			s.SocketLBHostOnly = agent.Off
		case "Hostns-only":
			s.SocketLBHostOnly = agent.On
		default:
			err = fmt.Errorf("coverage %q: want Full or Hostns-only", value)
		}
	case "Socket LB Protocols":
		s.SocketLBProtos = strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' })
	case "Devices":
		err = t.devices(value)
	case "Mode":
		s.LBMode = value
	case "DSR Dispatch Mode":
		s.DSRDispatch = value
	case "Backend Selection":
		err = t.algorithm(value)
	case "XDP Acceleration":
		s.XDP = value
	default:
		return false, nil
	}
	return true, err
}

var tableSize = regexp.MustCompile(`^(\w+)(?: \(Table Size: (\d+)\))?$`)

// algorithm reads "Random" and "Maglev (Table Size: 16381)".
func (t *statusReader) algorithm(value string) error {
	m := tableSize.FindStringSubmatch(value)
	if m == nil {
		return fmt.Errorf("backend selection %q: want NAME (Table Size: N)", value)
	}
	t.s.Algorithm = m[1]
	if m[2] == "" {
		return nil
	}
	var err error
	t.s.MaglevSize, err = parseCount(m[2])
	return err
}

var portRange = regexp.MustCompile(`\(Range: (\d+)-(\d+)\)`)

// listed reads an item of the list that the details are in.
func (t *statusReader) listed(item string) error {
	s := t.s
	if t.list == annotationsList {
		s.Annotations = append(s.Annotations, item)
		return nil
	}
	key, value, ok := strings.Cut(item, ":")
	if !ok {
		return errors.New("list item without a value")
	}
	word, rest := cutWord(value)
	on, err := parseSwitch(word)
	if err != nil {
		return err
	}
	if t.list == nat46List {
		return nil // Services and Gateway; Status holds the whole only
	}
	switch key {
	case "ClusterIP":
		s.ClusterIP = on
	case "NodePort":
		s.NodePort = on
		if m := portRange.FindStringSubmatch(rest); m != nil {
			if s.NodePortMin, err = parseCount(m[1]); err != nil {
				return err
			}
			s.NodePortMax, err = parseCount(m[2])
		}
	case "LoadBalancer":
		s.LoadBalancer = on
	case "externalIPs":
		s.ExternalIPs = on
	case "HostPort":
		s.HostPort = on
	default:
		s.Unread = append(s.Unread, t.lines[t.at-1])
	}
	return err
}

// controller reads a row of the table of controllers: all of them with
// --verbose, else the failing ones. Cells may be empty of words but not of
// meaning, so columns are found by the header's positions.
func (t *statusReader) controller(line string) {
	if t.columns == nil {
		if t.columns = findColumns(line, "Name", "Count", "Message"); t.columns == nil {
			t.unread()
			return
		}
		t.header()
		return
	}
	cells := t.columns.cells(line)
	n, err := parseCount(cells["Count"])
	if err != nil || cells["Name"] == "" {
		t.unread() // a message may go over several lines
		return
	}
	if n == 0 {
		t.noise()
		return
	}
	t.s.FailedControllers = append(t.s.FailedControllers,
		agent.Controller{Name: cells["Name"], Failures: n, Error: cells["Message"]})
	t.entry()
}

// mapSize reads a row of the table of BPF maps. Names hold blanks, sizes none.
func (t *statusReader) mapSize(line string) {
	item := strings.TrimSpace(line)
	i := strings.LastIndexAny(item, " \t")
	if i < 0 {
		t.unread()
		return
	}
	name, number := strings.TrimSpace(item[:i]), item[i+1:]
	if name == "Name" && number == "Size" {
		t.header()
		return
	}
	size, err := parseCount(number)
	if err != nil {
		t.fail(fmt.Sprintf("size of map %s: %v", name, err))
		return
	}
	t.s.Maps = append(t.s.Maps, agent.MapSize{Name: name, Size: size})
	t.entry()
}

// socketLBOfOldVersions says Off where the text says nothing: up to 1.11 the
// only line is "Socket LB Protocols", and it is left out when there are none.
// 1.12 has both lines.
func socketLBOfOldVersions(s *agent.Status, details bool) {
	switch {
	case s.SocketLB != agent.NotTold:
	case len(s.SocketLBProtos) > 0:
		s.SocketLB = agent.On
	case details && beforeSocketLBLine.MatchString(s.Cilium.Message):
		s.SocketLB = agent.Off
	}
}

var beforeSocketLBLine = regexp.MustCompile(`^v?1\.(?:9|10|11)\.`)

// podRanges reads "IPv4: 6/254 allocated from 10.244.1.0/24, IPv6: …". Other
// kinds of IPAM print no range.
func podRanges(text string) []netip.Prefix {
	var out []netip.Prefix
	for word := range strings.FieldsSeq(text) {
		if p, err := netip.ParsePrefix(strings.Trim(word, ",")); err == nil {
			out = append(out, p.Masked())
		}
	}
	return out
}

func (j statusJSON) ipam() {
	var m struct{ Status string }
	if j.read("ipam", &m) {
		j.s.PodRanges = podRanges(m.Status)
	}
}
