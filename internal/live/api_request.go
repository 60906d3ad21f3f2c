package live

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/source"
)

// credentials are who asks, and by which certificates an API server of the
// cluster is known. They are shown to nobody else.
type credentials struct {
	config *transport.Config
	roots  *x509.CertPool
}

// credentials are the user's own, with the CA that pods are given: the user may
// reach the cluster through a proxy with another one.
func (s *Source) credentials(ctx context.Context, namespace string) (*credentials, error) {
	base := rest.CopyConfig(s.options.Config)
	if err := rest.LoadTLSFiles(base); err != nil {
		return nil, fmt.Errorf("kubeconfig: %w: %w", source.ErrAbsent, err)
	}
	ca := base.CAData
	if data, err := s.kube.ConfigMap(ctx, namespace, "kube-root-ca.crt"); err == nil {
		var m struct {
			Data map[string]string `json:"data"`
		}
		if json.Unmarshal(data, &m) == nil && m.Data["ca.crt"] != "" {
			ca = []byte(m.Data["ca.crt"])
		}
	}
	return newCredentials(base, ca)
}

func newCredentials(base *rest.Config, ca []byte) (*credentials, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("no CA of the cluster to verify the API server with, neither in ConfigMap kube-root-ca.crt nor in the kubeconfig: %w", source.ErrAbsent)
	}
	config, err := base.TransportConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w: %w", source.ErrAbsent, err)
	}
	config.TLS.Insecure, config.TLS.ServerName = false, ""
	config.TLS.CAData, config.TLS.CAFile, config.TLS.NextProtos = ca, "", []string{"http/1.1"}
	return &credentials{config, roots}, nil
}

// request asks for /readyz over conn. Nothing is sent before the certificate
// proved to be the cluster's and to name host.
func (w *credentials) request(ctx context.Context, conn net.Conn, host string) (verified bool, status int, err error) {
	own, err := transport.TLSConfigFor(w.config)
	if err != nil {
		return false, 0, fmt.Errorf("kubeconfig: %w", err)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if own != nil {
		c = own.Clone()
	}
	c.RootCAs, c.ServerName, c.InsecureSkipVerify = w.roots, host, false
	secure := tls.Client(conn, c)
	if err := secure.HandshakeContext(ctx); err != nil {
		return false, 0, wordTLS(err)
	}
	plain := &http.Transport{DisableKeepAlives: true, Proxy: nil, DialTLSContext: func(context.Context, string, string) (net.Conn, error) { return secure, nil }}
	wrapped, err := transport.HTTPWrappersForConfig(w.config, plain)
	if err != nil {
		return true, 0, fmt.Errorf("kubeconfig: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://kubernetes.default.svc/readyz", nil)
	if err != nil {
		return true, 0, err
	}
	client := &http.Client{Transport: wrapped, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(r)
	if err != nil {
		return true, 0, err
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 512))
	if resp.StatusCode != http.StatusOK {
		return true, resp.StatusCode, fmt.Errorf("/readyz answers %d: %.200s", resp.StatusCode, body)
	}
	return true, resp.StatusCode, nil
}

// wordTLS says what a failed handshake means here.
func wordTLS(err error) error {
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	switch {
	case errors.As(err, &unknown):
		return fmt.Errorf("its certificate is not signed by the cluster's CA: %w", err)
	case errors.As(err, &name):
		return fmt.Errorf("its certificate does not name this host: %w", err)
	case errors.Is(err, io.EOF):
		return errors.New("the connection was closed during the TLS handshake")
	}
	return fmt.Errorf("TLS: %w", err)
}
