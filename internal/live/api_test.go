package live

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	osexec "os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/agent"
	"github.com/kubectl-kpr/kubectl-kpr/pkg/exec"
)

// locally runs what is meant for an agent's pod here, in its environment.
func locally(env ...string) runner {
	return func(ctx context.Context, argv []string, s exec.Streams) (int, error) {
		cmd := osexec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Env = append([]string{"PATH=/usr/bin:/bin", "LC_ALL=C"}, env...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = s.Stdin, s.Stdout, s.Stderr
		return 0, cmd.Run()
	}
}

func TestAPIProbe(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.URL.Path != "/readyz" || r.Header.Get("Authorization") != "Bearer secret" {
			w.WriteHeader(http.StatusUnauthorized)
		}
		_, _ = w.Write([]byte("ok"))
	}))
	defer server.Close()
	host, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	closed := httptest.NewServer(http.NotFoundHandler())
	_, nobody, _ := net.SplitHostPort(closed.Listener.Addr().String())
	closed.Close()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	go func() {
		if c, err := silent.Accept(); err == nil {
			_ = c.Close()
		}
	}()
	_, hangup, _ := net.SplitHostPort(silent.Addr().String())
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for name, test := range map[string]struct {
		env   []string
		to    address
		token string
		want  agent.APIProbe
		words string
		asked int32
	}{
		"as the agent dials":       {env: []string{"KUBERNETES_SERVICE_HOST=" + host, "KUBERNETES_SERVICE_PORT=" + port}, token: "secret", want: agent.APIProbe{Host: host, Port: port, Connected: true, Verified: true, Status: 200}, asked: 1},
		"as cilium-config says":    {to: address{host: host, port: port}, token: "secret", want: agent.APIProbe{Host: host, Port: port, Connected: true, Verified: true, Status: 200}, asked: 1},
		"credentials of elsewhere": {to: address{host: host, port: port}, token: "else", want: agent.APIProbe{Host: host, Port: port, Connected: true, Verified: true, Status: 401}, words: "answers 401", asked: 1},
		"another name":             {to: address{host: "localhost", port: port}, token: "secret", want: agent.APIProbe{Host: "localhost", Port: port, Connected: true}, words: "does not name this host"},
		"nobody there":             {to: address{host: host, port: nobody}, token: "secret", want: agent.APIProbe{Host: host, Port: nobody}, words: "Connection refused"},
		"no TLS":                   {to: address{host: host, port: hangup}, token: "secret", want: agent.APIProbe{Host: host, Port: hangup, Connected: true}, words: "TLS"},
		"no such host":             {to: address{host: "no-such-host.invalid", port: port}, want: agent.APIProbe{Host: "no-such-host.invalid", Port: port}, words: "not known"},
	} {
		t.Run(name, func(t *testing.T) {
			asked.Store(0)
			who, err := newCredentials(&rest.Config{Host: "https://elsewhere", BearerToken: test.token, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, ca)
			if err != nil {
				t.Fatal(err)
			}
			got, err := who.probe(t.Context(), locally(test.env...), test.to)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(got.Error, test.words) || (got.Error == "") != (test.words == "") {
				t.Errorf("error %q: want %q", got.Error, test.words)
			}
			if got.Took <= 0 {
				t.Error("it took no time")
			}
			if got.Error, got.Took = "", 0; got != test.want {
				t.Errorf("%+v\nwant %+v", got, test.want)
			}
			if asked.Load() != test.asked {
				t.Errorf("%d requests", asked.Load())
			}
		})
	}
	t.Run("another cluster", func(t *testing.T) {
		asked.Store(0)
		stranger := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: selfSigned(t)})
		who, err := newCredentials(&rest.Config{Host: "https://elsewhere", BearerToken: "secret"}, stranger)
		if err != nil {
			t.Fatal(err)
		}
		got, err := who.probe(t.Context(), locally(), address{host: host, port: port})
		if err != nil || got.Verified || !got.Connected || !strings.Contains(got.Error, "not signed by the cluster's CA") || asked.Load() != 0 {
			t.Errorf("%+v, %v, %d requests", got, err, asked.Load())
		}
	})
	if _, err := newCredentials(&rest.Config{Host: "https://elsewhere"}, nil); err == nil {
		t.Error("credentials without a CA")
	}
}

func selfSigned(t *testing.T) []byte {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}
