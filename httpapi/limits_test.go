package httpapi_test

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/httpapi"
)

// slow is an allowance that does not come back during a test.
func slow(burst int) httpapi.Limit { return httpapi.Limit{Rate: 0.01, Burst: burst} }

func TestKeysHaveAnAllowanceEach(t *testing.T) {
	s, _ := newFaultySite(t, func(o *httpapi.Options) { o.RateLimits.Key = slow(3) })
	for range 3 {
		s.ok(200, "writer", "POST", "/v1/beats", `{"users":["a"]}`)
	}
	w := s.call("writer", "POST", "/v1/beats", `{"users":["a"]}`)
	require.Equal(t, 429, w.Code)
	require.Equal(t, "rate_limited", problemIn(t, w).Code)
	after, err := strconv.Atoi(w.Header().Get("Retry-After"))
	require.NoError(t, err)
	require.InDelta(t, 100, after, 2)
	s.ok(200, "admin", "POST", "/v1/beats", `{"users":["a"]}`)
}

func TestFailuresAreLimitedPerAddress(t *testing.T) {
	s := newSite(t, func(o *httpapi.Options) {
		o.RateLimits.Failures = slow(2)
		o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.1/32")}
	})
	good := s.loginUser("u")
	verify := func(token, addr, forwarded string) int {
		r := s.request(token, "GET", "/v1/verify", "")
		r.RemoteAddr = addr
		if forwarded != "" {
			r.Header.Set("X-Forwarded-For", forwarded)
		}
		return s.serve(r).Code
	}
	bad := "rct_" + strings.Repeat("A", 46)
	require.Equal(t, 401, verify(bad, "192.0.2.1:1", ""))
	require.Equal(t, 401, verify(bad, "192.0.2.1:2", ""))
	require.Equal(t, 429, verify(bad, "192.0.2.1:3", ""))
	require.Equal(t, 429, verify(bad, "192.0.2.1:3", "192.0.2.77"), "what a stranger forwards is not believed")
	require.Equal(t, 200, verify(good, "192.0.2.1:4", ""), "good tokens are served all the same")
	require.Equal(t, 401, verify("", "192.0.2.1:5", ""), "nothing was tried")

	require.Equal(t, 401, verify(bad, "10.0.0.1:1", "192.0.2.2"))
	require.Equal(t, 401, verify(bad, "10.0.0.1:1", "evil, 192.0.2.2"))
	require.Equal(t, 429, verify(bad, "10.0.0.1:1", "9.9.9.9, 192.0.2.2"))
	require.Equal(t, 401, verify(bad, "10.0.0.1:1", "192.0.2.3"))

	require.Equal(t, 401, verify(bad, "[2001:db8::1]:1", ""))
	require.Equal(t, 401, verify(bad, "[2001:db8::2]:1", ""))
	require.Equal(t, 429, verify(bad, "[2001:db8::3]:1", ""), "a /64 is one client")
	require.Equal(t, 401, verify(bad, "[2001:db8:0:1::1]:1", ""))

	r := s.request("rck_"+strings.Repeat("x", 43), "GET", "/v1/sessions", "")
	r.RemoteAddr = "192.0.2.1:1"
	require.Equal(t, 429, s.serve(r).Code, "keys are credentials too")
}

func TestSessionsHaveAnAllowanceEach(t *testing.T) {
	s := newSite(t, func(o *httpapi.Options) { o.RateLimits.Session = slow(2) })
	token := s.loginUser("u")
	s.ok(200, token, "POST", "/v1/touch", "")
	s.ok(200, token, "GET", "/v1/me/sessions", "")
	s.refused(429, rollcall.CodeRateLimited, token, "POST", "/v1/touch", "")
	s.refused(429, rollcall.CodeRateLimited, "", "POST", "/v1/touch", `{"token":"`+token+`"}`)
	s.ok(200, s.loginUser("v"), "POST", "/v1/touch", "")
	s.ok(200, token, "GET", "/v1/verify", "")
	s.ok(200, "writer", "POST", "/v1/touch", `{"sessions":[]}`)
}

// TestManyAddressesAreForgotten fills the table of allowances several times
// over; who keeps coming is not forgotten.
func TestManyAddressesAreForgotten(t *testing.T) {
	s, _ := newFaultySite(t, func(o *httpapi.Options) { o.RateLimits.Failures = slow(1) })
	bad := "rct_" + strings.Repeat("A", 46)
	verify := func(addr string) int {
		r := s.request(bad, "GET", "/v1/verify", "")
		r.RemoteAddr = addr
		return s.serve(r).Code
	}
	require.Equal(t, 401, verify("192.0.2.1:1"))
	for i := range 25_000 {
		require.Equal(t, 401, verify(fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255)))
		if i%5_000 == 0 {
			require.Equal(t, 429, verify("192.0.2.1:1"))
		}
	}
	require.Equal(t, 401, verify("10.0.0.0:1"), "long forgotten")
}
