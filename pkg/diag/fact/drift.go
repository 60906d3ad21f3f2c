package fact

import (
	"errors"
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/internal/cilium"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// Facts about what agents were told and what they run.
var (
	// Running are the settings of a node's agent as it runs.
	Running = Read(source.Config, func(a source.Artifact) (agent.Config, error) {
		if a.Format == source.JSON {
			return cilium.DecodeConfigJSON(a.Data)
		}
		return cilium.DecodeConfigText(a.Data)
	})
	// Drift has a row for each setting that a node's agent was told, or shows.
	Drift = Define("config-drift", true, []Named{Config, Running, Status}, drift)
)

// The marks of a row.
const (
	MarkPending = "restart pending"
	MarkDropped = "silently dropped"
	MarkForced  = "forced by KPR"
	MarkGone    = "gone in this version"
)

// DriftRow is one setting of one node.
type DriftRow struct {
	Key   string
	Told  string // what the agent reads at its next start, "" where the key is not there
	By    string // the CiliumNodeConfig that says so, "" for cilium-config
	Runs  string // as printed; true or false of switches
	Known bool   // whether the agent shows it
	Seen  string // where: "config" or "status"
	Mark  string // "" where both are the same, or one of them cannot be read
	Why   string // of a mark, in words
}

// drift compares only what both sides spell in ways that are known: agents
// normalise and compute values, and one that differs in spelling is no news.
// Keys that nobody sets have a default that depends on the version, so they
// are shown and not judged.
func drift(v *View) ([]DriftRow, error) {
	told, err := Config.From(v)
	if err != nil {
		return nil, err
	}
	st, statusErr := Status.From(v)
	config, configErr := Running.From(v)
	if st == nil && len(config) == 0 {
		return nil, errors.Join(statusErr, configErr)
	}
	var caps cilium.Capabilities
	if st != nil {
		caps = cilium.CapabilitiesOf(st.Version)
	}
	var rows []DriftRow
	for _, s := range cilium.Settings() {
		if s.Key == "" {
			continue
		}
		value, set := told.Data[s.Key]
		row := DriftRow{Key: s.Key, Told: value, By: told.From[s.Key]}
		// The status is what came of it; config may still show what was asked for.
		if row.Runs, row.Known = s.InStatus(st); row.Known {
			row.Seen = "status"
		} else if row.Runs, row.Known = s.Running(config); row.Known {
			row.Seen = "config"
		}
		if !set && !row.Known {
			continue
		}
		if normal, ok := s.Normal(row.Runs); ok && row.Known && s.Kind == cilium.Bool {
			row.Runs = normal // old and new names of one option print true and Enabled
		}
		if set {
			row.Mark, row.Why = driftMark(s, row, told, st, caps)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func driftMark(s cilium.Setting, row DriftRow, told Settings, st *agent.Status, caps cilium.Capabilities) (mark, why string) {
	if s.In(caps) == cilium.Removed {
		return MarkGone, "nothing reads it from " + s.Gone + " on"
	}
	if !row.Known || s.Same(row.Told, row.Runs) != lb.No || strings.EqualFold(row.Told, "probe") {
		return "", ""
	}
	replaced := st != nil && st.Mode == agent.ModeTrue
	if s.Forced != "" && replaced && s.Same(s.Forced, row.Runs) == lb.Yes {
		return MarkForced, "the replacement turns it on"
	}
	if why := dropped(s, row, told, st); why != "" {
		return MarkDropped, why
	}
	return MarkPending, "the agent has started with another value"
}

// dropped says why an agent does not follow, where it would not after a
// restart either.
func dropped(s cilium.Setting, row DriftRow, told Settings, st *agent.Status) string {
	off := func(key string) bool { return slices.Contains([]string{"false", "disabled"}, told.Data[key]) }
	switch s.Key {
	case "enable-host-legacy-routing":
		switch {
		case row.Told != "false" || st == nil:
			return ""
		case st.Masquerade.Mode != "" && !strings.EqualFold(st.Masquerade.Mode, "bpf") && !strings.EqualFold(st.Masquerade.Mode, "disabled"):
			return "BPF host routing needs BPF masquerade; the agent fell back"
		case st.Mode == agent.ModeFalse:
			return "BPF host routing needs kube-proxy-replacement; the agent fell back"
		}
	case "enable-ipv4-masquerade":
		if off("enable-ipv4") {
			return "IPv4 is off"
		}
	case "enable-ipv6-masquerade":
		if off("enable-ipv6") {
			return "IPv6 is off"
		}
	case "enable-bpf-masquerade":
		if off("enable-ipv4-masquerade") && off("enable-ipv6-masquerade") {
			return "nothing is masqueraded"
		}
	case "bpf-lb-sock-hostns-only", "trace-sock":
		if st != nil && st.SocketLB == agent.Off {
			return "socket LB is off"
		}
	}
	return ""
}
