package httpapi_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/httpapi"
)

func TestCodesHaveTheirStatus(t *testing.T) {
	s, engine := newFaultySite(t)
	for code, status := range map[rollcall.Code]int{
		rollcall.CodeInvalidArgument: 400, rollcall.CodeUnauthenticated: 401, rollcall.CodeSessionEnded: 401,
		rollcall.CodeForbidden: 403, rollcall.CodeUserBanned: 403, rollcall.CodeNotFound: 404,
		rollcall.CodeConflict: 409, rollcall.CodeSessionLimit: 409, rollcall.CodeTooLarge: 413,
		rollcall.CodeRateLimited: 429, rollcall.CodeUnavailable: 503, rollcall.CodeStorageFull: 503,
		rollcall.CodeInternal: 500,
	} {
		s.any = true
		engine.err = &rollcall.Error{Code: code, Detail: "so it is", Field: "f", Cause: "kicked", Reason: "because"}
		for _, route := range []struct{ method, target, body string }{
			{"GET", "/v1/online/count?window=all", ""},        // typed
			{"POST", "/v1/beats", `{"users":["a"]}`},          // plain
			{"POST", "/v1/kicks", `{"all":true}`},             // typed, with a body
			{"GET", "/v1/sessions?limit=5&sort=login_at", ""}, // typed, with a query
		} {
			p := s.refused(status, code, "admin", route.method, route.target, route.body)
			require.Equal(t, problem{
				Type: p.Type, Title: p.Title, Detail: p.Detail, Code: string(code), Field: "f", Cause: "kicked", Reason: "because", Status: status,
			}, p)
		}
		w := s.call("admin", "GET", "/v1/online/count?window=all", "")
		require.Equal(t, status == 503 || status == 429, w.Header().Get("Retry-After") != "", "%s", code)
		require.Equal(t, status == 401, w.Header().Get("WWW-Authenticate") != "", "%s", code)
	}
}

func TestInternalsStayInside(t *testing.T) {
	var log bytes.Buffer
	s, engine := newFaultySite(t, func(o *httpapi.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	engine.err = errors.New("open /var/lib/secret: permission denied")

	w := s.call("admin", "GET", "/v1/online/count?window=all", "")
	p := problemIn(t, w)
	require.Equal(t, 500, p.Status)
	require.Equal(t, "internal", p.Code)
	require.NotContains(t, w.Body.String(), "secret")
	id := w.Header().Get("X-Request-Id")
	require.Len(t, id, 16)
	require.Contains(t, p.Detail, id)
	require.Contains(t, log.String(), id)
	require.Contains(t, log.String(), "/var/lib/secret")
	for _, key := range s.keys {
		require.NotContains(t, log.String(), key)
	}
}

func TestARequestKeepsTheIDThatItCameWith(t *testing.T) {
	s, _ := newFaultySite(t)
	for given, kept := range map[string]bool{
		"01JD-trace_7.a": true, strings.Repeat("a", 64): true, strings.Repeat("a", 65): false, "": false,
		"a b": false, "a\"b": false, "a=b": false, "é": false,
	} {
		r := s.request("", "GET", "/healthz", "")
		r.Header.Set("X-Request-Id", given)
		id := s.serve(r).Header().Get("X-Request-Id")
		if kept {
			require.Equal(t, given, id)
		} else {
			require.Regexp(t, "^[0-9a-f]{16}$", id, "%q", given)
		}
	}
}

func TestDocumentsAreSentOnce(t *testing.T) {
	s, _ := newFaultySite(t)
	for _, path := range []string{"/openapi.json", "/openapi-3.0.json", "/docs/openapi", "/llms.txt"} {
		first := s.call("", "GET", path, "")
		require.Equal(t, 200, first.Code)
		tag := first.Header().Get("ETag")
		require.NotEmpty(t, tag)
		r := s.request("", "GET", path, "")
		r.Header.Set("If-None-Match", tag)
		again := s.serve(r)
		require.Equal(t, 304, again.Code, path)
		require.Zero(t, again.Body.Len())
	}
}

func TestPanicsBecomeProblems(t *testing.T) {
	var log bytes.Buffer
	s, _ := newFaultySite(t, func(o *httpapi.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	p := s.refused(500, rollcall.CodeInternal, "admin", "GET", "/v1/users/alice", "") // faulty has no User
	require.NotContains(t, p.Detail, "nil pointer")
	require.Contains(t, log.String(), "nil pointer")
}

func TestCancelledRequestIsNoFault(t *testing.T) {
	s, engine := newFaultySite(t)
	engine.err = context.Canceled
	s.refused(503, rollcall.CodeUnavailable, "admin", "GET", "/v1/online/count?window=all", "")
}

func TestUnknownPathsAndMethods(t *testing.T) {
	s, _ := newFaultySite(t)
	for _, path := range []string{"/", "/v1", "/v1/", "/v2/sessions", "/v1/sessions/", "/v1//sessions", "/docs/", "/v1/visits/x", "/v1/event", "/console/"} {
		s.refused(404, rollcall.CodeNotFound, "", "GET", path, "")
	}
	w := s.call("", "PUT", "/v1/sessions", "")
	require.Equal(t, 405, w.Code)
	require.Equal(t, "GET, HEAD, POST", w.Header().Get("Allow"))
	require.Equal(t, "method", problemIn(t, w).Field)
	require.Equal(t, 405, s.call("", "TRACE", "/v1/kicks", "").Code)
}

func TestReadiness(t *testing.T) {
	s, engine := newFaultySite(t)
	s.json(200, `{"status":"ok"}`, "", "GET", "/healthz", "")
	s.json(200, `{"status":"ready"}`, "", "GET", "/readyz", "")
	s.server.SetReady(false)
	s.refused(503, rollcall.CodeUnavailable, "", "GET", "/readyz", "")
	s.json(200, `{"status":"ok"}`, "", "GET", "/healthz", "")
	s.server.SetReady(true)
	s.json(200, `{"status":"ready"}`, "", "GET", "/readyz", "")
	engine.err = errors.New("disk /dev/sda1 is gone")
	require.NotContains(t, s.refused(503, rollcall.CodeUnavailable, "", "GET", "/readyz", "").Detail, "sda1")
	engine.err = rollcall.ErrStorageFull
	s.refused(503, rollcall.CodeStorageFull, "", "GET", "/readyz", "")
}

func TestOptionsNameTheBadField(t *testing.T) {
	s, _ := newFaultySite(t)
	for field, o := range map[string]httpapi.Options{
		"auth":          {Auth: "maybe"},
		"cors_origins":  {CORSOrigins: []string{"https://a.example/"}},
		"verify.cookie": {VerifyCookie: "a b"},
	} {
		_, err := httpapi.New(s.roll, o)
		var e *rollcall.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, field, e.Field)
	}
	_, err := httpapi.New(s.roll, httpapi.Options{})
	require.NoError(t, err)
}
