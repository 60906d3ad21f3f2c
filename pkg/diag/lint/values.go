package lint

import (
	"fmt"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/internal/cilium"
	"github.com/kubectl-kpr/kubectl-kpr/internal/yamlfile"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag"
)

// extra is the object whose members go into cilium-config as they are.
const extra = "extraConfig."

func (l *linter) values() {
	l.twice()
	l.names()
	l.words()
	l.combinations()
	l.apiServer()
	l.replacement()
}

// at is the place of a path's key; the first file's first line where it is not
// there.
func (l *linter) at(path string) place {
	if p, ok := l.places[path]; ok {
		return p
	}
	return place{l.in.Values.Files[0], 1}
}

// value is a value as a word; ok is false where it is null or not there.
func (l *linter) value(path string) (string, bool) {
	text, _, ok := l.in.Values.Value(path)
	return text, ok
}

// setting is what cilium-config will hold for a key, as far as these files say:
// "" where they leave it to the chart.
func (l *linter) setting(key string) string {
	if v, ok := l.value(extra + key); ok {
		return v
	}
	if s, ok := cilium.SettingOf(key); ok {
		if v, ok := l.value(s.Helm); ok && s.Helm != "" {
			return v
		}
	}
	if on, _ := l.value("encryption.enabled"); on == "true" {
		kind, ok := l.value("encryption.type")
		switch {
		case key == "enable-ipsec" && (!ok || kind == "ipsec"), key == "enable-wireguard" && kind == "wireguard":
			return "true"
		}
	}
	return ""
}

// pathOf is the path that gives a key of cilium-config its value.
func (l *linter) pathOf(key string) (path string, ok bool) {
	if _, ok := l.places[extra+key]; ok {
		return extra + key, true
	}
	s, _ := cilium.SettingOf(key)
	if _, ok := l.places[s.Helm]; ok {
		return s.Helm, true
	}
	if key == "enable-ipsec" || key == "enable-wireguard" {
		return "encryption.enabled", true
	}
	return s.Helm, false
}

func (l *linter) on(key string) bool {
	s, _ := cilium.SettingOf(key)
	v := l.setting(key)
	if v == "" {
		v = s.Default
	}
	n, _ := s.Normal(v)
	return n == "true"
}

func (l *linter) twice() {
	for _, t := range l.in.Values.Twice {
		l.find(ValuesIgnored, diag.Warning, place{t.File, t.First}, t.Path,
			fmt.Sprintf("%s stands again in line %d: this one does not count", t.Path, t.Last))
	}
}

// names finds keys that the chart does not have, or has no more.
func (l *linter) names() {
	skip := ""
	l.in.Values.Walk(func(path string, _ int, v *yamlfile.Value) {
		if skip != "" && strings.HasPrefix(path, skip) || path+"." == extra || v.Kind == yamlfile.Null {
			return
		}
		if since, ok := refused()[path]; ok && v.Kind != yamlfile.Null && l.atLeast(since) {
			skip = path + "."
			l.find(ValuesRejected, diag.Error, l.at(path), path,
				fmt.Sprintf("%s: charts from %s on fail on it%s", path, since, instead(path)))
			return
		}
		if key, ok := strings.CutPrefix(path, extra); ok {
			if s, ok := cilium.SettingOf(key); ok {
				l.presence(path, s)
			}
			return
		}
		if s, ok := cilium.SettingOfHelm(path); ok {
			l.presence(path, s)
			return
		}
		if ok, meant := known(path); !ok {
			skip = path + "."
			l.unknown(path, meant)
		}
	})
}

func instead(path string) string {
	if s, ok := cilium.SettingOfHelm(path); ok && s.Instead != "" {
		return "; set " + s.Instead
	}
	return ""
}

func (l *linter) presence(path string, s cilium.Setting) {
	if v := l.in.Values.Get(path); v == nil || v.Kind == yamlfile.Null {
		return
	}
	switch s.In(l.caps) {
	case cilium.Removed:
		then := "; set " + s.Instead
		if s.Instead == "" {
			then = ""
		} else if why, ok := strings.CutPrefix(s.Instead, "nothing: "); ok {
			then = ": " + why
		}
		l.find(ValuesIgnored, diag.Error, l.at(path), path, fmt.Sprintf("%s does nothing from Cilium %s on%s", path, s.Gone, then))
	case cilium.NotYet:
		l.find(ValuesIgnored, diag.Error, l.at(path), path,
			fmt.Sprintf("%s comes with Cilium %s; %s does not know it", path, s.Since, l.version))
	}
}

func (l *linter) unknown(path, meant string) {
	if s, ok := cilium.SettingOf(path); ok && s.Helm != "" { // a name of cilium-config
		meant = s.Helm
	}
	if meant != "" {
		l.find(ValuesIgnored, diag.Error, l.at(path), path,
			fmt.Sprintf("%s is no value of the chart and does nothing: did you mean %s?", path, meant))
		return
	}
	l.find(ValuesIgnored, diag.Warning, l.at(path), path,
		fmt.Sprintf("%s is no value that Cilium's charts are known to have: it may do nothing", path))
}

// words finds values that no version, or not this one, takes.
func (l *linter) words() {
	for _, s := range cilium.Settings() {
		if s.Helm != "" {
			l.word(s.Helm, s)
		}
		if s.Key != "" {
			l.word(extra+s.Key, s)
		}
	}
}

func (l *linter) word(path string, s cilium.Setting) {
	v := l.in.Values.Get(path)
	if v == nil || v.Kind == yamlfile.Null {
		return
	}
	if v.Kind == yamlfile.Object {
		l.find(ValuesRejected, diag.Error, l.at(path), path, fmt.Sprintf("%s is an object of keys; it takes %s", path, wants(s, false)))
		return
	}
	text, _ := l.value(path)
	n, ok := s.Normal(text)
	old := s.Key == "kube-proxy-replacement" && l.atLeast("1.16")
	switch {
	case text == "" && (s.Kind != cilium.Bool || s.Auto):
		return
	case old && n == "true" && strings.EqualFold(text, "strict"), old && (n == "partial" || n == "probe" || strings.EqualFold(text, "disabled")):
		to := map[string]string{"strict": "true", "disabled": "false"}[strings.ToLower(text)]
		l.find(ValuesRejected, diag.Error, l.at(path), path, fmt.Sprintf(
			"%s: %s was taken up to 1.15; the chart of %s takes true or false and fails on it. It meant %s", path, text, l.version, or(to, "parts of what true turns on; choose true or false")))
	case !ok:
		m := fmt.Sprintf("%s: %q is no value for it; it takes %s", path, text, wants(s, old))
		if meant := nearest(text, s.Values); meant != "" {
			m += ": did you mean " + meant + "?"
		}
		l.find(ValuesRejected, diag.Error, l.at(path), path, m)
	}
}

func wants(s cilium.Setting, boolOnly bool) string {
	switch {
	case len(s.Values) > 0 && !boolOnly && s.Kind != cilium.Bool:
		return strings.Join(s.Values, ", ")
	case s.Kind == cilium.Bool:
		return "true or false"
	case s.Kind == cilium.Number:
		return "a number"
	case s.Kind == cilium.Range:
		return `two ports, "30000,32767"`
	}
	return "text"
}

// combinations finds values that end an agent when it starts.
func (l *linter) combinations() {
	for _, f := range cilium.StartFaults(l.setting, l.caps) {
		if f.Keys[0] == "kube-proxy-replacement" {
			continue // the words have been judged
		}
		path, there := "", false
		for _, key := range f.Keys {
			if path, there = l.pathOf(key); there {
				break
			}
		}
		l.find(ValuesRejected, diag.Error, l.at(path), path, fmt.Sprintf("agents of %s exit at start: %s", l.version, f.Why))
	}
	if strings.EqualFold(l.setting("routing-mode"), "native") && l.needsNativeRange() {
		path, _ := l.pathOf("routing-mode")
		l.find(ValuesRejected, diag.Error, l.at(path), path,
			"native routing with masquerade for IPv4 needs ipv4NativeRoutingCIDR, the range that is not masqueraded; the chart or the agent refuses to go on without")
	}
}

// needsNativeRange leaves out the clouds whose range the agent finds by itself.
func (l *linter) needsNativeRange() bool {
	for _, path := range []string{"eni.enabled", "azure.enabled", "alibabacloud.enabled", "gke.enabled", "ipMasqAgent.enabled", "nativeRoutingCIDRFromClusterPool"} {
		if v, _ := l.value(path); v == "true" {
			return false
		}
	}
	switch mode, _ := l.value("ipam.mode"); mode {
	case "eni", "azure", "alibabacloud", "delegated-plugin":
		return false
	}
	return l.on("enable-ipv4") && l.on("enable-ipv4-masquerade") && l.setting("ipv4-native-routing-cidr") == "" && l.setting("native-routing-cidr") == ""
}

func or(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}
