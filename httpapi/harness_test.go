package httpapi_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/httpapi"
	"github.com/rollcall/rollcall/local"
)

// noon is a Tuesday.
var noon = time.Date(2026, 2, 3, 12, 0, 0, 789e6, time.UTC)

// site is a server over a real engine on a clock of its own, with a key of each
// role.
type site struct {
	t      testing.TB
	clock  *rollcall.ManualClock
	roll   *rollcall.Roll
	server *httpapi.Server
	keys   map[rollcall.Role]string

	read  sync.Once
	named map[string]map[string][]string // the statuses that the document names, once read
	any   bool                           // the engine answers what no engine would
}

func newSite(t testing.TB, change ...func(*httpapi.Options)) *site {
	t.Helper()
	return newSiteOver(t, openLocal(t), change...)
}

// openLocal opens an engine until the test ends.
func openLocal(t testing.TB) rollcall.Engine {
	t.Helper()
	engine, err := local.Open(t.TempDir(), local.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	return engine
}

// decode reads JSON.
func (s *site) decode(text string, into any) {
	s.t.Helper()
	require.NoError(s.t, json.Unmarshal([]byte(text), into), "%s", text)
}

func newSiteOver(t testing.TB, engine rollcall.Engine, change ...func(*httpapi.Options)) *site {
	t.Helper()
	return newSiteIn(t, engine, time.UTC, change...)
}

func newSiteIn(t testing.TB, engine rollcall.Engine, zone *time.Location, change ...func(*httpapi.Options)) *site {
	t.Helper()
	clock := rollcall.NewManualClock(noon)
	metrics, err := httpapi.NewMetrics(nil)
	require.NoError(t, err)
	roll, err := rollcall.New(engine, rollcall.Options{Clock: clock, Timezone: zone, Observer: metrics})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, roll.Close()) })

	o := httpapi.Options{Metrics: metrics, Version: "test", Badge: true}
	for _, f := range change {
		f(&o)
	}
	server, err := httpapi.New(roll, o)
	require.NoError(t, err)
	s := &site{t: t, clock: clock, roll: roll, server: server, keys: map[rollcall.Role]string{}}
	for _, role := range []rollcall.Role{rollcall.RoleReader, rollcall.RoleWriter, rollcall.RoleAdmin} {
		_, text, err := roll.CreateKey(t.Context(), rollcall.NewKey{Name: string(role), Role: role})
		require.NoError(t, err)
		s.keys[role] = text
	}
	return s
}

// request makes a request with a credential: a role's name stands for its key.
func (s *site) request(as, method, target, body string) *http.Request {
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	r := httptest.NewRequestWithContext(context.Background(), method, target, reader)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if key, ok := s.keys[rollcall.Role(as)]; ok {
		as = key
	}
	if as != "" {
		r.Header.Set("Authorization", "Bearer "+as)
	}
	return r
}

func (s *site) serve(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.server.ServeHTTP(w, r)
	s.requireNamed(r, w)
	return w
}

func (s *site) call(as, method, target, body string) *httptest.ResponseRecorder {
	return s.serve(s.request(as, method, target, body))
}

// ok expects a status and returns the body.
func (s *site) ok(status int, as, method, target, body string) string {
	s.t.Helper()
	w := s.call(as, method, target, body)
	require.Equal(s.t, status, w.Code, "%s %s: %s", method, target, w.Body)
	return w.Body.String()
}

// json expects a status and a body.
func (s *site) json(status int, want, as, method, target, body string) {
	s.t.Helper()
	require.JSONEq(s.t, want, s.ok(status, as, method, target, body), "%s %s", method, target)
}

// login logs a user in and returns the session's id and token.
func (s *site) login(body string) (id, token string) {
	s.t.Helper()
	var out struct {
		Session struct{ ID string }
		Token   string
	}
	require.NoError(s.t, json.Unmarshal([]byte(s.ok(201, "writer", "POST", "/v1/sessions", body)), &out))
	return out.Session.ID, out.Token
}

type problem struct {
	Type, Title, Detail, Code, Field, Cause, Reason string
	Status                                          int
}

func problemIn(t testing.TB, w *httptest.ResponseRecorder) problem {
	t.Helper()
	var p problem
	require.Equal(t, "application/problem+json", w.Header().Get("Content-Type"), "%s", w.Body)
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &p), "%s", w.Body)
	require.Equal(t, w.Code, p.Status)
	require.Equal(t, "urn:rollcall:error:"+p.Code, p.Type)
	require.NotEmpty(t, p.Title)
	require.NotEmpty(t, p.Detail)
	return p
}

// refused expects a problem and returns it.
func (s *site) refused(status int, code rollcall.Code, as, method, target, body string) problem {
	s.t.Helper()
	w := s.call(as, method, target, body)
	require.Equal(s.t, status, w.Code, "%s %s: %s", method, target, w.Body)
	p := problemIn(s.t, w)
	require.Equal(s.t, string(code), p.Code, "%s", w.Body)
	return p
}
