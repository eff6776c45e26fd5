package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHealthSaysWhyAServerIsNotReady asks servers that answer, but not well.
func TestHealthSaysWhyAServerIsNotReady(t *testing.T) {
	for answer, said := range map[string]string{
		`{"status":503,"code":"unavailable","detail":"shutting down"}`:             "is not ready: shutting down",
		`{"status":503,"code":"storage_full","detail":"the disk has 0 B of room"}`: "is not ready: the disk has 0 B of room",
		`<html>bad gateway</html>`: "is not ready: ",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			require.Equal(t, "/readyz", r.URL.Path)
			require.Empty(t, r.Header.Get("Authorization"), "it needs no key")
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(answer))
		}))
		t.Cleanup(server.Close)
		status, stdout, stderr := runOnce(t, nil, "health", "--server", server.URL)
		require.Equal(t, exitFailed, status)
		require.Empty(t, stdout)
		require.Contains(t, stderr, said)
	}
}

// TestHealthOfAServerWithTLS asks by the address that the server listens on, which its
// certificate does not name.
func TestHealthOfAServerWithTLS(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"status":"ready"}`))
	}))
	t.Cleanup(server.Close)
	certFile, keyFile, _ := certificate(t)
	environ := []string{
		"ROLLCALL_LISTEN=" + strings.TrimPrefix(server.URL, "https://"),
		"ROLLCALL_TLS_CERT=" + certFile, "ROLLCALL_TLS_KEY=" + keyFile,
	}
	status, stdout, stderr := runOnce(t, environ, "health")
	require.Equal(t, exitOK, status, stderr)
	require.Equal(t, "The server at "+server.URL+" is ready.\n", stdout)

	status, _, stderr = runOnce(t, nil, "health", "--server", server.URL)
	require.Equal(t, exitFailed, status, "whoever names a server wants that one")
	require.Contains(t, stderr, "certificate")
}

// runOnce runs one command line with its own variables, and returns its exit status
// and what it wrote.
func runOnce(t *testing.T, environ []string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	t.Setenv("XDG_CONFIG_HOME", t.TempDir()) // no contexts of whoever runs the test
	var out, log bytes.Buffer
	status = run(&app{ctx: t.Context(), stdin: strings.NewReader(""), stdout: &out, stderr: &log, environ: environ}, args)
	return status, out.String(), log.String()
}
