package httpapi_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/httpapi"
)

// generous is how long a test waits for what should come at once.
const generous = 30 * time.Second

// live serves a site on a real connection.
func (s *site) live() *httptest.Server {
	server := httptest.NewServer(s.server)
	s.t.Cleanup(server.Close)
	return server
}

// dial opens a connection, sends text, and returns it with a deadline for what
// is read from it.
func dial(t testing.TB, server *httptest.Server, text string) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(generous)))
	_, err = io.WriteString(conn, text)
	require.NoError(t, err)
	return conn
}

func statusOn(t testing.TB, conn net.Conn) int {
	t.Helper()
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err, "no answer came within %v", generous)
	defer answer.Body.Close()
	_, err = io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode
}

func TestARefusalDoesNotWaitForTheBody(t *testing.T) {
	s := newSite(t)
	server := s.live()
	for target, status := range map[string]int{"/v1/sessions": 401, "/v1/kicks": 401, "/v1/touch": 413, "/nowhere": 404} {
		conn := dial(t, server, "POST "+target+" HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n{")
		require.Equal(t, status, statusOn(t, conn), target)
	}
}

// deadlines is a writer that keeps how long each deadline for reading is.
type deadlines struct {
	*httptest.ResponseRecorder
	read []time.Duration
}

func (d *deadlines) SetReadDeadline(at time.Time) error {
	if !at.IsZero() {
		d.read = append(d.read, time.Until(at))
	}
	return nil
}

func TestAStrangersBodyHasFiveSeconds(t *testing.T) {
	s := newSite(t)
	token := s.loginUser("u")
	for _, c := range []struct {
		as, target, body string
		status           int
		longest          time.Duration
	}{
		{"", "/v1/touch", `{"token":"` + token + `"}`, 200, 5 * time.Second},
		{"", "/v1/console/session", `{"key":"rck_x"}`, 401, 5 * time.Second},
		{"", "/v1/sessions", `{"user":"v"}`, 401, 5 * time.Second},
		{"rck_unknown", "/v1/sessions", `{"user":"v"}`, 401, 5 * time.Second},
		{"", "/nowhere", `{}`, 404, 5 * time.Second},
		{"writer", "/v1/sessions", `{"user":"v"}`, 201, 30 * time.Second},
		{"writer", "/v1/touch", `{"tokens":["` + token + `"]}`, 200, 30 * time.Second},
	} {
		w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		r := s.request(c.as, "POST", c.target, c.body)
		r.Header.Set("Rollcall-Console", "1")
		s.server.ServeHTTP(w, r)
		require.Equal(t, c.status, w.Code, "%s as %q: %s", c.target, c.as, w.Body)
		require.NotEmpty(t, w.read, "%s as %q", c.target, c.as)
		longest := slices.Max(w.read)
		require.LessOrEqual(t, longest, c.longest, "%s as %q", c.target, c.as)
		require.Greater(t, longest+generous/2, c.longest, "%s as %q", c.target, c.as)
	}
}

func TestAStrangerIsToldHowLongABodyMayTake(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	conn := dial(t, s.live(), "POST /v1/touch HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, 400, answer.StatusCode)
	require.Contains(t, string(text), "did not arrive within 5s")
}

func TestAClientThatSendsItsWholeBodyFirstGetsTheRefusal(t *testing.T) {
	s := newSite(t)
	server := s.live()
	body := bytes.Repeat([]byte(" "), 12<<20)
	for target, status := range map[string]int{"/v1/kicks": 413, "/v1/beats": 413, "/v1/touch": 413, "/nowhere": 404} {
		conn := dial(t, server, fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n",
			target, s.keys["admin"], len(body)))
		_, err := conn.Write(body)
		require.NoError(t, err, "%s: cut off while sending", target)
		require.Equal(t, status, statusOn(t, conn), target)
	}
	conn := dial(t, server, fmt.Sprintf("POST /v1/sessions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", len(body)))
	_, err := conn.Write(body)
	require.NoError(t, err)
	require.Equal(t, 401, statusOn(t, conn))
}

func TestCallersWithoutAKeyMaySendAFewKilobytes(t *testing.T) {
	s := newSite(t)
	token := s.loginUser("u")
	padded := func(n int) string { return `{"token":"` + token + `"` + strings.Repeat(" ", n) + `}` }
	s.ok(200, "", "POST", "/v1/touch", padded(3_900))
	p := s.refused(413, rollcall.CodeTooLarge, "", "POST", "/v1/touch", padded(5_000))
	require.Contains(t, p.Detail, "4096")
	s.refused(413, rollcall.CodeTooLarge, token, "POST", "/v1/verify", `{`+strings.Repeat(" ", 5_000)+`}`)
	s.ok(200, "writer", "POST", "/v1/touch", `{"tokens":["`+token+`"`+strings.Repeat(" ", 100_000)+`]}`)
}

// TestJunkOfAnAddressHoldsUpNobodyKnown mixes unknown tokens with those of good
// users behind the same address.
func TestJunkOfAnAddressHoldsUpNobodyKnown(t *testing.T) {
	s := newSite(t, func(o *httpapi.Options) { o.RateLimits.Failures = slow(3) })
	token := s.loginUser("u")
	junk := "rct_" + strings.Repeat("A", 46)
	for range 20 {
		require.Contains(t, []int{401, 429}, s.call(junk, "POST", "/v1/touch", "").Code)
		require.Contains(t, []int{401, 429}, s.call(junk, "GET", "/v1/me/sessions", "").Code)
		s.ok(200, token, "POST", "/v1/touch", "")
		s.ok(200, token, "GET", "/v1/me/sessions", "")
		s.ok(200, token, "GET", "/v1/verify", "")
	}
	s.refused(429, rollcall.CodeRateLimited, junk, "POST", "/v1/touch", "")
}

func TestForwardedAddressesMayHavePorts(t *testing.T) {
	s := newSite(t, func(o *httpapi.Options) {
		o.RateLimits.Failures = slow(1)
		o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	})
	verify := func(forwarded string) int {
		r := s.request("rct_"+strings.Repeat("A", 46), "GET", "/v1/verify", "")
		r.RemoteAddr = "10.0.0.1:1"
		r.Header.Set("X-Forwarded-For", forwarded)
		return s.serve(r).Code
	}
	require.Equal(t, 401, verify("192.0.2.1:4711"))
	require.Equal(t, 429, verify("192.0.2.1:4712"), "another port is the same client")
	require.Equal(t, 429, verify("192.0.2.1"))
	require.Equal(t, 401, verify("[2001:db8::1]:443"))
	require.Equal(t, 429, verify("[2001:db8::2]"), "a /64 is one client")
	require.Equal(t, 429, verify("2001:db8::3"))
}

func TestGivenButEmptyIsRefused(t *testing.T) {
	s := newSite(t)
	for _, c := range []struct{ method, target, body, field string }{
		{"GET", "/v1/sessions?user=", "", "user"},
		{"GET", "/v1/sessions?kind=", "", "kind"},
		{"GET", "/v1/sessions?seen_within=", "", "seen_within"},
		{"GET", "/v1/online?window=", "", "window"},
		{"GET", "/v1/online/count?window=", "", "window"},
		{"GET", "/v1/attendance/active?kind=", "", "kind"},
		{"GET", "/v1/attendance/users/u?months=", "", "months"},
		{"GET", "/v1/verify?touch=", "", "touch"},
		{"DELETE", "/v1/me/sessions?others=", "", "others"},
		{"POST", "/v1/sessions/query", `{"users":null}`, "users"},
		{"POST", "/v1/sessions/query", `{"user":""}`, "user"},
		{"POST", "/v1/sessions/query", `{"attrs":{}}`, "attrs"},
		{"POST", "/v1/sessions/query", `{"cursor":""}`, "cursor"},
		{"POST", "/v1/sessions/query", `{"login_after":""}`, "login_after"},
		{"POST", "/v1/kicks", `{"user":"kd","device":""}`, "device"},
		{"POST", "/v1/kicks", `{"user":"kd","except":""}`, "except"},
		{"POST", "/v1/kicks", `{"user":"kd","session":""}`, "session"},
		{"POST", "/v1/kicks", `{"user":"kd","ban":""}`, "ban"},
		{"POST", "/v1/kicks", `{"filter":{"app":"a","device":""}}`, "filter.device"},
		{"POST", "/v1/kicks", `{"filter":{"user":"u","users":null}}`, "filter.users"},
		{"POST", "/v1/touch", `{"token":""}`, "token"},
		{"POST", "/v1/touch", `{"tokens":null}`, "tokens"},
		{"POST", "/v1/verify", `{"session":""}`, "session"},
		{"POST", "/v1/beats", `{"users":null}`, "users"},
		{"POST", "/v1/attendance/marks", `{"marks":[{"user":"u","day":""}]}`, "marks[0].day"},
		{"POST", "/v1/attendance/marks", `{"marks":[{"user":"u","at":""}]}`, "marks[0].at"},
		{"POST", "/v1/keys", `{"role":"reader","ttl":""}`, "ttl"},
		{"PUT", "/v1/users/u/friends", `{"friends":[{"user":"v","since":""}]}`, "friends[0].since"},
		{"POST", "/v1/online/clear", `{"older_than":""}`, "older_than"},
	} {
		as := "admin"
		if strings.Contains(c.target, "/me/") {
			as = s.loginUser("me")
		}
		p := s.refused(400, rollcall.CodeInvalidArgument, as, c.method, c.target, c.body)
		require.Equal(t, c.field, p.Field, "%s %s: %s", c.target, c.body, p.Detail)
	}
	s.login(`{"user":"kd","kind":"","app":"","attrs":{}}`) // empty is no wider than nothing there
	require.Contains(t, s.ok(200, "reader", "GET", "/v1/sessions?attr.x=", ""), `"total":0`, "an attribute may be empty")
}

func TestDurationsAreAlikeEverywhere(t *testing.T) {
	s := newSite(t)
	for text, seconds := range map[string]int{"30s": 30, "5m": 300, "300": 300, "1d12h": 129600, "90d": 7776000} {
		require.Contains(t, s.ok(200, "reader", "GET", "/v1/online/count?window="+text, ""), fmt.Sprintf(`"window_seconds":%d`, seconds))
	}
	s.ok(200, "admin", "PUT", "/v1/bans/u", `{"duration":"90d"}`)
	s.ok(200, "admin", "POST", "/v1/kicks", `{"user":"v","ban":"1d12h"}`)
	s.ok(201, "admin", "POST", "/v1/keys", `{"role":"reader","ttl":"90d"}`)
	s.ok(200, "admin", "POST", "/v1/online/clear", `{"older_than":"1d"}`)
	for _, target := range []string{"/v1/online/count?window=1.5s", "/v1/online?window=1500ms", "/v1/sessions?seen_within=1.5s"} {
		require.Contains(t, s.refused(400, rollcall.CodeInvalidArgument, "reader", "GET", target, "").Detail, "whole seconds")
	}
}

// TestVerifyTellsProxiesWhatTheyUnderstand asks with proxy=1 in each state that
// there is.
func TestVerifyTellsProxiesWhatTheyUnderstand(t *testing.T) {
	s := newSite(t, func(o *httpapi.Options) { o.RateLimits.Failures = slow(2) })
	token := s.loginUser("u")
	get := func(as, query string) http.Header {
		w := s.call(as, "GET", "/v1/verify"+query, "")
		require.Contains(t, []int{200, 401, 403}, w.Code)
		require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
		w.Header().Set("Status", fmt.Sprint(w.Code))
		return w.Header()
	}
	h := get(token, "?proxy=1")
	require.Equal(t, "200", h.Get("Status"))
	for _, name := range []string{"Rollcall-User", "Rollcall-Session", "Rollcall-Kind"} {
		require.NotEmpty(t, h.Get(name), name)
	}
	junk := "rct_" + strings.Repeat("A", 46)
	for _, c := range []struct{ as, query, status, code string }{
		{"", "?proxy=1", "401", "unauthenticated"},
		{junk, "?proxy=1", "401", "unauthenticated"},
		{junk, "?proxy=1", "401", "unauthenticated"},
		{junk, "?proxy=1", "401", "rate_limited"},
		{token, "?proxy=1&touch=1", "403", "forbidden"},
		{token, "?proxy=1&touch=maybe", "401", "invalid_argument"},
		{token, "?proxy=1&colour=red", "401", "invalid_argument"},
	} {
		h := get(c.as, c.query)
		require.Equal(t, c.status, h.Get("Status"), c.query)
		require.Equal(t, c.code, h.Get("Rollcall-Code"), c.query)
	}
	require.Equal(t, 429, s.call(junk, "GET", "/v1/verify", "").Code, "who does not ask for it gets the true status")
	s.ok(200, "writer", "POST", "/v1/kicks", `{"user":"u","reason":"house rules: Ü"}`)
	h = get(token, "?proxy=1")
	require.Equal(t, []string{"401", "session_ended", "kicked", "house%20rules%3A%20%C3%9C"},
		[]string{h.Get("Status"), h.Get("Rollcall-Code"), h.Get("Rollcall-Cause"), h.Get("Rollcall-Reason")})

	down, engine := newFaultySite(t)
	engine.err = &rollcall.Error{Code: rollcall.CodeUnavailable, Detail: "away"}
	w := down.call(junk, "GET", "/v1/verify?proxy=1", "")
	require.Equal(t, 401, w.Code, "what cannot be checked is refused")
	require.Equal(t, "unavailable", w.Header().Get("Rollcall-Code"))
	require.Equal(t, 503, down.call(junk, "GET", "/v1/verify", "").Code)
}

func TestVerifyWritesATouchEveryFewSecondsOnly(t *testing.T) {
	s := newSite(t, func(o *httpapi.Options) { o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")} })
	id, token := s.login(`{"user":"u"}`)
	seen := func() string {
		var out struct {
			SeenAt string `json:"seen_at"`
		}
		require.NoError(t, json.Unmarshal([]byte(s.ok(200, "reader", "GET", "/v1/sessions/"+id, "")), &out))
		return out.SeenAt
	}
	at := seen()
	s.clock.Advance(4 * time.Second)
	s.ok(200, token, "GET", "/v1/verify?touch=1", "")
	require.Equal(t, at, seen())
	s.clock.Advance(time.Second)
	s.ok(200, token, "GET", "/v1/verify?touch=1", "")
	require.NotEqual(t, at, seen())
}

func TestLinesBeforeABadOneCount(t *testing.T) {
	s := newSite(t)
	w := s.stream(strings.NewReader("a\n\nb\nc\nbad\tone\nd\n"))
	require.Equal(t, 400, w.Code)
	p := problemIn(t, w)
	require.Equal(t, "users[3]", p.Field)
	require.Contains(t, p.Detail, "line 5: ")
	require.Contains(t, p.Detail, "the first 3 users were accepted")
	s.json(200, `{"count":3,"window_seconds":300}`, "reader", "GET", "/v1/online/count", "")
}

// TestALineCountsWhenItArrives streams a line and leaves the stream open.
func TestALineCountsWhenItArrives(t *testing.T) {
	s := newSite(t)
	server := s.live()
	conn := dial(t, server, "POST /v1/beats HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+s.keys["writer"]+
		"\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nalice\n\r\n")
	require.Eventually(t, func() bool {
		return strings.Contains(s.ok(200, "reader", "GET", "/v1/online/count", ""), `"count":1`)
	}, generous, time.Millisecond, "the line has not counted")
	_, err := io.WriteString(conn, "4\r\nbob\n\r\n0\r\n\r\n")
	require.NoError(t, err)
	require.Equal(t, 200, statusOn(t, conn))
}

func TestPagesOfOtherSitesAndProxiesAreRefusedWithoutKeys(t *testing.T) {
	s, _ := newFaultySite(t, func(o *httpapi.Options) { o.Auth = httpapi.AuthOff })
	call := func(name, value string) int {
		r := s.request("", "POST", "/v1/beats", `{"users":["a"]}`)
		r.Host = "localhost:8080"
		r.Header.Set(name, value)
		return s.serve(r).Code
	}
	for name, values := range map[string][]string{
		"Origin":         {"http://localhost:3000", "http://localhost", "http://127.0.0.1:8080", "https://localhost:8080", "null"},
		"Sec-Fetch-Site": {"cross-site", "same-site", "whatever"},
		"Forwarded":      {"for=192.0.2.1"}, "X-Forwarded-For": {"127.0.0.1"}, "X-Forwarded-Host": {"example.com"},
		"X-Real-Ip": {"192.0.2.1"}, "Via": {"1.1 proxy"},
	} {
		for _, value := range values {
			require.Equal(t, 403, call(name, value), "%s: %s", name, value)
		}
	}
	require.Equal(t, 200, call("Origin", "http://localhost:8080"))
	require.Equal(t, 200, call("Sec-Fetch-Site", "same-origin"))
	require.Equal(t, 200, call("Sec-Fetch-Site", "none"))
}
