package redact

import (
	"net/netip"
	"regexp"
	"strings"
)

// labelKey replaces the key of a label: its domain where it is a user's, its
// name where no domain explains it.
func (r *Redactor) labelKey(key string) string {
	prefix, name, ok := strings.Cut(key, "/")
	switch {
	case !ok:
		if plain(key) || installed[key] {
			return key
		}
		r.Learn(key)
		return r.Name(key)
	case prefix == "node-role.kubernetes.io" && !plain(name):
		r.Learn(name)
		return prefix + "/" + r.Name(name)
	case knownHost(prefix), wellKnownPrefix(prefix):
		return key
	}
	r.Learn(prefix)
	r.Learn(name)
	to := r.Name(prefix) + "/"
	if plain(name) {
		return to + name
	}
	return to + r.Name(name)
}

// labelKeyLearnt learns a key and gives it back.
func (r *Redactor) labelKeyLearnt(key string) string {
	r.labelKey(key)
	return key
}

// wellKnownPrefix holds for prefixes that are spelt the other way round.
func wellKnownPrefix(prefix string) bool {
	return strings.HasPrefix(prefix, "io.cilium") || strings.HasPrefix(prefix, "io.kubernetes") || strings.HasPrefix(prefix, "io.x-k8s") || prefix == "security.istio.io"
}

func (r *Redactor) labelValue(key, value string) string {
	if value == "" || key == "kubernetes.io/os" || key == "kubernetes.io/arch" {
		return value
	}
	if a, err := netip.ParseAddr(value); err == nil {
		r.noteAddr(a)
		return r.Addr(a).String()
	}
	r.Learn(value)
	return r.Name(value)
}

// labels replaces keys and values.
func (r *Redactor) labels(m map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		if s, ok := v.(string); ok {
			out[r.labelKey(k)] = r.labelValue(k, s)
		} else {
			out[r.labelKey(k)] = v
		}
	}
	return out
}

// annotations keeps those of Kubernetes, Cilium and distributions: their text
// is known. Of others nobody can tell what is in them, so they go.
func (r *Redactor) annotations(m map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range m {
		s, ok := v.(string)
		prefix, name, _ := strings.Cut(k, "/")
		if !ok || !knownHost(prefix) && !wellKnownPrefix(prefix) || name == "last-applied-configuration" {
			continue
		}
		switch {
		case readAnnotations[k], strings.HasSuffix(prefix, "cilium.io"), wellKnownPrefix(prefix):
			out[k] = r.read("", s)
		case s == "true" || s == "false" || numeric(s) || s == "":
			out[k] = s
		default:
			out[k] = r.scrub(s)
		}
	}
	return out
}

// readAnnotations are read by rules, which need more of them than that they are there.
var readAnnotations = map[string]bool{
	"k3s.io/node-args": true, "rke2.io/node-args": true, "endpoints.kubernetes.io/last-change-trigger-time": true, "endpoints.kubernetes.io/over-capacity": true,
	"kubeadm.alpha.kubernetes.io/cri-socket": true, "kubernetes.io/config.source": true, "service.kubernetes.io/topology-mode": true, "service.kubernetes.io/topology-aware-hints": true,
}

var stamp = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})`)

// scrub replaces every word of a text that is not printed anyway.
func (r *Redactor) scrub(s string) string {
	s = secrets(s)
	var b strings.Builder
	for i := 0; i < len(s); {
		if to, n := r.address(s, i); n > 0 {
			b.WriteString(to)
			i += n
			continue
		}
		if n := len(stamp.FindString(s[i:])); n > 0 {
			b.WriteString(s[i : i+n])
			i += n
			continue
		}
		if !alnum(s[i]) {
			b.WriteByte(s[i])
			i++
			continue
		}
		end := tokenEnd(s, i)
		if word := s[i:end]; word == dropped {
			b.WriteString(word)
		} else {
			r.Learn(word)
			b.WriteString(r.Name(word))
		}
		i = end
	}
	return b.String()
}
