package respapi_test

import (
	"bufio"
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall/respapi"
)

func TestWithACertificateOnlyTLSIsServed(t *testing.T) {
	https := httptest.NewTLSServer(http.NotFoundHandler())
	defer https.Close()
	w := newWorld(t, openLocal(t), respapi.Options{NoKeys: true, TLS: &tls.Config{Certificates: https.TLS.Certificates, MinVersion: tls.VersionTLS12}})
	transport, ok := https.Client().Transport.(*http.Transport)
	require.True(t, ok)
	roots := transport.TLSClientConfig.RootCAs

	conn, err := tls.Dial("tcp", w.door.Addr().String(), &tls.Config{RootCAs: roots, ServerName: "example.com", MinVersion: tls.VersionTLS12})
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	c := &redisClient{t, conn, bufio.NewReader(conn)}
	require.Equal(t, 1, c.do("BEAT", "alice"))

	plain := w.dial()
	plain.send(request("BEAT", "bob"))
	answer, err := io.ReadAll(plain.in)
	require.NoError(t, err)
	require.NotContains(t, string(answer), ":1", "who speaks in the clear is not heard")
	require.Equal(t, 1, c.do("ONLINE.COUNT"))
}
