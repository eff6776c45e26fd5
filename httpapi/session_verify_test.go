package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/httpapi"
	"github.com/rollcall/rollcall/local"
)

func (s *site) loginUser(user string) (token string) {
	s.t.Helper()
	body, err := json.Marshal(map[string]string{"user": user})
	require.NoError(s.t, err)
	_, token = s.login(string(body))
	return token
}

func unescape(t *testing.T, text string) string {
	t.Helper()
	plain, err := url.PathUnescape(text)
	require.NoError(t, err)
	return plain
}

// TestKickedTokenIsToldSo follows a kicked session's client through every door.
func TestKickedTokenIsToldSo(t *testing.T) {
	s := newSite(t)
	id, token := s.login(`{"user":"u"}`)
	for _, as := range []string{token, "writer"} {
		body := ""
		if as == "writer" {
			body = `{"sessions":["` + id + `","nonsense"]}`
		}
		s.ok(200, as, "POST", "/v1/touch", body)
	}
	s.ok(200, "writer", "POST", "/v1/kicks", `{"user":"u","reason":"house rules"}`)
	for _, c := range []struct{ as, method, target, body string }{
		{token, "GET", "/v1/verify", ""},
		{token, "POST", "/v1/verify", ""},
		{"reader", "POST", "/v1/verify", `{"session":"` + id + `"}`},
		{token, "POST", "/v1/touch", ""},
		{"", "POST", "/v1/touch", `{"token":"` + token + `"}`},
		{token, "GET", "/v1/me/sessions", ""},
		{token, "DELETE", "/v1/me/sessions?others=1", ""},
		{token, "DELETE", "/v1/me/sessions/" + id, ""},
		{token, "GET", "/v1/me/friends/online", ""},
		{"writer", "POST", "/v1/sessions/" + id + "/rotate", ""},
	} {
		p := s.refused(401, rollcall.CodeSessionEnded, c.as, c.method, c.target, c.body)
		require.Equal(t, "kicked", p.Cause, c.target)
		require.Equal(t, "house rules", p.Reason, c.target)
	}
	const ended, unknown = `{"state":"ended","cause":"kicked"}`, `{"state":"unknown"}`
	s.json(200, `{"results":[`+ended+`,`+unknown+`,`+ended+`,`+unknown+`]}`,
		"writer", "POST", "/v1/touch", fmt.Sprintf(`{"sessions":[%q,"x",%q,"01000000000000000000000000"]}`, id, id))
	s.json(200, `{"results":[`+ended+`,`+unknown+`]}`, "writer", "POST", "/v1/touch", fmt.Sprintf(`{"tokens":[%q,"x"]}`, token))
}

func TestTouchRoute(t *testing.T) {
	s := newSite(t)
	id, token := s.login(`{"user":"u"}`)
	s.clock.Advance(time.Minute)
	want := fmt.Sprintf(`{"state":"live","session":{"id":%q,"user":"u","kind":"user","name":"","app":"","device":"","ip":"","user_agent":"","attrs":{},
		"login_at":"2026-02-03T12:00:00.789Z","seen_at":"2026-02-03T12:01:00.789Z","expires_at":"2026-02-03T12:31:00.789Z"}}`, id)
	s.json(200, want, token, "POST", "/v1/touch", "")
	s.json(200, want, "", "POST", "/v1/touch", `{"token":"`+token+`"}`)
	s.json(200, `{"results":[{"state":"live"},{"state":"live"}]}`, "writer", "POST", "/v1/touch", fmt.Sprintf(`{"tokens":[%q,%q]}`, token, token))
	s.json(200, `{"results":[]}`, "writer", "POST", "/v1/touch", `{"sessions":[]}`)
	s.refused(401, rollcall.CodeUnauthenticated, "", "POST", "/v1/touch", `{"sessions":["`+id+`"]}`)
	s.refused(401, rollcall.CodeUnauthenticated, token, "POST", "/v1/touch", `{"sessions":["`+id+`"]}`)
	s.refused(403, rollcall.CodeForbidden, "reader", "POST", "/v1/touch", `{"sessions":["`+id+`"]}`)
	s.refused(401, rollcall.CodeUnauthenticated, "", "POST", "/v1/touch", "")
}

func TestVerifyRoute(t *testing.T) {
	s := newSite(t)
	id, token := s.login(`{"user":"Zoë / ops","kind":"staff"}`)
	w := s.call(token, "GET", "/v1/verify", "")
	require.Equal(t, 200, w.Code)
	require.Empty(t, w.Body.String())
	require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	require.Equal(t, "Zo%C3%AB%20%2F%20ops", w.Header().Get("Rollcall-User"))
	require.Equal(t, id, w.Header().Get("Rollcall-Session"))
	require.Equal(t, "staff", w.Header().Get("Rollcall-Kind"))

	w = s.call("reader", "POST", "/v1/verify", `{"session":"`+id+`"}`)
	require.Equal(t, 200, w.Code)
	require.Equal(t, id, w.Header().Get("Rollcall-Session"))
	require.Contains(t, w.Body.String(), `{"state":"live","session":{"id":"`+id)
	require.Equal(t, 200, s.call(token, "POST", "/v1/verify", "").Code, "some proxies pass on the method")
	s.refused(401, rollcall.CodeUnauthenticated, token, "POST", "/v1/verify", `{"session":"`+id+`"}`)

	s.clock.Advance(time.Minute)
	s.ok(200, token, "GET", "/v1/verify", "")
	require.Contains(t, s.ok(200, "reader", "GET", "/v1/sessions/"+id, ""), `"seen_at":"2026-02-03T12:00:00.789Z"`, "no sign of life")
	s.clock.Advance(time.Hour)
	w = s.call(token, "GET", "/v1/verify", "")
	require.Equal(t, 401, w.Code)
	require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	require.Equal(t, "expired", problemIn(t, w).Cause)
}

func TestVerifyTouchesForTrustedProxiesOnly(t *testing.T) {
	s := newSite(t, func(o *httpapi.Options) { o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")} })
	id, token := s.login(`{"user":"u"}`)
	s.clock.Advance(time.Minute)
	from := func(addr, forwarded string) int {
		r := s.request(token, "GET", "/v1/verify?touch=1", "")
		r.RemoteAddr = addr
		if forwarded != "" {
			r.Header.Set("X-Forwarded-For", forwarded)
		}
		return s.serve(r).Code
	}
	require.Equal(t, 403, from("192.0.2.1:5", ""))
	require.Equal(t, 403, from("192.0.2.1:5", "10.0.0.1"), "what a stranger forwards is not believed")
	require.Equal(t, 403, from("@", ""))
	require.Contains(t, s.ok(200, "reader", "GET", "/v1/sessions/"+id, ""), `"seen_at":"2026-02-03T12:00:00.789Z"`)
	require.Equal(t, 200, from("10.0.0.1:5", "192.0.2.1"))
	require.Contains(t, s.ok(200, "reader", "GET", "/v1/sessions/"+id, ""), `"seen_at":"2026-02-03T12:01:00.789Z"`)
}

func TestCookies(t *testing.T) {
	s := newSite(t, func(o *httpapi.Options) {
		o.VerifyCookie, o.CORSOrigins = "sid", []string{"https://app.example"}
	})
	_, token := s.login(`{"user":"u"}`)
	call := func(method, path string, header ...string) int {
		r := s.request("", method, path, "")
		r.AddCookie(&http.Cookie{Name: "sid", Value: token})
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		return s.serve(r).Code
	}
	require.Equal(t, 200, call("GET", "/v1/verify"))
	require.Equal(t, 200, call("GET", "/v1/verify", "Sec-Fetch-Site", "cross-site"), "a proxy passes on what the browser said")
	for _, site := range []string{"cross-site", "same-site"} {
		require.Equal(t, 403, call("GET", "/v1/me/sessions", "Sec-Fetch-Site", site))
		require.Equal(t, 403, call("DELETE", "/v1/me/sessions?others=1", "Sec-Fetch-Site", site))
		require.Equal(t, 403, call("POST", "/v1/touch", "Sec-Fetch-Site", site, "Origin", "https://evil.example"))
		require.Equal(t, 200, call("POST", "/v1/touch", "Sec-Fetch-Site", site, "Origin", "https://app.example"))
	}
	require.Equal(t, 200, call("GET", "/v1/me/sessions", "Origin", "https://app.example"))
	require.Equal(t, 403, call("GET", "/v1/me/sessions", "Origin", "https://other.example"))
	require.Equal(t, 200, call("GET", "/v1/me/sessions", "Sec-Fetch-Site", "same-origin"))
	require.Equal(t, 200, call("POST", "/v1/touch", "Sec-Fetch-Site", "same-origin"))
	require.Equal(t, 401, call("GET", "/v1/sessions", "Sec-Fetch-Site", "same-origin"), "a cookie is no key")
}

// readOnly is an engine that takes no touch, as on a full disk.
type readOnly struct {
	rollcall.Engine
	full bool
}

func (e *readOnly) Touch(ctx context.Context, now time.Time, refs []rollcall.Ref, policies *rollcall.Policies) ([]rollcall.Touched, error) {
	if e.full {
		return nil, &rollcall.Error{Code: rollcall.CodeStorageFull, Detail: "the disk has no room"}
	}
	return e.Engine.Touch(ctx, now, refs, policies)
}

func TestVerifyThatCannotTouchLetsALiveSessionInAllTheSame(t *testing.T) {
	inner, err := local.Open(t.TempDir(), local.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, inner.Close()) })
	engine := &readOnly{Engine: inner}
	s := newSiteOver(t, engine, func(o *httpapi.Options) { o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")} })
	alice, bob := s.loginUser("alice"), s.loginUser("bob")
	_, err = s.roll.Kick(t.Context(), rollcall.Kick{User: "bob"})
	require.NoError(t, err)
	s.clock.Advance(time.Minute)
	engine.full = true
	ask := func(token string) int {
		r := s.request(token, "GET", "/v1/verify?proxy=1&touch=1", "")
		r.RemoteAddr = "192.0.2.1:4711"
		return s.serve(r).Code
	}
	require.Equal(t, 200, ask(alice))
	require.Equal(t, 401, ask(bob))
}
