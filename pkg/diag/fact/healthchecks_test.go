package fact

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/lb"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

const checkOfCilium = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n\r\n{\"service\":{\"namespace\":\"infra\",\"name\":\"front\"},\"localEndpoints\":0}\n"

const checkOfKubeProxy = `{
	"service": {
		"namespace": "web",
		"name": "front"
	},
	"localEndpoints": 2,
	"serviceProxyHealthy": true
}`

const checkVerbose = `* Connected to 127.0.0.1 (127.0.0.1) port 30009
< HTTP/1.1 200 OK
< Content-Type: application/json
{ [95 bytes data]
` + checkOfKubeProxy + `
* Connection #0 to host 127.0.0.1 left intact`

func TestDecodeHealthChecks(t *testing.T) {
	front := lb.Name{Namespace: "web", Name: "front"}
	for name, tt := range map[string]struct {
		data    string
		want    []HealthCheck
		healthy bool
		bad     bool
	}{
		"nothing":          {data: "\n"},
		"curl -i":          {data: "# file: healthcheck-31220.txt\n" + checkOfCilium, want: []HealthCheck{{Port: 31220, Code: 503, Counted: true, Service: lb.Name{Namespace: "infra", Name: "front"}}}},
		"curl -s":          {data: "# file: healthcheck-30009.txt\n" + checkOfKubeProxy, want: []HealthCheck{{Port: 30009, Counted: true, Local: 2, Service: front}}, healthy: true},
		"curl -v":          {data: "# file: healthcheck-30009.txt\n" + checkVerbose, want: []HealthCheck{{Port: 30009, Code: 200, Counted: true, Local: 2, Service: front}}, healthy: true},
		"curl refused":     {data: "# file: healthcheck-1.txt\ncurl: (7) Failed to connect to 127.0.0.1 port 1 after 0 ms: Connection refused\n", want: []HealthCheck{{Port: 1, Refused: true}}},
		"knock refused":    {data: "# file: healthcheck-1.txt\nconnect: refused 127.0.0.1:1\nconnect: refused ::1:1\n", want: []HealthCheck{{Port: 1, Refused: true}}},
		"one family":       {data: "# file: healthcheck-1.txt\nconnect: refused ::1:1\nconnect: open 127.0.0.1:1\nHTTP/1.0 200 OK\n\n", want: []HealthCheck{{Port: 1, Code: 200}}, healthy: true},
		"a status alone":   {data: "# file: healthcheck-1.txt\nHTTP/2 503\n", want: []HealthCheck{{Port: 1, Code: 503}}},
		"negative":         {data: "# file: healthcheck-1.txt\n{\"localEndpoints\":-3}\n", want: []HealthCheck{{Port: 1, Counted: true}}},
		"two":              {data: "# file: healthcheck-1.txt\nHTTP/1.1 200 OK\n# file: healthcheck-2.txt\nHTTP/1.1 503 x\n", want: []HealthCheck{{Port: 1, Code: 200}, {Port: 2, Code: 503}}, healthy: true},
		"no name":          {data: checkOfCilium, bad: true},
		"no port":          {data: "# file: healthcheck-front.txt\n" + checkOfCilium, bad: true},
		"port too large":   {data: "# file: healthcheck-70000.txt\n" + checkOfCilium, bad: true},
		"nothing in it":    {data: "# file: healthcheck-1.txt\ncommand not found\n", bad: true},
		"second is broken": {data: "# file: healthcheck-1.txt\nHTTP/1.1 200 OK\n# file: healthcheck-2.txt\n", want: []HealthCheck{{Port: 1, Code: 200}}, healthy: true, bad: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := decodeHealthChecks(source.Artifact{Data: []byte(tt.data)})
			if (err != nil) != tt.bad {
				t.Fatalf("error %v, want one: %t", err, tt.bad)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if len(got) > 0 && got[0].Healthy() != tt.healthy {
				t.Errorf("Healthy is %t", got[0].Healthy())
			}
		})
	}
}

func FuzzHealthChecks(f *testing.F) {
	for _, seed := range []string{checkOfCilium, checkVerbose, "connect: refused ::1:1\n", "{{{{{{"} {
		f.Add([]byte("# file: healthcheck-30009.txt\n" + seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := decodeHealthChecks(source.Artifact{Data: data})
		if err == nil && len(got) > len(data) {
			t.Errorf("%d answers in %d bytes", len(got), len(data))
		}
		for _, h := range got {
			if h.Port < 1 || h.Port > 65535 || h.Local < 0 || h.Refused && h.Healthy() {
				t.Errorf("%+v", h)
			}
		}
	})
}
