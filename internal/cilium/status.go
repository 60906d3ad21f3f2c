package cilium

import (
	"cmp"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
)

// newStatus is a status of which nothing is known yet.
func newStatus() *agent.Status {
	return &agent.Status{ModulesDegraded: -1, ClusterReachable: -1}
}

// setMode keeps the agent's word and what it means. Up to 1.13 the words are
// Strict, Probe, Partial and Disabled, from 1.16 on True and False; 1.14 and
// 1.15 know all six.
func setMode(s *agent.Status, said string) error {
	s.ModeSaid = said
	switch strings.ToLower(said) {
	case "true", "strict":
		s.Mode = agent.ModeTrue
	case "false", "disabled":
		s.Mode = agent.ModeFalse
	case "partial":
		s.Mode = agent.ModePartial
	case "probe":
		s.Mode = agent.ModeProbe
	default:
		return fmt.Errorf("kube-proxy replacement %q is none of the known modes", said)
	}
	return nil
}

var (
	// "1.20.2 (v1.20.2-00000000)" opens the message of the Cilium line of a
	// healthy agent; a failing one has its reason there.
	ciliumVersion = regexp.MustCompile(`^v?([0-9]+\.[0-9]+\.[0-9]+\S*)`)
	// "1.28+ (v1.28.5+k3s1) [linux/amd64]"
	kubernetesVersion = regexp.MustCompile(`\((v[0-9][^)\s]*)\)`)
)

// settle derives what both forms leave to the reader, and brings lists whose
// order means nothing into one order.
func settle(s *agent.Status) {
	if m := ciliumVersion.FindStringSubmatch(s.Cilium.Message); m != nil {
		s.Version = m[1]
	}
	if m := kubernetesVersion.FindStringSubmatch(s.Kubernetes.Message); m != nil {
		s.KubeVer = m[1]
	}
	slices.Sort(s.APIs)
	slices.SortStableFunc(s.FailedControllers, func(a, b agent.Controller) int { return cmp.Compare(a.Name, b.Name) })
}

func component(state, message string) agent.Component {
	// Up to 1.8 the state was written OK.
	if state == "OK" {
		state = "Ok"
	}
	return agent.Component{State: state, Message: strings.TrimSpace(message)}
}

// attachMode gives both forms one word: JSON says tcx and tc, the text TCX and
// Legacy TC.
func attachMode(said string) string {
	switch strings.ToLower(said) {
	case "tcx":
		return "TCX"
	case "tc", "legacy tc":
		return "Legacy"
	}
	return said
}

// parseAddresses reads addresses of a device. Blank ones are dropped: the
// deviceList of 1.16 to 1.20 begins with some.
func parseAddresses(words []string) ([]netip.Addr, error) {
	var ips []netip.Addr
	for _, w := range words {
		if w == "" {
			continue
		}
		ip, err := parseIP(w)
		if err != nil {
			return nil, err
		}
		ips = append(ips, ip)
	}
	return ips, nil
}

// quotedWords reads `["a", "b"]`.
func quotedWords(s string) []string {
	var words []string
	for w := range strings.SplitSeq(strings.Trim(s, "[]"), ",") {
		if w = strings.Trim(strings.TrimSpace(w), `"`); w != "" {
			words = append(words, w)
		}
	}
	return words
}

// parseRatio reads "26/27".
func parseRatio(s string) (n, of int, err error) {
	left, right, ok := strings.Cut(s, "/")
	if !ok {
		return 0, 0, fmt.Errorf("%q: want N/M", s)
	}
	if n, err = parseCount(left); err != nil {
		return 0, 0, err
	}
	of, err = parseCount(right)
	return n, of, err
}

func parseSwitch(s string) (agent.Switch, error) {
	switch s {
	case "Enabled":
		return agent.On, nil
	case "Disabled":
		return agent.Off, nil
	}
	return agent.NotTold, fmt.Errorf("%q: want Enabled or Disabled", s)
}
