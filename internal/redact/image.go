package redact

import "strings"

// image replaces the registry and the path of an image, and not its tag.
func (w walk) image(s string) string {
	host, rest, ok := strings.Cut(s, "/")
	if !ok || !strings.ContainsAny(host, ".:") {
		return w.r.path(s)
	}
	if !knownHost(strings.Split(host, ":")[0]) {
		host = w.r.scrub(host)
	}
	name, digest, ok := strings.Cut(rest, "@")
	name, tag, tagged := strings.Cut(name, ":")
	out := host + "/" + w.r.path(name)
	if tagged {
		out += ":" + w.r.Text(tag)
	}
	if ok {
		out += "@" + digest
	}
	return out
}

// path replaces in the repository of an image; what it is an image of stays.
func (r *Redactor) path(s string) string {
	var b strings.Builder
	for p := range pieces2(s, "/-_.:") {
		bare := strings.TrimRight(p, "/-_.:")
		b.WriteString(r.part(bare, true) + p[len(bare):])
	}
	return b.String()
}
