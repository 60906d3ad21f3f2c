package cluster

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/kubectl-kpr/kubectl-kpr/test/lab/place"
)

// authority is the lab's certificate authority, made anew for each run.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  crypto.Signer
}

// writePKI makes every key, certificate and kubeconfig of a run.
func writePKI(d place.Dirs, server string) error {
	ca := &authority{dir: d.Under("pki")}
	if err := os.MkdirAll(ca.dir, 0o700); err != nil {
		return err
	}
	if err := ca.found(); err != nil {
		return err
	}
	inside := "https://" + net.JoinHostPort(place.APIHost, place.APIPort)
	err := errors.Join(
		ca.tokens(),
		ca.issue("apiserver", pkix.Name{CommonName: "kube-apiserver"},
			[]string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "localhost", "kpr-cp"},
			[]string{"127.0.0.1", "10.96.0.1", "fd00:10:96::1", place.APIHost}),
		ca.issue("apiserver-kubelet-client", pkix.Name{Organization: []string{"system:masters"}, CommonName: "kube-apiserver-kubelet-client"}, nil, nil),
		ca.user("admin", pkix.Name{Organization: []string{"system:masters"}, CommonName: "admin"}, server),
		ca.user("kcm", pkix.Name{CommonName: "system:kube-controller-manager"}, inside),
		ca.user("scheduler", pkix.Name{CommonName: "system:kube-scheduler"}, inside),
	)
	for _, n := range place.Nodes() {
		subject := pkix.Name{Organization: []string{"system:nodes"}, CommonName: "system:node:" + n.Name}
		err = errors.Join(err, ca.issue(n.Name, subject, []string{n.Name}, []string{n.IP4, n.IP6}), ca.kubeconfig(n.Name, inside))
	}
	if err != nil {
		return fmt.Errorf("certificates: %w", err)
	}
	admin, err := os.ReadFile(filepath.Join(ca.dir, "admin.conf"))
	if err != nil {
		return err
	}
	return os.WriteFile(d.Kubeconfig(), admin, 0o600)
}

func (a *authority) found() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kpr-lab"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return err
	}
	a.key = key
	return a.save("ca", der, key)
}

func (a *authority) save(name string, der []byte, key any) error {
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return errors.Join(a.pem(name+".crt", "CERTIFICATE", der), a.pem(name+".key", "PRIVATE KEY", pkcs8))
}

func (a *authority) pem(name, kind string, der []byte) error {
	return os.WriteFile(filepath.Join(a.dir, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}

// tokens makes the key pair that signs service account tokens.
func (a *authority) tokens() error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	public, err2 := x509.MarshalPKIXPublicKey(key.Public())
	return errors.Join(err, err2, a.pem("sa.key", "PRIVATE KEY", private), a.pem("sa.pub", "PUBLIC KEY", public))
}

func (a *authority) issue(name string, subject pkix.Name, hosts, ips []string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 100))
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: subject, DNSNames: hosts,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, ip := range ips {
		template.IPAddresses = append(template.IPAddresses, net.ParseIP(ip))
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return err
	}
	return a.save(name, der, key)
}

func (a *authority) user(name string, subject pkix.Name, server string) error {
	return errors.Join(a.issue(name, subject, nil, nil), a.kubeconfig(name, server))
}

func (a *authority) kubeconfig(name, server string) error {
	parts := map[string]string{}
	for _, file := range []string{"ca.crt", name + ".crt", name + ".key"} {
		data, err := os.ReadFile(filepath.Join(a.dir, file))
		if err != nil {
			return err
		}
		parts[file] = base64.StdEncoding.EncodeToString(data)
	}
	return os.WriteFile(filepath.Join(a.dir, name+".conf"), fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters: [{name: kpr-lab, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: %[3]s, user: {client-certificate-data: %s, client-key-data: %s}}]
contexts: [{name: kpr-lab, context: {cluster: kpr-lab, user: %[3]s}}]
current-context: kpr-lab
`, server, parts["ca.crt"], name, parts[name+".crt"], parts[name+".key"]), 0o600)
}
