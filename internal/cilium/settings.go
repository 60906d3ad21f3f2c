package cilium

import (
	"slices"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
)

// Setting is one key of the ConfigMap cilium-config that decides how Services,
// masquerading and routing work, with the other names it goes by.
type Setting struct {
	Key  string // in cilium-config, "" for what the chart turns into something else
	Helm string // path of the chart's value, "bpf.masquerade"; "" where the chart has none
	Kind Kind
	// Values are the words that some version takes; empty for any.
	Values []string
	// Runtime are the names that `config --all` prints it under, of any version.
	Runtime []string
	// Since and Gone are minor versions, "1.16": the first with the key and the
	// first without. "" where every version from 1.14 to 1.20 has it.
	Since, Gone string
	// Instead says what to set where the key is gone.
	Instead string
	// Default is what an agent without the key does, "" where it depends on the
	// version or the node.
	Default string
	// Forced is what an agent runs whatever it was told, as long as it replaces
	// kube-proxy; "" where nothing is forced.
	Forced string
	// Auto: told "" or "auto", the agent chooses by itself.
	Auto bool

	status func(*agent.Status) string
}

// Kind says how two spellings of a value compare.
type Kind uint8

// The kinds of values.
const (
	Bool   Kind = iota // true, enabled, on and their opposites
	Word               // one of few words, in any case
	Number             // decimal
	List               // words in any order, by blanks or commas
	Range              // two ports
	Text               // as it stands
	Globs              // devices, where "eth+" stands for all that begin with eth
)

// Presence tells whether an agent of one version knows a key.
type Presence uint8

// The presences of a key.
const (
	Unclear Presence = iota // the version is not known
	Present
	NotYet
	Removed
)

// SettingOf finds a setting by its key in cilium-config.
func SettingOf(key string) (Setting, bool) {
	return find(func(s Setting) bool { return s.Key == key && key != "" })
}

// SettingOfHelm finds a setting by the path of its value in the chart.
func SettingOfHelm(path string) (Setting, bool) {
	return find(func(s Setting) bool { return s.Helm == path && path != "" })
}

func find(ok func(Setting) bool) (Setting, bool) {
	all := Settings()
	if i := slices.IndexFunc(all, ok); i >= 0 {
		return all[i], true
	}
	return Setting{}, false
}

// In tells whether a version has the setting.
func (s Setting) In(c Capabilities) Presence {
	if !c.known {
		if s.Since == "" && s.Gone == "" {
			return Present
		}
		return Unclear
	}
	if first, ok := parseRelease(s.Since); ok && c.release.before(first) {
		return NotYet
	}
	if gone, ok := parseRelease(s.Gone); ok && !c.release.before(gone) {
		return Removed
	}
	return Present
}

// Running is the value that `config --all` shows, as printed; false where that
// version prints none.
func (s Setting) Running(c agent.Config) (string, bool) {
	for _, name := range s.Runtime {
		if v, ok := c[name]; ok {
			return v, true
		}
	}
	return "", false
}

// InStatus is the value that the status shows, in the words of cilium-config;
// false where the status does not tell.
func (s Setting) InStatus(st *agent.Status) (string, bool) {
	if s.status == nil || st == nil {
		return "", false
	}
	v := s.status(st)
	return v, v != ""
}

// Same tells whether told, a value of cilium-config, is what runs. A value that
// leaves the choice to the agent is the same as any. No means that both are
// understood and differ; Unknown that one of them is not.
func (s Setting) Same(told, runs string) lb.Answer {
	if s.Auto && (told == "" || strings.EqualFold(told, "auto")) {
		return lb.Yes
	}
	if s.Kind == Globs {
		return globs(words(told), words(runs))
	}
	a, okA := s.Normal(told)
	b, okB := s.Normal(runs)
	if !okA || !okB {
		return lb.Unknown
	}
	return lb.AnswerOf(a == b)
}

// Normal is the one spelling of a value; false for one that no version takes.
func (s Setting) Normal(v string) (string, bool) {
	v = strings.TrimSpace(v)
	switch s.Kind {
	case Bool:
		return normalBool(s.Key, v)
	case Word:
		v = synonym(s.Key, strings.ToLower(v))
		return v, len(s.Values) == 0 || slices.Contains(s.Values, v)
	case Number:
		v = strings.TrimSpace(v)
		return v, v != "" && strings.Trim(v, "0123456789.") == ""
	case Range:
		parts := strings.FieldsFunc(v, func(r rune) bool { return strings.ContainsRune("[], -", r) })
		return strings.Join(parts, "-"), len(parts) == 2 && strings.Trim(strings.Join(parts, ""), "0123456789") == ""
	case List, Globs:
		w := words(v)
		slices.Sort(w)
		return strings.Join(w, " "), true
	}
	return v, true
}

// normalBool also reads the words of 1.9 to 1.15 for the replacement as a
// whole. "partial" and "probe" are neither.
func normalBool(key, v string) (string, bool) {
	switch strings.ToLower(v) {
	case "true", "enabled", "on", "1", "t", "yes":
		return "true", true
	case "false", "disabled", "off", "0", "f", "no":
		return "false", true
	case "strict":
		return "true", key == kprKey
	case "partial", "probe":
		return strings.ToLower(v), key == kprKey
	}
	return v, false
}

// synonym joins the words for one thing: the status and the flags differ.
func synonym(key, v string) string {
	switch {
	case key == "bpf-lb-acceleration" && v == "none":
		return "disabled"
	case key == "bpf-lb-acceleration" && v == "generic":
		return "testing-only"
	case key == "bpf-lb-dsr-dispatch" && strings.HasPrefix(v, "ip option"):
		return "opt"
	}
	return v
}

func words(v string) []string {
	return strings.FieldsFunc(v, func(r rune) bool { return strings.ContainsRune("[], \t\n", r) })
}

// globs is No where a device runs that nobody asked for. One that was asked for
// and does not run may just not be there on this node.
func globs(told, runs []string) lb.Answer {
	for _, d := range runs {
		if !slices.ContainsFunc(told, func(p string) bool { return device(p, d) }) {
			return lb.No
		}
	}
	for _, p := range told {
		if !strings.HasSuffix(p, "+") && !slices.Contains(runs, p) {
			return lb.Unknown
		}
	}
	return lb.Yes
}

func device(pattern, name string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "+"); ok {
		return strings.HasPrefix(name, prefix)
	}
	return pattern == name
}
