package redact

import (
	"encoding/base32"
	"encoding/hex"
	"regexp"
	"strings"
)

// special replaces words that are no names: chain hashes, UUIDs, addresses in
// hexadecimal, addresses with dashes.
func (r *Redactor) special(t string) (string, bool) {
	switch {
	case strings.HasPrefix(t, "KUBE-"):
		return r.chain(t), true
	case len(t) == 36 && t[8] == '-' && uuid.MatchString(t):
		return r.uuid(t), true
	}
	if to, ok := r.hexed(t); ok {
		return to, true
	}
	if len(t) == 10 && (t[:2] == "0x" || t[:2] == "0X") {
		if to, ok := r.hexed(t[2:]); ok {
			return t[:2] + to, true
		}
	}
	if dashedAddr.MatchString(t) {
		return r.dottedLabels(t), true
	}
	if m := nftChain.FindStringSubmatch(t); m != nil {
		return m[1] + r.hash(m[2]) + "-" + r.token(m[3]), true
	}
	return t, false
}

var (
	uuid       = regexp.MustCompile(`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`)
	dashedAddr = regexp.MustCompile(`(?:^|[-.])(?:25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])(?:-(?:25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])){3}(?:[.-]|$)`)
	chainHash  = regexp.MustCompile(`^(KUBE-[A-Z]{2,4}-)([A-Z2-7]{16})$`)
	// nftChain is the beginning of a chain or set of kube-proxy's nftables mode: service-ULMVA6XW-ns/svc/tcp/p80.
	nftChain = regexp.MustCompile(`^((?:service|local|external|endpoint|firewall|affinity)-)([A-Z2-7]{8})-(.+)$`)
)

// dottedLabels replaces the addresses in the labels of a host's name; the other
// labels are words like any.
func (r *Redactor) dottedLabels(t string) string {
	labels := strings.Split(t, ".")
	for i, l := range labels {
		if dashedAddr.MatchString(l) {
			labels[i] = r.label(l)
		} else {
			labels[i] = r.token(l)
		}
	}
	return strings.Join(labels, ".")
}

// chain replaces the hash in the name of a chain: it is one of namespace, name
// and port, which can be guessed. Names without one are the same everywhere.
func (r *Redactor) chain(t string) string {
	if m := chainHash.FindStringSubmatch(t); m != nil {
		return m[1] + r.hash(m[2])
	}
	return t
}

func (r *Redactor) hash(s string) string {
	return base32.StdEncoding.EncodeToString(r.key.sum("chain", s))[:len(s)]
}

func (r *Redactor) uuid(t string) string {
	if strings.Trim(t, "0-") == "" {
		return t
	}
	h := hex.EncodeToString(r.key.sum("uuid", strings.ToLower(t)))
	return h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-a" + h[17:20] + "-" + h[20:32]
}

// dropped stands where a secret stood.
const dropped = "DROPPED"

var (
	pem     = regexp.MustCompile(`-----BEGIN [A-Z0-9 ]+-----(?s:.*?)-----END [A-Z0-9 ]+-----|-----BEGIN [A-Z0-9 ]+-----(?s:.*)\z`)
	jwt     = regexp.MustCompile(`eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*){1,2}`)
	bearer  = regexp.MustCompile(`(?i)\b((?:bearer|basic)\s+)[A-Za-z0-9+/=._~-]{8,}`)
	k3s     = regexp.MustCompile(`\bK10[0-9a-f]{64}::[^\s"',]+`)
	blob    = regexp.MustCompile(`[A-Za-z0-9+/]{80,}={0,2}`)
	email   = regexp.MustCompile(`[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}`)
	keyed   = regexp.MustCompile(`(?i)((?:\b|_)(?:password|passwd|client[-_]?secret|secret[-_]?key|access[-_]?key(?:[-_]?id)?|api[-_]?key|token|tls\.key|ca[-_]?bundle|certificate[-_]?(?:authority[-_])?data|client[-_](?:key|certificate)[-_]data)["']?\s*[=:]\s*)("(?:[^"\\]|\\.)*"|'[^']*'|[^\s,;&"'}]+)`)
	account = regexp.MustCompile(`://[^/\s:@"']+:[^/\s@"']+@`)
	arn     = regexp.MustCompile(`\barn:[a-z-]+:[a-z0-9-]*:[a-z0-9-]*:[0-9]*:[^\s"',]+`)
	digest  = regexp.MustCompile(`^[0-9a-f]+$`)
)

// secrets drops what nobody may see. It is quick where there is none.
func secrets(s string) string {
	if strings.Contains(s, "-----BEGIN ") {
		s = pem.ReplaceAllString(s, dropped)
	}
	if strings.Contains(s, "eyJ") {
		s = jwt.ReplaceAllString(s, dropped)
	}
	if strings.Contains(s, "K10") {
		s = k3s.ReplaceAllString(s, dropped)
	}
	if strings.Contains(s, "arn:") {
		s = arn.ReplaceAllString(s, dropped)
	}
	if strings.Contains(s, "://") {
		s = account.ReplaceAllString(s, "://"+dropped+"@")
	}
	if strings.Contains(s, "@") {
		s = email.ReplaceAllString(s, dropped)
	}
	if secretWord(s) {
		s = bearer.ReplaceAllString(s, "${1}"+dropped)
		s = keyed.ReplaceAllStringFunc(s, func(m string) string {
			at := keyed.FindStringSubmatchIndex(m)
			return m[:at[3]] + quotedLike(m[at[4]:])
		})
	}
	if len(s) > 80 {
		s = blob.ReplaceAllStringFunc(s, func(m string) string {
			if digest.MatchString(m) || strings.Count(m, "/") > 3 {
				return m // a hash, a path
			}
			return dropped
		})
	}
	return s
}

// quotedLike keeps what is no secret: nothing, a switch, a path.
func quotedLike(value string) string {
	switch bare := strings.Trim(value, `"'`); {
	case bare == "", bare == "true", bare == "false", bare == "null", bare == "{", bare == "[", strings.HasPrefix(bare, "/"), strings.Trim(bare, "*") == "":
		return value
	case value[0] == '"' || value[0] == '\'':
		return value[:1] + dropped + value[:1]
	}
	return dropped
}

func secretWord(s string) bool {
	low := strings.ToLower(s)
	for _, w := range []string{"bearer", "basic ", "password", "passwd", "secret", "access", "api", "token", "tls.key", "bundle", "-data"} {
		if strings.Contains(low, w) {
			return true
		}
	}
	return false
}
