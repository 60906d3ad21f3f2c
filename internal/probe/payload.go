package probe

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/kubectl-kpr/kubectl-kpr/pkg/diag/request"
)

// payload is what is sent to ask, and the kind of the dialer's order.
func payload(ask request.Ask, host, path string) (kind string, data []byte, err error) {
	switch ask {
	case request.Connect:
		return "tcp", nil, nil
	case request.HTTP:
		return "say", fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: kubectl-kpr\r\nAccept: */*\r\nConnection: close\r\n\r\n", path, host), nil
	case request.HTTPS:
		data, err = clientHello(host)
		return "say", data, err
	case request.DNS:
		data, err = dnsQuery()
		return "send", data, err
	}
	return "send", []byte("kubectl-kpr\n"), nil
}

// clientHello is the first message of a TLS client: that it is answered proves
// the way to a server that speaks TLS, and nothing of its certificate.
func clientHello(host string) ([]byte, error) {
	here, there := net.Pipe()
	defer func() { _ = here.Close(); _ = there.Close() }()
	go func() {
		defer func() { _ = here.Close() }()                                                                                     // what is not written is not waited for
		_ = tls.Client(here, &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12, InsecureSkipVerify: true}).Handshake() //nolint:gosec // nothing is trusted, nothing is sent behind it
	}()
	b := make([]byte, 4096)
	n, err := there.Read(b)
	if err != nil {
		return nil, fmt.Errorf("TLS: %w", err)
	}
	return b[:n], nil
}

const dnsID = 0x6b70 // the two bytes "kp"

// dnsQuery asks for the addresses of the API server's Service, which every
// cluster's resolver knows; a refusal is an answer as well.
func dnsQuery() ([]byte, error) {
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: dnsID, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName("kubernetes.default.svc.cluster.local."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}},
	}
	data, err := m.Pack()
	if err != nil {
		return nil, fmt.Errorf("DNS: %w", err)
	}
	return data, nil
}

func dnsAnswer(data []byte) (string, error) {
	var p dnsmessage.Parser
	h, err := p.Start(data)
	if err != nil || h.ID != dnsID || !h.Response {
		return "", errors.New("what answers does not speak DNS")
	}
	word := map[dnsmessage.RCode]string{
		dnsmessage.RCodeSuccess: "NOERROR", dnsmessage.RCodeNameError: "NXDOMAIN", dnsmessage.RCodeServerFailure: "SERVFAIL", dnsmessage.RCodeRefused: "REFUSED",
	}[h.RCode]
	if word == "" {
		word = fmt.Sprintf("RCODE %d", h.RCode)
	}
	return word, nil
}
