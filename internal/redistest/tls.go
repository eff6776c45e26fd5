package redistest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// authority is a certificate authority of one test, and what it issued.
type authority struct {
	caFile, certFile, keyFile string
	pool                      *x509.CertPool
}

// newAuthority makes an authority and a certificate for 127.0.0.1; nil if the
// servers are not encrypted.
func newAuthority(tb testing.TB, o *Options) *authority {
	tb.Helper()
	if !o.TLS {
		return nil
	}
	dir := tb.TempDir()
	a := &authority{
		caFile: filepath.Join(dir, "ca.pem"), certFile: filepath.Join(dir, "cert.pem"), keyFile: filepath.Join(dir, "key.pem"),
		pool: x509.NewCertPool(),
	}
	must := func(err error) {
		if err != nil {
			tb.Fatalf("make certificates: %v", err)
		}
	}
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "the authority of a test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, &caKey.PublicKey, caKey)
	must(err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "redis"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: ca.NotBefore, NotAfter: ca.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, ca, &key.PublicKey, caKey)
	must(err)
	keyDER, err := x509.MarshalECPrivateKey(key)
	must(err)
	for path, block := range map[string]*pem.Block{
		a.caFile: {Type: "CERTIFICATE", Bytes: caDER}, a.certFile: {Type: "CERTIFICATE", Bytes: der},
		a.keyFile: {Type: "EC PRIVATE KEY", Bytes: keyDER},
	} {
		must(os.WriteFile(path, pem.EncodeToMemory(block), 0o600))
	}
	parsed, err := x509.ParseCertificate(caDER)
	must(err)
	a.pool.AddCert(parsed)
	return a
}

// query is the part of a URL that names the authority.
func (a *authority) query() string {
	if a == nil {
		return ""
	}
	return "?ca=" + a.caFile
}

func (a *authority) scheme() string {
	if a == nil {
		return "redis"
	}
	return "rediss"
}
