package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// certificate writes a certificate of 127.0.0.1 and its key, and returns a
// client that trusts it.
func certificate(t *testing.T) (certFile, keyFile string, client *http.Client) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	write := func(name, kind string, b []byte) string {
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o600))
		return path
	}
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", secret), &http.Client{Transport: transport}
}

func TestHTTPS(t *testing.T) {
	certFile, keyFile, client := certificate(t)
	s, said := serve(t, nil, "--data-dir", filepath.Join(t.TempDir(), "data"), "--tls-cert", certFile, "--tls-key", keyFile)
	require.Contains(t, said, "docs  https://127.0.0.1:")
	s.client = client
	status, got := s.call(http.MethodGet, "/readyz", "", "")
	require.Equal(t, http.StatusOK, status, "%v", got)
	s.end()
}

func TestSIGHUPServesTheRenewedCertificate(t *testing.T) {
	certFile, keyFile, old := certificate(t)
	s, _ := serve(t, nil, "--data-dir", filepath.Join(t.TempDir(), "data"), "--tls-cert", certFile, "--tls-key", keyFile)
	s.client = old
	status, _ := s.call(http.MethodGet, "/readyz", "", "")
	require.Equal(t, http.StatusOK, status)

	newCert, newKey, renewed := certificate(t)
	for from, to := range map[string]string{newCert: certFile, newKey: keyFile} {
		b, err := os.ReadFile(from) //nolint:gosec // the test's own
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(to, b, 0o600))
	}
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGHUP))
	require.Eventually(t, func() bool {
		res, err := renewed.Get(s.base + "/readyz")
		return err == nil && res.Body.Close() == nil && res.StatusCode == http.StatusOK
	}, time.Minute, 5*time.Millisecond, "the renewed certificate is served")

	// Files that cannot be used leave the pair in use.
	require.NoError(t, os.WriteFile(certFile, []byte("not a certificate"), 0o600))
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGHUP))
	require.Eventually(t, func() bool { return strings.Contains(s.log.String(), "the certificate stays as it was") },
		time.Minute, 5*time.Millisecond, "the log says that the files cannot be used")
	renewed.CloseIdleConnections()
	s.client = renewed
	status, _ = s.call(http.MethodGet, "/readyz", "", "")
	require.Equal(t, http.StatusOK, status)
	s.end()
}

func TestAuthOffNeedsNoKey(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s, said := serve(t, nil, "--data-dir", dir, "--auth", "off")
	require.Contains(t, said, "auth  off")
	require.NotContains(t, said, "Authorization")
	require.NoFileExists(t, filepath.Join(dir, keyFile), "a key that nobody needs")
	status, got := s.call(http.MethodPost, "/v1/sessions", "", `{"user":"alice"}`)
	require.Equal(t, http.StatusCreated, status, "%v", got)
	s.end()
}

func TestAnAddressThatTheWelcomeNamesCanBeAsked(t *testing.T) {
	for addr, want := range map[string]string{
		"0.0.0.0:80": "localhost:80", "[::]:8080": "localhost:8080",
		"127.0.0.1:8080": "127.0.0.1:8080", "[::1]:8080": "[::1]:8080", "10.1.2.3:443": "10.1.2.3:443",
	} {
		tcp, err := net.ResolveTCPAddr("tcp", addr)
		require.NoError(t, err)
		require.Equal(t, want, reachable(tcp))
	}
}
