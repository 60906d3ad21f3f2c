package trace

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/internal/words"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// differs judges the differences that are not as they should be; false if
// there are none.
func (i instance) differs(at place) (judgement, bool) {
	below, written := lb.Unexpected(i.behind), lb.Unexpected(i.unwritten)
	var parts []judgement
	if len(below) > 0 {
		parts = append(parts, i.consequence(below, i.layerBelowAPI()))
	}
	if len(written) > 0 {
		parts = append(parts, i.consequence(written, Kernel))
	}
	if i.failure != "" && len(written) == 0 {
		parts = append(parts, judgement{state: Behind, layer: Kernel, text: "the agent could not write the frontend: " + i.failure})
	}
	if len(parts) == 0 {
		return judgement{}, false
	}
	for k := range parts {
		if parts[k].outcome == lostOutcome && strings.HasPrefix(parts[k].share, "about") && i.again(at) {
			parts[k].outcome = "wait a second or longer, as their first packet is dropped and sent again"
		}
	}
	j := parts[0]
	for _, more := range parts[1:] {
		j.text += "; " + more.text
		if j.share == "" {
			j.share, j.outcome = more.share, more.outcome
		}
		if more.severity == "" {
			j.severity = ""
		}
	}
	return j, true
}

// lostOutcome is what becomes of connections to a backend that is lost: where
// socket LB translates, connect fails at once.
const lostOutcome = "fail"

// again holds for clients whose packets are translated one by one. A SYN that
// is dropped is sent again after a second, and a backend chosen anew.
func (i instance) again(at place) bool {
	if i.udp() || len(at.kinds) == 0 {
		return false
	}
	for _, k := range at.kinds {
		if k != anOutsider && i.translates(k) != byPacket {
			return false
		}
	}
	return true
}

// consequence says what a layer holds otherwise than the one above it, and what
// becomes of new connections by it.
func (i instance) consequence(ds []lb.Delta, layer Layer) judgement {
	by := map[lb.Kind][]lb.Delta{}
	for _, d := range ds {
		by[d.Kind] = append(by[d.Kind], d)
	}
	c := consequence{instance: i, j: judgement{state: Behind, layer: layer}, words: agentWords}
	if layer == Kernel {
		c.words = kernelWords
		if i.agentErr != nil {
			c.above = "the API"
		} else {
			c.above = "the agent"
		}
	}
	c.rows(by)
	c.backends(by)
	for _, d := range by[lb.StateDiffers] {
		c.state(d)
	}
	for _, d := range by[lb.CountDiffers] {
		c.say("", "", "the map counts %s %s, the agent %s", d.B, d.Detail, d.A)
	}
	for _, d := range by[lb.FlagDiffers] {
		c.flag(d)
	}
	c.j.text = strings.Join(c.parts, "; ")
	return c.j
}

// layerWords are how a layer is spoken of.
type layerWords struct{ name, noFront, extraFront, missing, extra string }

var (
	agentWords = layerWords{
		name: "the agent", noFront: "the agent does not know this frontend",
		extraFront: "no Service asks for this frontend any more, and the agent still has it",
		missing:    "the API has %s and the agent does not know of it",
		extra:      "the agent still has %s, no endpoint of the Service any more",
	}
	kernelWords = layerWords{
		name: "the map", noFront: "the map has no row for this frontend",
		extraFront: "the map has a row for this frontend that %s does not know",
		missing:    "the map lacks %s, which %s has",
		extra:      "the map still has %s, which %s has not",
	}
)

// consequence gathers what is said of one layer.
type consequence struct {
	instance
	j       judgement
	words   layerWords
	above   string // who the map is compared with
	parts   []string
	serious bool
}

// say adds a part; the first share is kept, as the worst comes first.
func (c *consequence) say(share, outcome, format string, args ...any) {
	c.parts = append(c.parts, fmt.Sprintf(format, args...))
	if c.j.share == "" {
		c.j.share, c.j.outcome = share, outcome
	}
	c.j.severity, c.serious = "", true
}

// mild is say for what breaks no connection.
func (c *consequence) mild(format string, args ...any) {
	c.parts = append(c.parts, fmt.Sprintf(format, args...))
	if !c.serious {
		c.j.severity = "warning"
	}
}

// fill puts the layer above into a phrase that wants it.
func (c *consequence) fill(phrase string, args ...any) string {
	if n := strings.Count(phrase, "%s"); n > len(args) {
		args = append(args, c.above)
	}
	if len(args) == 0 {
		return phrase
	}
	return fmt.Sprintf(phrase, args...)
}

func (c *consequence) rows(by map[lb.Kind][]lb.Delta) {
	if len(by[lb.FrontendMissing]) > 0 {
		c.say("all new connections", "are not translated and fail", "%s", c.fill(c.words.noFront))
	}
	if len(by[lb.FrontendExtra]) > 0 {
		c.mild("%s", c.fill(c.words.extraFront))
	}
}

func (c *consequence) backends(by map[lb.Kind][]lb.Delta) {
	total := c.total()
	if lost := by[lb.BackendLost]; len(lost) > 0 {
		c.say(share(len(lost), total), lostOutcome, "the map has lost %d of %s (%s)", len(lost), words.Count(total, "backend"), names(lost))
	}
	if extra := by[lb.BackendExtra]; len(extra) > 0 {
		c.say(share(len(extra), total), "go to "+names(extra), "%s%s", c.fill(c.words.extra, names(extra)), c.whose(extra))
	}
	missing := by[lb.BackendMissing]
	switch {
	case len(missing) == 0:
	case c.serving() == 0:
		c.say("all new connections", "fail", "%s", c.fill(c.words.missing, names(missing)))
	default:
		c.say("no new connections", "reach "+names(missing), "%s", c.fill(c.words.missing, names(missing)))
	}
	if d := missing; len(d) > 0 && (d[0].Cause == lb.Topology || d[0].Cause == lb.TopologyUnmet) {
		c.parts[len(c.parts)-1] += " (" + d[0].Detail + ")"
	}
}

// whose says that a stale backend is alive and another Service's: it answers,
// and it is the wrong program.
func (c *consequence) whose(ds []lb.Delta) string {
	var owners []string
	for _, d := range ds {
		owners = append(owners, c.endpoints[netip.AddrPortFrom(d.Backend.IP, d.Backend.Port)]...)
	}
	if len(owners) == 0 {
		return ""
	}
	return ", but of " + listed(uniq(owners))
}

// total is how many backends new connections are spread over.
func (c *consequence) total() int {
	if c.kernel != nil {
		return slots(c.kernel)
	}
	if c.agent != nil {
		return usable(c.agent)
	}
	return 0
}

func (c *consequence) state(d lb.Delta) {
	above := c.above
	if above == "" {
		above = "the API"
	}
	text := fmt.Sprintf("%s calls %s %s, %s %s", c.words.name, bare(d.Backend), d.B, above, d.A)
	switch {
	case d.A == string(lb.Active):
		c.say("no new connections", "reach "+bare(d.Backend), "%s", text)
	case d.B == string(lb.Active):
		c.say(share(1, c.total()), "go to "+bare(d.Backend)+", which leaves", "%s", text)
	default:
		c.mild("%s", text)
	}
}

func (c *consequence) flag(d lb.Delta) {
	above := c.above
	if above == "" {
		above = "the API"
	}
	text := fmt.Sprintf("%s is %q in %s and %q in %s", d.Detail, d.B, strings.TrimPrefix(c.words.name, "the "), d.A, strings.TrimPrefix(above, "the "))
	if strings.Contains(d.Detail, "affinity") {
		c.mild("%s: clients may change their backend", text)
		return
	}
	c.say("", "", "%s", text)
}
