package httpapi_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAnswersCarryTheHeadersThatBrowsersObey looks at every kind of answer: data,
// a page, text, problems of the gate, of the path and of the method.
func TestAnswersCarryTheHeadersThatBrowsersObey(t *testing.T) {
	s := newSite(t)
	for _, c := range []struct {
		as, method, target string
		status             int
	}{
		{"reader", "GET", "/v1/online", 200},
		{"", "GET", "/docs/openapi", 200},
		{"", "GET", "/docs", 302},
		{"", "GET", "/openapi.json", 200},
		{"", "GET", "/llms.txt", 200},
		{"", "GET", "/metrics", 200},
		{"", "GET", "/healthz", 200},
		{"", "GET", "/v1/online", 401},
		{"reader", "POST", "/v1/kicks", 403},
		{"reader", "GET", "/v1/nothing", 404},
		{"reader", "TRACE", "/v1/online", 405},
	} {
		plain := s.serve(s.request(c.as, c.method, c.target, ""))
		h := plain.Header()
		require.Equal(t, c.status, plain.Code, "%s %s", c.method, c.target)
		require.Equal(t, "nosniff", h.Get("X-Content-Type-Options"))
		require.Equal(t, "no-referrer", h.Get("Referrer-Policy"))
		for _, directive := range []string{"default-src 'none'", "object-src 'none'", "base-uri 'none'", "frame-ancestors 'none'"} {
			require.Contains(t, h.Get("Content-Security-Policy"), directive, "%s %s", c.method, c.target)
		}
		require.Empty(t, h.Get("Strict-Transport-Security"), "the connection is not ours to promise")
		if strings.HasPrefix(c.target, "/v1/") {
			require.Equal(t, "no-store", h.Get("Cache-Control"))
		}

		overTLS := s.serve(s.request(c.as, c.method, "https://example.com"+c.target, ""))
		require.Equal(t, "max-age=31536000; includeSubDomains", overTLS.Header().Get("Strict-Transport-Security"))
	}
}
