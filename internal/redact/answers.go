package redact

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// namedIn are the keys of agents' JSON whose values are names, by topic.
var namedIn = map[source.Topic]map[string]bool{
	source.ServiceList:    {"name": true, "namespace": true, "nodeName": true, "zone": true, "cluster": true},
	source.FrontendsTable: {"ServiceName": true, "NodeName": true, "Zone": true, "Name": true, "Namespace": true, "Cluster": true, "RedirectTo": true},
	source.HealthChecks:   {"name": true, "namespace": true},
	source.Status:         {"self": true},
	source.AgentLog:       {"namespace": true},
}

var portsIn = map[string]bool{"PortName": true, "PortNames": true, "port-name": true, "portName": true}

// answer replaces in JSON that is no object of Kubernetes. The bytes between
// strings stay as they are, and so do keys that hold no address.
func (r *Redactor) answer(t source.Topic, data []byte) []byte {
	if r.learning && t == source.Status {
		for _, m := range remoteJSON.FindAllSubmatch(data, -1) {
			r.Learn(string(m[1]))
		}
	}
	var out bytes.Buffer
	out.Grow(len(data) + len(data)/8)
	key := ""
	for i := 0; i < len(data); {
		if data[i] != '"' {
			end := bytes.IndexByte(data[i:], '"')
			if end < 0 {
				end = len(data) - i
			}
			out.Write(data[i : i+end])
			i += end
			continue
		}
		end := stringEnd(data, i)
		text, plain := unquoted(data[i:end])
		isKey := colonNext(data, end)
		var to string
		switch {
		case isKey:
			if key = text; !holdsAddress(text) {
				out.Write(data[i:end])
				i = end
				continue
			}
			to = r.Text(text)
		default:
			to = r.answered(t, key, text)
		}
		if to == text && plain {
			out.Write(data[i:end])
		} else {
			out.WriteString(requoted(to))
		}
		i = end
	}
	return out.Bytes()
}

// answered replaces in a value.
func (r *Redactor) answered(t source.Topic, key, text string) string {
	switch {
	case text == "":
		return text
	case portsIn[key]:
		r.learnPort(text)
	case namedIn[t][key], key == "nodeName":
		r.learnField(text)
	case t == source.Status && strings.Contains(text, "/"):
		r.learnAllocation(text)
	}
	if bulky[t] {
		return r.Text(text)
	}
	return r.read(t, text)
}

// learnAllocation takes who has an address, "shop/web-0 [restored]", and the
// nodes in a cluster's health, "prod/w-1".
func (r *Redactor) learnAllocation(text string) {
	if m := inSlash.FindStringSubmatch(text); m != nil && strings.HasPrefix(text, m[1]+"/") && !strings.Contains(text, "://") && strings.Count(text, "/") == 1 && !strings.Contains(m[2], ":") {
		rest := text[len(m[1])+1+len(m[2]):]
		if rest == "" || strings.HasPrefix(rest, " [") {
			r.Learn(m[1])
			r.Learn(m[2])
		}
	}
}

func stringEnd(data []byte, i int) int {
	for i++; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(data)
}

func colonNext(data []byte, i int) bool {
	for i < len(data) && (data[i] == ' ' || data[i] == '\n' || data[i] == '\t' || data[i] == '\r') {
		i++
	}
	return i < len(data) && data[i] == ':'
}

// unquoted is the text of a string literal; plain if it is written as it is.
func unquoted(lit []byte) (text string, plain bool) {
	if len(lit) < 2 || lit[len(lit)-1] != '"' {
		return string(lit), false
	}
	inner := lit[1 : len(lit)-1]
	if bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return string(inner), true
	}
	var s string
	if json.Unmarshal(lit, &s) != nil {
		return string(inner), false
	}
	return s, false
}

func requoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return strconv.Quote(s)
	}
	return string(b)
}

// holdsAddress holds for keys of the maps' lists: "10.96.0.1:443/TCP (0)".
func holdsAddress(key string) bool {
	return strings.Count(key, ".") >= 3 || strings.Count(key, ":") >= 2 || strings.Contains(key, "/")
}
