package fact

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/internal/cilium"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// Facts about the room in a node's load-balancing maps.
var (
	// MapCounts are rows that somebody counted; recordings alone have them.
	MapCounts = Read(source.MapCounts, func(a source.Artifact) ([]lb.MapCount, error) { return cilium.DecodeMapCounts(a.Data) })
	// MapUse is how full each map is, as far as rows were counted or writes
	// were seen to fail, sorted by name.
	MapUse = Define("map-use", true,
		[]Named{MapRows, MapSlots, MapRanges, MapsDump, MapCounts, Status, Config, FrontendsTable, AgentLog}, mapUse)
)

// Fill is how full one map is.
type Fill struct {
	Map  string // "IPv4 service backend", as status names it
	Rows int    // in use, at least; -1 where nothing was counted
	Size int
	// By is where the size stands: "status", "bpf-lb-map-max in cilium-config",
	// or "the default".
	By string
	// Refused are frontends that the agent could not write for want of room, by
	// its table of frontends; Logged counts such failures in its log.
	Refused []lb.Address
	Logged  int
	// Rewritten: the table of frontends was read, and nothing in it waits for
	// this map. What the log tells is over then.
	Rewritten bool
}

// lbMap is one kind of map: its name in the kernel and in status, behind "IPv4 "
// or "IPv6 ", and the agent's option for its size.
type lbMap struct{ kernel, name, option string }

func lbMaps() []lbMap {
	return []lbMap{
		{"services", "service", "bpf-lb-service-map-max"},
		{"backends", "service backend", "bpf-lb-service-backend-map-max"},
		{"reverse_nat", "service reverse NAT", "bpf-lb-rev-nat-map-max"},
		{"source_range", "source range", "bpf-lb-source-range-map-max"},
		{"maglev", "Maglev", "bpf-lb-maglev-map-max"},
	}
}

// defaultMapMax is the agent's own size where nobody sets one, in all versions
// since 1.6.
const defaultMapMax = 65536

func mapUse(v *View) ([]Fill, error) {
	u := usage{fills: map[string]*Fill{}}
	read := u.count(v)
	table, tableErr := FrontendsTable.From(v)
	for _, r := range table {
		if name := fullMap(r.Error); r.Status == "Error" && name != "" {
			f := u.at(name)
			f.Refused = append(f.Refused, r.Address)
		}
	}
	lines, _ := AgentLog.From(v)
	for _, l := range lines {
		if name := fullMap(l.Error() + " " + l.Message); name != "" {
			u.at(name).Logged++
		}
	}
	if len(u.fills) == 0 && !read {
		_, err := MapRows.From(v)
		return nil, cmp.Or(err, errors.New("rows of the maps on "+v.Node()+": not counted"))
	}
	out := make([]Fill, 0, len(u.fills))
	for _, f := range u.fills {
		f.Size, f.By = sizeOf(v, f.Map)
		f.Rewritten = tableErr == nil && len(f.Refused) == 0
		out = append(out, *f)
	}
	slices.SortFunc(out, func(a, b Fill) int { return strings.Compare(a.Map, b.Map) })
	return out, nil
}

// usage collects the fills of one node by name.
type usage struct{ fills map[string]*Fill }

func (u usage) at(name string) *Fill {
	if u.fills[name] == nil {
		u.fills[name] = &Fill{Map: name, Rows: -1}
	}
	return u.fills[name]
}

// least takes a count that may miss rows: the greatest of several holds.
func (u usage) least(name string, rows int) {
	f := u.at(name)
	f.Rows = max(f.Rows, rows)
}

// inFamily puts "IPv4 " or "IPv6 " before a map's name.
func inFamily(ip netip.Addr, name string) string {
	if ip.Is4() {
		return "IPv4 " + name
	}
	return "IPv6 " + name
}

// count counts what was read of the maps; false if that is nothing.
func (u usage) count(v *View) bool {
	rows, rowErr := MapRows.From(v)
	u.lines(rows)
	slots, slotErr := MapSlots.From(v)
	u.rows("service", len(slots), func(i int) netip.Addr { return slots[i].Frontend.IP })
	dump, dumpErr := MapsDump.From(v)
	u.rows("service", len(dump.Rows), func(i int) netip.Addr { return dump.Rows[i].Frontend.IP })
	u.rows("service backend", len(dump.Backends), func(i int) netip.Addr { return dump.Backends[i].Address.IP })
	u.rows("service reverse NAT", len(dump.RevNAT), func(i int) netip.Addr { return dump.RevNAT[i].Address.IP })
	u.rows("source range", len(dump.SourceRanges), func(i int) netip.Addr { return dump.SourceRanges[i].Prefix.Addr() })
	ranges, _ := MapRanges.From(v)
	u.rows("source range", len(ranges), func(i int) netip.Addr { return ranges[i].Prefix.Addr() })
	counts, countErr := MapCounts.From(v)
	for _, c := range counts {
		if name := mapName(c.Name); name != "" {
			u.least(name, c.Rows)
		}
	}
	return rowErr == nil || slotErr == nil || dumpErr == nil || countErr == nil
}

// rows counts the rows of a list that is one map's.
func (u usage) rows(name string, n int, ip func(int) netip.Addr) {
	found := map[string]int{}
	for i := range n {
		found[inFamily(ip(i), name)]++
	}
	for name, n := range found {
		u.least(name, n)
	}
}

// lines counts `bpf lb list`: each line is a row of the service map, masters
// and slots alike. The other two maps hold what the lines name, at least: a
// backend that no frontend uses any more takes room as well.
func (u usage) lines(rows []lb.MapRow) {
	u.rows("service", len(rows), func(i int) netip.Addr { return rows[i].Frontend.IP })
	type thing struct {
		backend lb.Address
		revNAT  int
	}
	seen := map[string]map[thing]bool{}
	add := func(name string, t thing) {
		if seen[name] == nil {
			seen[name] = map[thing]bool{}
		}
		seen[name][t] = true
	}
	for _, r := range rows {
		if r.Backend.IP.IsValid() && !r.Master {
			add(inFamily(r.Backend.IP, "service backend"), thing{backend: r.Backend})
		}
		if r.RevNAT > 0 {
			add(inFamily(r.Frontend.IP, "service reverse NAT"), thing{revNAT: r.RevNAT})
		}
	}
	for name, things := range seen {
		u.least(name, len(things))
	}
}

// full matches the words in which the agents of all versions pass on that the
// kernel had no room in a map: E2BIG of hash maps, ENOSPC of tries.
var full = regexp.MustCompile(`(?i)map is full|argument list too long|no space left on device`)

var kernelMap = regexp.MustCompile(`\bcilium_(lb[46]?_[a-z_]+?)(?:_v[0-9]+)?\b`)

// fullMap is the load-balancing map that an error says has no room, "" if it
// says nothing of the kind. Versions before 1.10 do not name the map.
func fullMap(text string) string {
	if !full.MatchString(text) {
		return ""
	}
	if m := kernelMap.FindStringSubmatch(text); m != nil {
		return cmp.Or(mapName(m[1]), m[0])
	}
	if strings.Contains(text, "LB map") {
		return "load-balancing"
	}
	return ""
}

// mapName is status' name of a map that the kernel knows as "lb4_services".
func mapName(kernel string) string {
	for family, word := range map[string]string{"lb4_": "IPv4 ", "lb6_": "IPv6 "} {
		rest, ok := strings.CutPrefix(kernel, family)
		i := slices.IndexFunc(lbMaps(), func(m lbMap) bool { return m.kernel == rest })
		if ok && i >= 0 {
			return word + lbMaps()[i].name
		}
	}
	return ""
}

// sizeOf prefers what the running agent says of the map to what it was told.
func sizeOf(v *View, name string) (size int, by string) {
	if st, _ := Status.From(v); st != nil {
		for _, m := range st.Maps {
			if m.Name == name && m.Size > 0 {
				return m.Size, "status"
			}
		}
	}
	cfg, _ := Config.From(v)
	options := []string{"bpf-lb-map-max"}
	i := slices.IndexFunc(lbMaps(), func(m lbMap) bool { return strings.HasSuffix(name, " "+m.name) })
	if i >= 0 {
		options = append([]string{lbMaps()[i].option}, options...)
	}
	for _, o := range options {
		if n, err := strconv.Atoi(cfg.Data[o]); err == nil && n > 0 {
			return n, fmt.Sprintf("%s in cilium-config", o)
		}
	}
	return defaultMapMax, "the default"
}
