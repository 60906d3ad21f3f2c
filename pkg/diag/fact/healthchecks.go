package fact

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// HealthChecks is what answers on the health check ports of a node, in the
// order of the evidence. Recordings alone have it.
var HealthChecks = Read(source.HealthChecks, decodeHealthChecks)

// HealthCheck is the answer of one healthCheckNodePort. kube-proxy and Cilium
// both answer with 200, or with 503 where the node has no endpoint, and a JSON
// object that counts them.
type HealthCheck struct {
	Port    int
	Refused bool    // nobody listens
	Code    int     // HTTP status; 0 where only the body was kept
	Counted bool    // the body tells Local
	Local   int     // endpoints on the node, as counted by who answers
	Service lb.Name // as the body tells; zero if it does not
}

// Healthy is what a balancer makes of the answer.
func (h HealthCheck) Healthy() bool {
	return h.Code == 200 || h.Code == 0 && h.Counted && h.Local > 0
}

// decodeHealthChecks reads answers as curl -i, curl -v or curl -s print them,
// each below a line "# file: healthcheck-PORT.txt".
func decodeHealthChecks(a source.Artifact) ([]HealthCheck, error) {
	var out []HealthCheck
	for part := range bytes.SplitSeq(append([]byte("\n"), a.Data...), []byte("\n# file: ")) {
		name, answer, _ := bytes.Cut(part, []byte("\n"))
		stem := strings.TrimSuffix(path.Base(strings.TrimSpace(string(name))), ".txt")
		digits, ok := strings.CutPrefix(stem, "healthcheck-")
		if !ok {
			if len(bytes.TrimSpace(part)) == 0 {
				continue
			}
			return out, fmt.Errorf("%.60q does not name a health check port", stem)
		}
		port, err := strconv.ParseUint(digits, 10, 16)
		if err != nil || port == 0 {
			return out, fmt.Errorf("%.60q is no port", digits)
		}
		h := healthCheck(answer)
		h.Port = int(port)
		if !h.Refused && h.Code == 0 && !h.Counted {
			return out, fmt.Errorf("port %d: neither a status, nor a count, nor a refusal in the answer", port)
		}
		out = append(out, h)
	}
	return out, nil
}

func healthCheck(answer []byte) HealthCheck {
	var h HealthCheck
	at, tries := 0, 0
	sc := bufio.NewScanner(bytes.NewReader(answer))
	for sc.Scan() {
		line := strings.TrimLeft(strings.TrimSpace(sc.Text()), "<* ")
		switch {
		case strings.HasPrefix(line, "HTTP/") && h.Code == 0:
			if f := strings.Fields(line); len(f) > 1 {
				h.Code, _ = strconv.Atoi(f[1])
			}
		case strings.HasPrefix(line, "connect: refused"), strings.Contains(strings.ToLower(line), "connection refused"):
			h.Refused = true
		case strings.HasPrefix(line, "{") && !h.Counted && tries < 8:
			tries++
			h.count(answer[at:])
		}
		at += len(sc.Bytes()) + 1
	}
	// A refusal over one family says nothing when the other one answers.
	h.Refused = h.Refused && h.Code == 0 && !h.Counted
	return h
}

// count reads the object that may begin here; curl -v opens lines of its own
// with a brace.
func (h *HealthCheck) count(text []byte) {
	var body struct {
		Service struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"service"`
		Local *int `json:"localEndpoints"`
	}
	if json.NewDecoder(bytes.NewReader(text)).Decode(&body) != nil || body.Local == nil {
		return
	}
	h.Counted, h.Local = true, max(0, *body.Local)
	h.Service = lb.Name{Namespace: body.Service.Namespace, Name: body.Service.Name}
}
