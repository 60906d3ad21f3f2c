package cilium

import (
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// Binary stands in an argv for the agent's command line. What runs the argv
// puts cilium-dbg there or, where that is not installed (1.14 and older), cilium.
const Binary = "%cilium"

// Ask is one way to ask a node for one topic: a command in its agent pod, and
// the form in which the answer comes. A topic can have several; they are
// alternatives, the first one is used on a running cluster.
type Ask struct {
	Topic source.Topic
	Form  source.Form
	Argv  []string
	Needs Feature // zero: every version can be asked
	// MayBeEmpty: no output is an answer too, such as no listening socket.
	MayBeEmpty bool
	// Endless: the command ends only with its time, and has then answered.
	Endless bool
	shown   string
}

// Shown is the command as it is printed for people, "" where Argv is. The
// network pumps are programs of their own; they are shown by what they do.
func (a Ask) Shown(binary string) string {
	if a.shown != "" {
		return a.shown
	}
	words := slices.Clone(a.Argv)
	if len(words) > 0 && words[0] == Binary {
		words[0] = binary
	}
	return strings.Join(words, " ")
}

// By is the same question, asked by argv and printed for people as shown.
func (a Ask) By(shown string, argv ...string) Ask {
	a.shown, a.Argv = shown, argv
	return a
}

// Dialect lists every way to ask, grouped by topic in the order of
// preference. Topics that are read from pods' logs are not in it.
func Dialect() []Ask {
	asks := []Ask{
		asJSON(source.Status, "status", Binary, "status", "-o", "json"),
		asText(source.Status, "status-verbose", Binary, "status", "--verbose"),
		asJSON(source.Version, "version", Binary, "version", "-o", "json"),
		asText(source.Version, "version", Binary, "version"),
		// The JSON form tells only the dozen settings that can be changed at
		// run time, in every version; what the agent was started with is in
		// the text of --all alone.
		asText(source.Config, "config", Binary, "config", "--all"),
		asJSON(source.Config, "config", Binary, "config", "-o", "json"),
		asJSON(source.ServiceList, "service-list", Binary, "service", "list", "-o", "json"),
		asText(source.ServiceList, "service-list", Binary, "service", "list"),
	}
	for _, m := range []struct {
		topic source.Topic
		flags []string
	}{
		{source.MapList, nil},
		{source.MapBackends, []string{"--backends"}},
		{source.MapFrontends, []string{"--frontends"}},
		{source.MapRanges, []string{"--source-ranges"}},
		{source.MapRevNAT, []string{"--revnat"}},
	} {
		argv := append([]string{Binary, "bpf", "lb", "list"}, m.flags...)
		asks = append(asks,
			asJSON(m.topic, string(m.topic), append(slices.Clone(argv), "-o", "json")...),
			asText(m.topic, string(m.topic), argv...))
	}
	// The JSON of the shell is a run of objects whose spelling changed between
	// versions; the text form has one header for all of them.
	table := asText(source.FrontendsTable, string(source.FrontendsTable), Binary, "shell", "--", "db/show", "frontends")
	table.Needs = HasLBTables
	dump := asText(source.MapsDump, string(source.MapsDump), Binary, "shell", "--", "lb/maps-dump")
	dump.Needs = HasLBTables
	listeners := asText(source.Listeners, "ss", "ss", "-lntuH")
	listeners.MayBeEmpty = true
	asks = append(asks, table, dump, listeners,
		pump(source.ProxyMode, "10249", "/proxyMode"), pump(source.ProxyHealth, "10256", "/healthz"))
	// Each back end by its own name: plain iptables picks one on its first call
	// in a container and stays with it. No -t: naming a table makes the legacy
	// tool create it in the kernel.
	for topic, tool := range map[source.Topic]string{
		source.NFTSave: "iptables-nft-save", source.LegacySave: "iptables-legacy-save",
		source.NFTSave6: "ip6tables-nft-save", source.LegacySave6: "ip6tables-legacy-save",
	} {
		save := asText(topic, string(topic), tool, "-c")
		save.MayBeEmpty = true
		asks = append(asks, save)
	}
	// The kernel's own list, which is there only once IPVS was used; it needs no
	// ipvsadm, which the agent's image does not have.
	ipvs := asText(source.IPVS, string(source.IPVS), "bash", "-c", "cat /proc/net/ip_vs 2>&-||:")
	ipvs.MayBeEmpty, ipvs.shown = true, "cat /proc/net/ip_vs"
	cgroup := asText(source.Cgroup, string(source.Cgroup), append([]string{"bash", "-c", cgroupShow, "kpr"}, cgroupRoots...)...)
	cgroup.shown = "bpftool cgroup show " + strings.Join(cgroupRoots, ", else ")
	// It watches for as long as it is let.
	drops := asText(source.Drops, string(source.Drops), Binary, "monitor", "--type", "drop")
	drops.Endless = true
	digest := asText(source.LBDigest, string(source.LBDigest), "bash", "-c", digestScript)
	digest.Needs, digest.shown = HasLBTables, digestShown
	asks = append(asks, digest, cgroup, drops, ipvs, asText(source.IPAddr, string(source.IPAddr), "ip", "-br", "addr"))
	slices.SortStableFunc(asks, func(a, b Ask) int { return strings.Compare(string(a.Topic), string(b.Topic)) })
	return asks
}

// AskFor is the way in which a running agent is asked for a topic; false for
// topics that no command tells.
func AskFor(t source.Topic) (Ask, bool) {
	all := Dialect()
	i := slices.IndexFunc(all, func(a Ask) bool { return a.Topic == t })
	if i < 0 {
		return Ask{}, false
	}
	return all[i], true
}

func asJSON(t source.Topic, stem string, argv ...string) Ask {
	return Ask{Topic: t, Form: source.Form{Stem: stem, Format: source.JSON, Ext: ".json"}, Argv: argv}
}

func asText(t source.Topic, stem string, argv ...string) Ask {
	return Ask{Topic: t, Form: source.Form{Stem: stem, Format: source.Text, Ext: ".txt"}, Argv: argv}
}

func pump(t source.Topic, port, path string) Ask {
	a := asText(t, string(t), "bash", "-c", LoopbackGet, "all", port, path)
	a.shown = "GET http://127.0.0.1:" + port + path + ", then on [::1], by bash over /dev/tcp"
	return a
}
