package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/httpapi"
	"github.com/rollcall/rollcall/internal/redistest"
	"github.com/rollcall/rollcall/redis"
)

// soon has a server look at credentials more often than it does, so that a test need not
// wait for seconds.
func (s *site) soon() *site {
	s.server.KeyCheck(20 * time.Millisecond)
	return s
}

// waitsForPage asks for a page of events that waits, and returns the answer's channel once
// the reader waits.
func (s *site) waitsForPage(r *http.Request) <-chan problem {
	s.t.Helper()
	answer := make(chan problem, 1)
	before := s.streamsOpen()
	r.Header.Set("Accept", "application/json")
	go func() {
		w := s.serve(r)
		var p problem
		_ = json.Unmarshal(w.Body.Bytes(), &p) // a page has no status
		answer <- p
	}()
	require.Eventually(s.t, func() bool { return s.streamsOpen() != before }, patience, time.Millisecond, "the reader waits")
	return answer
}

// streamsOpen is what the metrics say of streams that are open.
func (s *site) streamsOpen() string {
	_, rest, _ := strings.Cut(s.ok(200, "", "GET", "/metrics", ""), `rollcall_streams{kind="events"} `)
	count, _, _ := strings.Cut(rest, "\n")
	return count
}

// endedByKey waits until the metrics say that so many streams ended with their credential.
func (s *site) endedByKey(n int) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		return strings.Contains(s.ok(200, "", "GET", "/metrics", ""), fmt.Sprintf(`rollcall_streams_ended_total{cause="key",kind="events"} %d`, n))
	}, patience, time.Millisecond, "the end is counted by its cause")
}

// refusedIn waits for the answer of a page.
func (s *site) refusedIn(answer <-chan problem) problem {
	s.t.Helper()
	select {
	case p := <-answer:
		return p
	case <-time.After(patience):
		require.FailNow(s.t, "the page was not answered")
		return problem{}
	}
}

// TestStreamsEndWithAKeyThatAnotherServerRevoked has two servers over one Redis.
func TestStreamsEndWithAKeyThatAnotherServerRevoked(t *testing.T) {
	t.Parallel()
	store := redistest.Start(t, redistest.Options{})
	var sites []*site
	for range 2 {
		engine, err := redis.Open(t.Context(), redis.Options{URL: store.URL(), Partitions: 2, Timeout: time.Minute})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, engine.Close()) })
		sites = append(sites, newSiteOver(t, engine, func(o *httpapi.Options) { o.RateLimits = httpapi.RateLimits{} }).soon())
	}
	here, there := sites[0], sites[1]
	base := here.listen()
	made, text, err := here.roll.CreateKey(t.Context(), rollcall.NewKey{Role: rollcall.RoleReader})
	require.NoError(t, err)
	st, other := here.open(base, text, "/v1/events"), here.open(base, "reader", "/v1/events")
	page := here.waitsForPage(here.request(text, "GET", "/v1/events?wait=30s", ""))

	there.ok(204, "admin", "DELETE", "/v1/keys/"+made.ID, "")
	require.Empty(t, st.ends())
	p := here.refusedIn(page)
	require.Equal(t, 401, p.Status)
	require.Contains(t, p.Detail, "this API key does not work any more")
	here.endedByKey(1)
	there.login(`{"user":"alice"}`)
	require.Equal(t, "alice", other.event().User, "streams of other keys go on")
}

// cookieFor returns the cookie of a session as a page of this machine sends it.
func cookieFor(t testing.TB, base string, cookie *http.Cookie) string {
	t.Helper()
	u, err := url.Parse(base)
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(u.Host)
	require.NoError(t, err)
	return "rollcall_console_" + port + "=" + cookie.Value
}

func TestStreamsEndWithTheSessionOfTheConsole(t *testing.T) {
	for name, signOut := range map[string]func(*site, *http.Cookie, rollcall.APIKey){
		"signed out": func(s *site, cookie *http.Cookie, _ rollcall.APIKey) {
			require.Equal(t, 204, s.serve(s.pageRequest(cookie, "DELETE", "/v1/console/session", "")).Code)
		},
		"signed in anew": func(s *site, cookie *http.Cookie, _ rollcall.APIKey) {
			cookieIn(t, s.serve(s.pageRequest(cookie, "POST", "/v1/console/session", `{"key":"`+s.keys[rollcall.RoleReader]+`"}`)))
		},
		"its key revoked": func(s *site, _ *http.Cookie, key rollcall.APIKey) {
			s.ok(204, "admin", "DELETE", "/v1/keys/"+key.ID, "")
		},
		"not used": func(s *site, _ *http.Cookie, _ rollcall.APIKey) {
			s.clock.Advance(rollcall.ConsoleIdle)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			if name == "not used" {
				s.soon()
			}
			base := s.listen()
			key, text, err := s.roll.CreateKey(t.Context(), rollcall.NewKey{Role: rollcall.RoleWriter})
			require.NoError(t, err)
			cookie := s.signIn(`{"key":"` + text + `"}`)

			// A stream by the cookie, one by a ticket that the page made, and a page that waits.
			byCookie := s.open(base, "", "/v1/events", "Cookie", cookieFor(t, base, cookie))
			byTicket := s.open(base, "", s.ticketOf(cookie))
			other := s.open(base, "reader", "/v1/events")
			page := s.waitsForPage(s.pageRequest(cookie, "GET", "/v1/events?wait=30s", ""))
			unused := s.ticketOf(cookie)

			signOut(s, cookie, key)
			require.Empty(t, byCookie.ends())
			require.Empty(t, byTicket.ends())
			p := s.refusedIn(page)
			require.Equal(t, 401, p.Status)
			require.Contains(t, p.Detail, "this session of the console has ended")
			s.refused(401, rollcall.CodeUnauthenticated, "", "GET", unused, "")
			s.endedByKey(2)
			s.login(`{"user":"alice"}`)
			require.Equal(t, "alice", other.event().User, "other streams go on")
		})
	}
}

// ticketOf makes a ticket in a session of the console, and returns where it is used.
func (s *site) ticketOf(cookie *http.Cookie) string {
	s.t.Helper()
	w := s.serve(s.pageRequest(cookie, "POST", "/v1/events/tickets", `{}`))
	require.Equal(s.t, 201, w.Code, "%s", w.Body)
	var out struct{ Ticket string }
	s.decode(w.Body.String(), &out)
	return "/v1/events?ticket=" + url.QueryEscape(out.Ticket)
}

// TestATicketOfASessionWithoutAKey is made by somebody whom a proxy has signed in.
func TestATicketOfASessionWithoutAKey(t *testing.T) {
	s := newSite(t, func(o *httpapi.Options) {
		o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")}
		o.ConsoleHeader, o.ConsoleHeaderRole = "X-User", rollcall.RoleReader
	})
	base := s.listen()
	r := s.pageRequest(nil, "POST", "/v1/console/session", `{"proxy":true}`)
	r.Header.Set("X-User", "mei")
	cookie := cookieIn(t, s.serve(r))
	st := s.open(base, "", s.ticketOf(cookie))
	s.login(`{"user":"alice"}`)
	require.Equal(t, "alice", st.event().User)
	require.Equal(t, 204, s.serve(s.pageRequest(cookie, "DELETE", "/v1/console/session", "")).Code)
	for _, f := range st.ends() {
		require.NotEqual(t, "reset", f.Event)
	}
}
