package httpapi_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/httpapi"
)

func TestWithoutKeysOnlyLoopbackIsServed(t *testing.T) {
	s, _ := newFaultySite(t, func(o *httpapi.Options) { o.Auth = httpapi.AuthOff })
	call := func(host, origin string) int {
		r := s.request("", "POST", "/v1/beats", `{"users":["a"]}`)
		r.Host = host
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		return s.serve(r).Code
	}
	for _, host := range []string{"localhost", "localhost:8080", "127.0.0.1:8080", "127.8.8.8", "[::1]:8080", "[::1]"} {
		require.Equal(t, 200, call(host, ""), host)
		require.Equal(t, 200, call(host, "http://"+host), "the server's own page")
		require.Equal(t, 403, call(host, "http://localhost:3000"), "another port is another site")
		require.Equal(t, 403, call(host, "https://"+host), "so is another scheme")
	}
	for _, host := range []string{"example.com", "localhost.example.com", "192.0.2.1", "127.0.0.1.nip.io:80", "", "[::2]:80"} {
		require.Equal(t, 403, call(host, ""), host)
	}
	for _, origin := range []string{"https://example.com", "null", "http://127.0.0.1.nip.io", "file://"} {
		require.Equal(t, 403, call("localhost", origin), origin)
	}
	s.refusedHost(t)
}

func (s *site) refusedHost(t *testing.T) {
	t.Helper()
	r := s.request("", "GET", "/healthz", "")
	r.Host = "rebound.example"
	require.Equal(t, "forbidden", problemIn(t, s.serve(r)).Code)
}

func TestWithoutKeysEveryoneIsAdministrator(t *testing.T) {
	s := newSite(t, func(o *httpapi.Options) { o.Auth = httpapi.AuthOff })
	call := func(method, target, body string) int {
		r := s.request("", method, target, body)
		r.Host = "localhost"
		return s.serve(r).Code
	}
	require.Equal(t, 200, call("POST", "/v1/kicks", `{"all":true}`))
	require.Equal(t, 200, call("GET", "/v1/keys", ""))
	require.Equal(t, 403, call("POST", "/v1/keys", `{"role":"admin"}`), "a key would go on working once auth is on")
	require.Equal(t, 200, call("POST", "/v1/touch", `{"sessions":["x"]}`))
	require.Equal(t, 401, call("GET", "/v1/verify", ""), "a session is still a session")
	require.Equal(t, 401, call("GET", "/v1/me/sessions", ""))
}

func TestCORS(t *testing.T) {
	s, _ := newFaultySite(t, func(o *httpapi.Options) { o.CORSOrigins = []string{"https://app.example"} })
	preflight := func(origin string) (int, string) {
		r := s.request("", "OPTIONS", "/v1/touch", "")
		r.Header.Set("Origin", origin)
		r.Header.Set("Access-Control-Request-Method", "POST")
		w := s.serve(r)
		return w.Code, w.Header().Get("Access-Control-Allow-Origin")
	}
	status, allowed := preflight("https://app.example")
	require.Equal(t, 204, status)
	require.Equal(t, "https://app.example", allowed)
	status, allowed = preflight("https://evil.example")
	require.Equal(t, 405, status)
	require.Empty(t, allowed)

	call := func(method, target, body string) http.Header {
		r := s.request("writer", method, target, body)
		r.Header.Set("Origin", "https://app.example")
		w := s.serve(r)
		require.Equal(t, "Origin", w.Header().Get("Vary"))
		return w.Header()
	}
	require.Equal(t, "https://app.example", call("POST", "/v1/touch", `{"sessions":[]}`).Get("Access-Control-Allow-Origin"))
	require.Equal(t, "https://app.example", call("GET", "/v1/me/sessions", "").Get("Access-Control-Allow-Origin"))
	require.Equal(t, "https://app.example", call("DELETE", "/v1/me/sessions/x", "").Get("Access-Control-Allow-Origin"))
	for _, target := range []string{"/v1/sessions", "/v1/verify", "/v1/keys", "/metrics", "/nowhere"} {
		require.Empty(t, call("GET", target, "").Get("Access-Control-Allow-Origin"), "pages call touch and me only, not %s", target)
	}
}

func TestMetricsCountCommandsRequestsAndWhatTheEngineHolds(t *testing.T) {
	s := newSite(t)
	s.loginUser("very-secret-user")
	s.ok(200, "writer", "POST", "/v1/beats", `{"users":["a"]}`)
	s.refused(400, rollcall.CodeInvalidArgument, "writer", "POST", "/v1/beats", `{"users":[""]}`)
	s.ok(200, "reader", "GET", "/v1/users/very-secret-user", "")
	s.refused(404, rollcall.CodeNotFound, "", "GET", "/nowhere", "")
	text := s.ok(200, "", "GET", "/metrics", "")
	for _, line := range []string{
		`rollcall_commands_total{code="ok",command="login"} 1`,
		`rollcall_commands_total{code="ok",command="beat"} 1`,
		`rollcall_commands_total{code="invalid_argument",command="beat"} 1`,
		`rollcall_command_seconds_count{command="beat"} 2`,
		`rollcall_http_requests_total{route="POST /v1/beats",status="200"} 1`,
		`rollcall_http_requests_total{route="GET /v1/users/{user}",status="200"} 1`,
		`rollcall_http_requests_total{route="none",status="404"} 1`,
		`rollcall_sessions 1`, `rollcall_known_users 2`,
	} {
		require.Contains(t, text, line+"\n")
	}
	require.NotContains(t, text, "very-secret-user")
}

func TestDocsPageNeedsNobodyElse(t *testing.T) {
	s, _ := newFaultySite(t)
	w := s.call("", "GET", "/docs/openapi", "")
	page, policy := w.Body.String(), w.Header().Get("Content-Security-Policy")
	require.Equal(t, 200, w.Code)
	require.NotRegexp(t, `(src|href)="?(https?:)?//`, page)
	require.NotContains(t, page, "{{")
	require.Contains(t, policy, "default-src 'none'")
	for _, tag := range []string{"script", "style"} {
		source := regexp.MustCompile(`(?s)<` + tag + `>(.*)</` + tag + `>`).FindStringSubmatch(page)
		require.Len(t, source, 2)
		sum := sha256.Sum256([]byte(source[1]))
		require.Contains(t, policy, tag+"-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'")
	}
}

func TestLogsHoldNoSecrets(t *testing.T) {
	var log bytes.Buffer
	s := newSite(t, func(o *httpapi.Options) {
		o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	token := s.loginUser("u")
	s.ok(200, token, "POST", "/v1/touch", "")
	s.call(token, "GET", "/v1/sessions?"+token, "")
	s.call("admin", "POST", "/v1/touch", `{"token":"`+token+`"`)
	w := s.call("admin", "POST", "/v1/sessions", `{"user":"`+token+`","token":7}`)
	require.NotContains(t, w.Body.String(), token, "what was sent is not sent back")
	for _, secret := range []string{token, s.keys["admin"], strings.TrimPrefix(token, "rct_")} {
		require.NotContains(t, log.String(), secret)
	}
}
