package cilium

import (
	"strconv"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// Capabilities tells what an agent of one version can do. The zero value knows
// nothing and answers every question with lb.Unknown: a build whose version cannot
// be read is asked, never judged.
type Capabilities struct {
	release release
	known   bool
}

// Feature is something that an agent can do from some version on.
type Feature uint8

// The features that anything here depends on.
const (
	// BackendStates: `service list` prints the state of each backend.
	BackendStates Feature = iota + 1
	// DbgBinary: the agent's command line is called cilium-dbg.
	DbgBinary
	// HasShell: `cilium-dbg shell` runs commands inside the agent.
	HasShell
	// ProtocolInRows: frontends and backends are kept with their protocol.
	ProtocolInRows
	// HasLBTables: the shell has the load-balancing tables and lb/maps-dump.
	HasLBTables
	// WildcardRows: Service addresses have a row IP:0/ANY for unknown ports.
	WildcardRows
	// Terminating: backends that terminate stay while they serve.
	Terminating
	// InternalPolicy: internalTrafficPolicy is honoured.
	InternalPolicy
	// SurrogatesOnly: `service list` has 0.0.0.0:PORT for a NodePort and no row
	// for each node address.
	SurrogatesOnly
	// NodesSpared: node addresses get no wildcard rows, and a frontend of its
	// own there is not overwritten by NodePorts and host ports.
	NodesSpared
)

// since is the one place that knows which version began what.
func since(f Feature) (release, bool) {
	switch f {
	case BackendStates, Terminating:
		return release{1, 11, 0}, true
	case InternalPolicy:
		return release{1, 12, 0}, true
	case DbgBinary:
		return release{1, 15, 0}, true
	case HasShell, ProtocolInRows:
		return release{1, 17, 0}, true
	case HasLBTables, SurrogatesOnly:
		return release{1, 18, 0}, true
	case WildcardRows:
		return release{1, 19, 0}, true
	case NodesSpared:
		return release{1, 20, 0}, true
	}
	return release{}, false
}

// Since is the first version with the feature, such as "1.18"; "" for the
// zero Feature.
func (f Feature) Since() string {
	r, ok := since(f)
	if !ok {
		return ""
	}
	return strconv.Itoa(r.major) + "." + strconv.Itoa(r.minor)
}

// CapabilitiesOf reads a version as agents, image tags and charts spell it:
// "1.20.2", "v1.14.0-rc.0", "1.16-dev", "1.20.2 (v1.20.2-81c4b4f1)". Anything
// else gives Capabilities that answer Unknown. A pre-release counts as the
// version that it leads to.
func CapabilitiesOf(version string) Capabilities {
	r, ok := parseRelease(version)
	return Capabilities{release: r, known: ok}
}

// CapabilitiesOfImage reads the version from the tag of a container image.
// The tag of an image that is not called after Cilium says nothing.
func CapabilitiesOfImage(image string) Capabilities {
	return CapabilitiesOf(VersionOfImage(image))
}

// Has tells whether the version has the feature.
func (c Capabilities) Has(f Feature) lb.Answer {
	first, ok := since(f)
	if !ok || !c.known {
		return lb.Unknown
	}
	if c.release.before(first) {
		return lb.No
	}
	return lb.Yes
}

// String is the version as major.minor.patch, or "unknown version".
func (c Capabilities) String() string {
	if !c.known {
		return "unknown version"
	}
	return c.release.String()
}

// VersionOfImage is the version that an image's tag names, "1.20.2" of
// "quay.io/cilium/cilium:v1.20.2@sha256:…", and "" where there is none.
func VersionOfImage(image string) string {
	image, _, _ = strings.Cut(image, "@")
	slash := strings.LastIndexByte(image, '/')
	repo, tag, ok := strings.Cut(image[slash+1:], ":")
	if !ok || !strings.Contains(image[:slash+1]+repo, "cilium") {
		return ""
	}
	r, ok := parseRelease(tag)
	if !ok {
		return ""
	}
	return r.String()
}

type release struct{ major, minor, patch int }

func (r release) before(o release) bool {
	if r.major != o.major {
		return r.major < o.major
	}
	if r.minor != o.minor {
		return r.minor < o.minor
	}
	return r.patch < o.patch
}

func (r release) String() string {
	return strconv.Itoa(r.major) + "." + strconv.Itoa(r.minor) + "." + strconv.Itoa(r.patch)
}

// parseRelease wants at least major.minor. Branch builds ("1.16-dev") tell no
// patch; theirs is 0.
func parseRelease(s string) (release, bool) {
	s = strings.TrimPrefix(strings.TrimSpace(s), "v")
	var r release
	var ok bool
	if r.major, s, ok = leadingNumber(s); !ok || !strings.HasPrefix(s, ".") {
		return release{}, false
	}
	if r.minor, s, ok = leadingNumber(s[1:]); !ok {
		return release{}, false
	}
	if strings.HasPrefix(s, ".") {
		if r.patch, s, ok = leadingNumber(s[1:]); !ok {
			return release{}, false
		}
	}
	if s != "" && !strings.ContainsRune("-+ (._", rune(s[0])) {
		return release{}, false
	}
	return r, true
}

// leadingNumber reads up to four digits: no release number is longer, and a
// date or a commit is none.
func leadingNumber(s string) (n int, rest string, ok bool) {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	if i == 0 || i > 4 {
		return 0, s, false
	}
	n, err := strconv.Atoi(s[:i])
	return n, s[i:], err == nil
}
