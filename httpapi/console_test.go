package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/httpapi"
)

// pageRequest makes a request as a page of the server's own origin makes it.
func (s *site) pageRequest(cookie *http.Cookie, method, target, body string) *http.Request {
	r := s.request("", method, target, body)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Header.Set("Rollcall-Console", "1")
	if cookie != nil {
		r.AddCookie(&http.Cookie{Name: cookie.Name, Value: cookie.Value})
	}
	return r
}

// cookieIn returns the console's cookie that an answer sets.
func cookieIn(t testing.TB, w *httptest.ResponseRecorder) *http.Cookie {
	t.Helper()
	require.Equal(t, 200, w.Code, "%s", w.Body)
	set := w.Result().Cookies()
	require.Len(t, set, 1)
	return set[0]
}

// signIn signs in to the console with a body.
func (s *site) signIn(body string) *http.Cookie {
	s.t.Helper()
	return cookieIn(s.t, s.serve(s.pageRequest(nil, "POST", "/v1/console/session", body)))
}

// consoleCookies are those of sessions of each role, and of some that work no more.
func (s *site) consoleCookies() map[string]*http.Cookie {
	s.t.Helper()
	out := map[string]*http.Cookie{}
	for role, key := range s.keys {
		out[string(role)] = s.signIn(`{"key":"` + key + `"}`)
	}
	key, text, err := s.roll.CreateKey(s.t.Context(), rollcall.NewKey{Role: rollcall.RoleAdmin, TTL: time.Minute})
	require.NoError(s.t, err)
	out["of an expired key"] = s.signIn(`{"key":"` + text + `"}`)
	out["signed out"] = s.signIn(`{"key":"` + s.keys[rollcall.RoleAdmin] + `"}`)
	s.serve(s.pageRequest(out["signed out"], "DELETE", "/v1/console/session", ""))
	out["unknown"] = &http.Cookie{Name: out["admin"].Name, Value: "rcs_" + strings.Repeat("A", 43)}
	require.NotZero(s.t, key.ExpiresAt)
	s.clock.Advance(2 * time.Minute)
	return out
}

// ended is the page of sessions that ended.
func (s *site) ended() string {
	s.t.Helper()
	r := s.request("admin", "GET", "/v1/events?after=start&types=session.ended", "")
	r.Header.Set("Accept", "application/json")
	w := s.serve(r)
	require.Equal(s.t, 200, w.Code, "%s", w.Body)
	return w.Body.String()
}

type signedIn struct {
	Role, By, Name string
	KeyID          string    `json:"key_id"`
	ExpiresAt      time.Time `json:"expires_at"`
	IdleExpiresAt  time.Time `json:"idle_expires_at"`
	Server         struct {
		Engine, Version, Timezone string
		WindowSeconds             int `json:"window_seconds"`
	}
}

// session asks who is signed in.
func (s *site) session(cookie *http.Cookie) signedIn {
	s.t.Helper()
	w := s.serve(s.pageRequest(cookie, "GET", "/v1/console/session", ""))
	out := s.consoleState(w)
	require.True(s.t, out.SignedIn, "%s", w.Body)
	return out.Session
}

// consoleState is the answer to the question who is signed in.
type consoleState struct {
	SignedIn bool `json:"signed_in"`
	Proxy    bool
	Session  signedIn
}

func (s *site) consoleState(w *httptest.ResponseRecorder) consoleState {
	s.t.Helper()
	require.Equal(s.t, 200, w.Code, "%s", w.Body)
	var out consoleState
	require.NoError(s.t, json.Unmarshal(w.Body.Bytes(), &out))
	return out
}

func (s *site) noSession(cookie *http.Cookie) {
	s.t.Helper()
	w := s.serve(s.pageRequest(cookie, "GET", "/v1/console/session", ""))
	require.Equal(s.t, consoleState{}, s.consoleState(w))
	require.Negative(s.t, w.Result().Cookies()[0].MaxAge, "the browser is told to forget the cookie")
}

func TestConsoleSignIn(t *testing.T) {
	s := newSite(t)
	w := s.serve(s.pageRequest(nil, "POST", "/v1/console/session", `{"key":"`+s.keys[rollcall.RoleWriter]+`"}`))
	cookie := cookieIn(t, w)
	require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	require.Equal(t, "__Host-rollcall_console", cookie.Name)
	require.True(t, cookie.HttpOnly && cookie.Secure)
	require.Equal(t, http.SameSiteStrictMode, cookie.SameSite)
	require.Equal(t, "/", cookie.Path)
	require.Empty(t, cookie.Domain)
	require.Equal(t, int(rollcall.ConsoleLifetime/time.Second), cookie.MaxAge)
	require.Regexp(t, `^rcs_[A-Za-z0-9_-]{43}$`, cookie.Value)
	require.NotContains(t, w.Body.String(), cookie.Value)

	got := s.session(cookie)
	require.Equal(t, "writer", got.Role)
	require.Equal(t, "key", got.By)
	require.Equal(t, "writer", got.Name)
	require.Len(t, got.KeyID, 16)
	require.Equal(t, noon.Add(12*time.Hour), got.ExpiresAt)
	require.Equal(t, noon.Add(30*time.Minute), got.IdleExpiresAt)
	require.Equal(t, "local", got.Server.Engine)
	require.Equal(t, "UTC", got.Server.Timezone)
	require.Equal(t, 300, got.Server.WindowSeconds)

	// To sign in again is another session, and the end of the one before.
	again := cookieIn(t, s.serve(s.pageRequest(cookie, "POST", "/v1/console/session", `{"key":"`+s.keys[rollcall.RoleReader]+`"}`)))
	require.NotEqual(t, cookie.Value, again.Value)
	s.noSession(cookie)
	require.Equal(t, "reader", s.session(again).Role)

	out := s.serve(s.pageRequest(again, "DELETE", "/v1/console/session", ""))
	require.Equal(t, 204, out.Code)
	require.Negative(t, out.Result().Cookies()[0].MaxAge)
	s.noSession(again)
	require.Equal(t, 204, s.serve(s.pageRequest(nil, "DELETE", "/v1/console/session", "")).Code)
}

func TestWhatSignsNobodyIn(t *testing.T) {
	s := newSite(t)
	for body, status := range map[string]int{
		`{}`:                  400,
		`{"key":"rck_x"}`:     401,
		`{"link":"rcl_none"}`: 401,
		`{"proxy":true}`:      401,
		`{"link":"rcl_x","key":"` + s.keys[rollcall.RoleAdmin] + `"}`: 400,
		`{"user":"admin","password":"admin"}`:                         400,
	} {
		w := s.serve(s.pageRequest(nil, "POST", "/v1/console/session", body))
		require.Equal(t, status, w.Code, "%s: %s", body, w.Body)
		require.Empty(t, w.Result().Cookies())
		problemIn(t, w)
	}
}

func TestAOneTimeLinkSignsInOnce(t *testing.T) {
	s := newSite(t)
	var link struct{ Path, Role string }
	require.NoError(t, json.Unmarshal([]byte(s.ok(201, "admin", "POST", "/v1/console/links", `{"role":"reader"}`)), &link))
	require.Equal(t, "reader", link.Role)
	text, ok := strings.CutPrefix(link.Path, "/console/#link=")
	require.True(t, ok, "the secret stands behind #, which is sent to nobody: %s", link.Path)
	cookie := s.signIn(`{"link":"` + text + `"}`)
	require.Equal(t, "reader", s.session(cookie).Role)
	require.Equal(t, "link", s.session(cookie).By)
	require.Equal(t, 401, s.serve(s.pageRequest(nil, "POST", "/v1/console/session", `{"link":"`+text+`"}`)).Code)

	// Without a body the link has the key's own role; a key may not give more than it has.
	require.Contains(t, s.ok(201, "admin", "POST", "/v1/console/links", `{}`), `"role":"admin"`)
	s.refused(403, rollcall.CodeForbidden, "writer", "POST", "/v1/console/links", `{"role":"reader"}`)
}

func TestASessionOfTheConsoleEndsWithItsKey(t *testing.T) {
	s := newSite(t)
	key, text, err := s.roll.CreateKey(t.Context(), rollcall.NewKey{Name: "ops", Role: rollcall.RoleAdmin})
	require.NoError(t, err)
	cookie := s.signIn(`{"key":"` + text + `"}`)
	require.Equal(t, 200, s.serve(s.pageRequest(cookie, "GET", "/v1/keys", "")).Code)
	s.ok(204, "admin", "DELETE", "/v1/keys/"+key.ID, "")
	require.Equal(t, 401, s.serve(s.pageRequest(cookie, "GET", "/v1/keys", "")).Code)
	s.noSession(cookie)
}

func TestASessionOfTheConsoleActsAsItsKey(t *testing.T) {
	s := newSite(t)
	id, _ := s.login(`{"user":"alice"}`)
	cookie := s.signIn(`{"key":"` + s.keys[rollcall.RoleAdmin] + `"}`)
	w := s.serve(s.pageRequest(cookie, "POST", "/v1/kicks", `{"session":"`+id+`","reason":"spam"}`))
	require.Equal(t, 200, w.Code, "%s", w.Body)
	require.Contains(t, s.ended(), `"actor":"admin"`)

	// A key in the request comes before the cookie.
	r := s.pageRequest(cookie, "GET", "/v1/keys", "")
	r.Header.Set("Authorization", "Bearer "+s.keys[rollcall.RoleReader])
	require.Equal(t, 403, s.serve(r).Code)
}

func TestPagesOfOtherOriginsCannotUseTheConsolesCookie(t *testing.T) {
	s := newSite(t, func(o *httpapi.Options) { o.CORSOrigins = []string{"https://app.example.com"} })
	cookie := s.signIn(`{"key":"` + s.keys[rollcall.RoleAdmin] + `"}`)
	for _, c := range []struct {
		site, origin string
		status       int
	}{
		{"same-origin", "http://example.com", 200},
		{"none", "", 200}, // typed into the address bar
		{"", "", 200},     // no browser of today
		{"", "http://example.com", 200},
		{"same-site", "https://app.example.com", 403}, // also one of cors_origins
		{"cross-site", "https://evil.example", 403},
		{"cross-site", "", 403},
		{"", "https://evil.example", 403},
		{"", "null", 403},
	} {
		for _, what := range []struct{ method, target, body string }{
			{"GET", "/v1/keys", ""},
			{"GET", "/v1/events", ""},
			{"GET", "/v1/console/session", ""},
			{"POST", "/v1/kicks", `{"all":true,"dry_run":true}`},
		} {
			r := s.pageRequest(cookie, what.method, what.target, what.body)
			r.Header.Set("Accept", "application/json")
			r.Header.Del("Sec-Fetch-Site")
			if c.site != "" {
				r.Header.Set("Sec-Fetch-Site", c.site)
			}
			if c.origin != "" {
				r.Header.Set("Origin", c.origin)
			}
			w := s.serve(r)
			want := c.status
			if what.target == "/v1/console/session" && want == 403 {
				require.Equal(t, 403, w.Code)
				continue
			}
			require.Equal(t, want, w.Code, "%s %s from %q %q: %s", what.method, what.target, c.site, c.origin, w.Body)
		}
	}
}

func TestWhatChangesSomethingNeedsAFormThatNoFormHas(t *testing.T) {
	s := newSite(t)
	cookie := s.signIn(`{"key":"` + s.keys[rollcall.RoleAdmin] + `"}`)
	for _, c := range []struct {
		method, target, contentType, header string
		status                              int
	}{
		{"DELETE", "/v1/bans/alice", "", "1", 404},
		{"DELETE", "/v1/bans/alice", "", "", 403},
		{"POST", "/v1/beats", "text/plain", "", 403},
		{"POST", "/v1/beats", "text/plain", "1", 200},
		{"POST", "/v1/archive/runs", "", "", 403},
		{"DELETE", "/v1/console/session", "", "", 403},
		{"POST", "/v1/console/session", "text/plain", "", 403},
	} {
		r := s.pageRequest(cookie, c.method, c.target, "")
		r.Header.Del("Rollcall-Console")
		if c.header != "" {
			r.Header.Set("Rollcall-Console", c.header)
		}
		if c.contentType != "" {
			r.Header.Set("Content-Type", c.contentType)
		}
		w := s.serve(r)
		require.Equal(t, c.status, w.Code, "%s %s %q %q: %s", c.method, c.target, c.contentType, c.header, w.Body)
	}
	require.Equal(t, "admin", s.session(cookie).Role, "still signed in")
}

func TestTheCookieNeedsHTTPSButOnThisMachine(t *testing.T) {
	s := newSite(t)
	body := `{"key":"` + s.keys[rollcall.RoleAdmin] + `"}`
	for host, name := range map[string]string{
		"localhost:8080": "rollcall_console_8080", "127.0.0.1:9090": "rollcall_console_9090", "[::1]:80": "rollcall_console_80", "localhost": "rollcall_console_80",
		"rollcall.example.com": "__Host-rollcall_console", "10.0.0.7:8080": "__Host-rollcall_console",
	} {
		r := s.pageRequest(nil, "POST", "/v1/console/session", body)
		r.Host = host
		cookie := cookieIn(t, s.serve(r))
		require.Equal(t, name, cookie.Name)
		require.Equal(t, strings.HasPrefix(name, "__Host-"), cookie.Secure)
		require.True(t, cookie.HttpOnly)
	}
	behind := s.pageRequest(nil, "POST", "/v1/console/session", body)
	behind.Host = "localhost:8080"
	behind.Header.Set("X-Forwarded-Proto", "https")
	require.True(t, cookieIn(t, s.serve(behind)).Secure)

	// A browser would not keep the cookie: better to be told.
	plain := s.pageRequest(nil, "POST", "/v1/console/session", body)
	plain.Host = "10.0.0.7:8080"
	plain.Header.Set("Origin", "http://10.0.0.7:8080")
	w := s.serve(plain)
	require.Equal(t, 403, w.Code)
	require.Contains(t, problemIn(t, w).Detail, "HTTPS")
}

func TestAProxySignsInWhomItNames(t *testing.T) {
	s := newSite(t, func(o *httpapi.Options) {
		o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
		o.ConsoleHeader, o.ConsoleHeaderRole = "X-User", rollcall.RoleWriter
	})
	ask := func(peer string, cookie *http.Cookie, method, body string, users ...string) *httptest.ResponseRecorder {
		r := s.pageRequest(cookie, method, "/v1/console/session", body)
		r.RemoteAddr = peer
		for _, u := range users {
			r.Header.Add("X-User", u)
		}
		return s.serve(r)
	}
	const proxy, stranger = "10.0.0.1:1234", "192.0.2.1:1234"
	require.Equal(t, 401, ask(stranger, nil, "POST", `{"proxy":true}`, "mei").Code)
	require.Equal(t, 401, ask(proxy, nil, "POST", `{"proxy":true}`).Code)
	require.Equal(t, 401, ask(proxy, nil, "POST", `{"proxy":true}`, "mei", "root").Code, "one of them may be the client's own")
	require.Equal(t, 400, ask(proxy, nil, "POST", `{"proxy":true}`, strings.Repeat("m", 129)).Code)
	require.Equal(t, consoleState{Proxy: true}, s.consoleState(ask(proxy, nil, "GET", "", "mei")))
	require.Equal(t, consoleState{}, s.consoleState(ask(stranger, nil, "GET", "", "mei")))

	cookie := cookieIn(t, ask(proxy, nil, "POST", `{"proxy":true}`, "mei"))
	got := s.session(cookie)
	require.Equal(t, []string{"writer", "proxy", "mei", ""}, []string{got.Role, got.By, got.Name, got.KeyID})
	id, _ := s.login(`{"user":"alice"}`)
	require.Equal(t, 200, s.serve(s.pageRequest(cookie, "POST", "/v1/kicks", `{"session":"`+id+`"}`)).Code)
	require.Contains(t, s.ended(), `"actor":"mei"`)

	// Somebody else signs in at the proxy: the session of before is none of theirs.
	require.True(t, s.consoleState(ask(proxy, cookie, "GET", "", "mei")).SignedIn)
	require.Equal(t, consoleState{Proxy: true}, s.consoleState(ask(proxy, cookie, "GET", "", "tom")))
	s.noSession(cookie)
}

func TestTheHeaderOfAProxyNeedsAProxy(t *testing.T) {
	s := newSite(t)
	for _, o := range []httpapi.Options{
		{ConsoleHeader: "X-User"},
		{ConsoleHeader: "X User", TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
		{ConsoleHeaderRole: "owner"},
	} {
		_, err := httpapi.New(s.roll, o)
		require.Equal(t, rollcall.CodeInvalidArgument, rollcall.CodeOf(err))
	}
}

func TestWithoutKeysThePageIsSignedInAsItIs(t *testing.T) {
	s := newSite(t, func(o *httpapi.Options) { o.Auth = httpapi.AuthOff })
	ask := func(method, host, site string) *httptest.ResponseRecorder {
		r := s.pageRequest(nil, method, "/v1/console/session", "")
		r.Host = host
		r.Header.Set("Sec-Fetch-Site", site)
		return s.serve(r)
	}
	for _, method := range []string{"GET", "POST"} {
		w := ask(method, "localhost:8080", "same-origin")
		require.Equal(t, 200, w.Code, "%s", w.Body)
		require.Contains(t, w.Body.String(), `"role":"admin","by":"off"`)
		require.Empty(t, w.Result().Cookies())
	}
	require.Equal(t, 204, ask("DELETE", "localhost:8080", "same-origin").Code)
	require.Equal(t, 403, ask("GET", "rollcall.example.com", "same-origin").Code)
	require.Equal(t, 403, ask("GET", "localhost:8080", "cross-site").Code)
	r := s.pageRequest(nil, "POST", "/v1/console/links", `{}`)
	r.Host = "localhost:8080"
	require.Equal(t, 403, s.serve(r).Code)
}

func TestFailedSignInsAreLimitedByAddressAndKeepNobodyElseOut(t *testing.T) {
	s := newSite(t, func(o *httpapi.Options) { o.RateLimits.Failures = httpapi.Limit{Rate: 0.001, Burst: 3} })
	signIn := func(addr, body string) int {
		r := s.pageRequest(nil, "POST", "/v1/console/session", body)
		r.RemoteAddr = addr
		return s.serve(r).Code
	}
	cookie := s.signIn(`{"key":"` + s.keys[rollcall.RoleAdmin] + `"}`)
	for range 3 {
		require.Equal(t, 401, signIn("192.0.2.7:1", `{"link":"rcl_guess"}`))
	}
	require.Equal(t, 429, signIn("192.0.2.7:1", `{"link":"rcl_guess"}`))
	require.Equal(t, 401, signIn("192.0.2.8:1", `{"link":"rcl_guess"}`))
	require.Equal(t, 200, signIn("192.0.2.7:1", `{"key":"`+s.keys[rollcall.RoleReader]+`"}`), "who has a key gets in from there too")
	r := s.pageRequest(cookie, "GET", "/v1/keys", "")
	r.RemoteAddr = "192.0.2.7:1"
	require.Equal(t, 200, s.serve(r).Code)
}

func TestTheLogNamesSignInsAndHoldsNoSecretOfThem(t *testing.T) {
	log := &lines{}
	s := newSite(t, log.option)
	cookie := s.signIn(`{"key":"` + s.keys[rollcall.RoleAdmin] + `"}`)
	s.serve(s.pageRequest(cookie, "DELETE", "/v1/console/session", ""))
	require.Equal(t, 1, log.with("event=console_signed_in actor=\"key "))
	require.Equal(t, 1, log.with("event=console_signed_out actor=\"key "))
	require.Zero(t, log.with(cookie.Value))
	require.Zero(t, log.with(s.keys[rollcall.RoleAdmin]))
}

func TestTheConsoleIsServedBelowItsPath(t *testing.T) {
	s := newSite(t, func(o *httpapi.Options) {
		o.Auth = httpapi.AuthOff
		o.Console = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("page " + r.URL.Path)) })
	})
	get := func(host, target string) *httptest.ResponseRecorder {
		r := s.request("", "GET", target, "")
		r.Host = host
		return s.serve(r)
	}
	require.Equal(t, "page /console/users/a b", get("localhost", "/console/users/a%20b").Body.String())
	require.Equal(t, "page /console", get("localhost", "/console").Body.String())
	require.Equal(t, 404, get("localhost", "/consoles").Code)
	require.Equal(t, 403, get("evil.example", "/console/").Code, "names that resolve to this machine are no names of it")
	root := get("localhost", "/")
	require.Equal(t, 302, root.Code)
	require.Equal(t, "/console/", root.Header().Get("Location"))
}
