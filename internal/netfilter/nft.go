package netfilter

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// NFTables is what `nft` lists, reduced to kube-proxy's tables.
type NFTables struct {
	All    int // tables seen
	Tables []NFTable
}

// NFTable is a table of kube-proxy's nftables mode, "ip kube-proxy" or "ip6
// kube-proxy". A list of tables alone gives its name and nothing else.
type NFTable struct {
	Family   Family
	Chains   int
	Services []string // namespace/name, sorted
	Targets  []Target // without packets: kube-proxy writes no counters there
	Refused  []string // Services that it refuses for want of endpoints, sorted
}

// Name is the table as nft names it.
func (t NFTable) Name() string {
	if t.Family == IPv6 {
		return "ip6 kube-proxy"
	}
	return "ip kube-proxy"
}

// DecodeNFT reads `nft list ruleset`, `nft list tables`, `nft list table ip
// kube-proxy`, and their JSON (nft -j). Warnings begin with '#'.
func DecodeNFT(data []byte) (NFTables, error) {
	if trimmed := bytes.TrimSpace(data); len(trimmed) > 0 && trimmed[0] == '{' {
		return nftJSON(trimmed)
	}
	var d nftDecoder
	sc := bufio.NewScanner(bytes.NewReader(data))
	sc.Buffer(make([]byte, 0, 4096), 1<<20)
	line := 0
	var bad []int
	for sc.Scan() {
		line++
		text := strings.TrimSpace(sc.Text())
		if text == "" || text[0] == '#' || strings.HasPrefix(text, "XT target ") {
			continue
		}
		if !d.read(text) {
			bad = append(bad, line)
		}
	}
	d.close()
	var errs []error
	if len(bad) > 0 {
		errs = append(errs, unreadable(bad))
	}
	if err := sc.Err(); err != nil {
		errs = append(errs, fmt.Errorf("line %d: %w", line+1, err))
	}
	if d.depth > 0 {
		errs = append(errs, errors.New("the text ends within a table"))
	}
	return d.out, errors.Join(errs...)
}

type nftDecoder struct {
	out     NFTables
	depth   int
	table   *NFTable // the table of kube-proxy that is open
	chain   string   // the chain that is open
	set     string   // the map that is open
	service string
}

// read takes a line. Inside of tables that are not kube-proxy's only the
// braces count.
func (d *nftDecoder) read(text string) bool {
	if d.depth == 0 {
		return d.open(text)
	}
	word, rest, _ := strings.Cut(text, " ")
	switch {
	case text == "}":
		d.depth--
		switch d.depth {
		case 0:
			d.close()
		case 1:
			d.chain, d.set = "", ""
		}
		return true
	case d.depth == 1 && strings.HasSuffix(text, "{"):
		d.depth++
		name := strings.TrimSuffix(rest, " {")
		if word == "chain" && d.table != nil {
			d.openChain(name)
		} else if word == "map" && d.table != nil {
			d.set = name
		}
		return true
	}
	if d.table != nil {
		d.row(text)
	}
	return true
}

func (d *nftDecoder) open(text string) bool {
	f := strings.Fields(text)
	if len(f) < 3 || f[0] != "table" {
		return false
	}
	d.out.All++
	if f[2] == "kube-proxy" && (f[1] == "ip" || f[1] == "ip6") {
		d.table = &NFTable{Family: IPv4}
		if f[1] == "ip6" {
			d.table.Family = IPv6
		}
	}
	if strings.HasSuffix(text, "{") {
		d.depth = 1
		return true
	}
	d.close()
	return len(f) == 3
}

func (d *nftDecoder) close() {
	if d.table == nil {
		return
	}
	t := d.table
	d.table = nil
	// A list of tables may stand before the tables themselves.
	for i := range d.out.Tables {
		if have := &d.out.Tables[i]; have.Family == t.Family && have.Chains == 0 {
			d.out.All--
			d.out.Tables = slices.Delete(d.out.Tables, i, i+1)
			break
		}
	}
	slices.Sort(t.Services)
	slices.Sort(t.Refused)
	t.Services, t.Refused = slices.Compact(t.Services), slices.Compact(t.Refused)
	d.out.Tables = append(d.out.Tables, *t)
}

// openChain counts a chain. "service-ULMVA6XW-shop/web/tcp/http" and
// "endpoint-5OJB2KTY-shop/web/tcp/http__10.0.0.1/8080" name their Service.
func (d *nftDecoder) openChain(name string) {
	d.table.Chains++
	d.chain, d.service = name, ""
	kind, rest, ok := strings.Cut(name, "-")
	if !ok || !slices.Contains([]string{"service", "local", "external", "endpoint", "firewall"}, kind) {
		return
	}
	_, rest, _ = strings.Cut(rest, "-")
	f := strings.Split(rest, "/")
	if len(f) < 3 || !label(f[0]) || !label(f[1]) {
		return
	}
	d.service = f[0] + "/" + f[1]
	if kind == "service" || kind == "local" {
		d.table.Services = append(d.table.Services, d.service)
	}
}

func (d *nftDecoder) row(text string) {
	if d.set == "no-endpoint-services" || d.set == "no-endpoint-nodeports" {
		for rest := text; ; {
			_, after, ok := strings.Cut(rest, `comment "`)
			if !ok {
				return
			}
			comment, more, _ := strings.Cut(after, `"`)
			if s := serviceOf(comment); s != "" {
				d.table.Refused = append(d.table.Refused, s)
			}
			rest = more
		}
	}
	_, to, ok := strings.Cut(text, " dnat to ")
	if !ok || d.service == "" || !strings.HasPrefix(d.chain, "endpoint-") {
		return
	}
	if at := addrPort(strings.TrimSpace(to)); at.IsValid() {
		d.table.Targets = append(d.table.Targets, Target{Service: d.service, To: at})
	}
}

// nftJSON reads which tables there are and how many chains they have.
func nftJSON(data []byte) (NFTables, error) {
	type object struct{ Family, Name, Table string }
	var doc struct {
		NFTables []struct {
			Table *object `json:"table"`
			Chain *object `json:"chain"`
		} `json:"nftables"`
	}
	var out NFTables
	if err := json.Unmarshal(data, &doc); err != nil {
		return out, err
	}
	family := map[string]Family{"ip": IPv4, "ip6": IPv6}
	for _, o := range doc.NFTables {
		switch {
		case o.Table != nil:
			out.All++
			if f := family[o.Table.Family]; f != 0 && o.Table.Name == "kube-proxy" {
				out.Tables = append(out.Tables, NFTable{Family: f})
			}
		case o.Chain != nil && o.Chain.Table == "kube-proxy":
			for i := range out.Tables {
				if out.Tables[i].Family == family[o.Chain.Family] {
					out.Tables[i].Chains++
				}
			}
		}
	}
	return out, nil
}
