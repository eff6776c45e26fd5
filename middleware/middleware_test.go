package middleware_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/local"
	"github.com/rollcall/rollcall/middleware"
)

var (
	_ middleware.SessionService = (*rollcall.Roll)(nil)
	_ middleware.BeatService    = (*rollcall.Roll)(nil)
)

// counted is a Roll whose calls are counted, and that can fail.
type counted struct {
	*rollcall.Roll
	touches, verifies, beats atomic.Int64
	fail                     atomic.Pointer[error]
}

func (c *counted) failure() error {
	if err := c.fail.Load(); err != nil {
		return *err
	}
	return nil
}

func (c *counted) Touch(ctx context.Context, ref rollcall.SessionRef) (rollcall.Session, error) {
	c.touches.Add(1)
	if err := c.failure(); err != nil {
		return rollcall.Session{}, err
	}
	return c.Roll.Touch(ctx, ref)
}

func (c *counted) Verify(ctx context.Context, ref rollcall.SessionRef) (rollcall.Session, error) {
	c.verifies.Add(1)
	if err := c.failure(); err != nil {
		return rollcall.Session{}, err
	}
	return c.Roll.Verify(ctx, ref)
}

func (c *counted) Beat(ctx context.Context, users ...string) error {
	c.beats.Add(1)
	if err := c.failure(); err != nil {
		return err
	}
	return c.Roll.Beat(ctx, users...)
}

func newService(t testing.TB) *counted {
	t.Helper()
	engine, err := local.Open("", local.Options{InMemory: true})
	require.NoError(t, err)
	roll, err := rollcall.New(engine, rollcall.Options{Clock: rollcall.NewManualClock(time.Unix(1_800_000_000, 0))})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, roll.Close())
		require.NoError(t, engine.Close())
	})
	return &counted{Roll: roll}
}

func (c *counted) login(t testing.TB, user string) rollcall.LoggedIn {
	t.Helper()
	in, err := c.Login(t.Context(), rollcall.Login{User: user})
	require.NoError(t, err)
	return in
}

// who answers with the user of the request's session.
var who = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	s, ok := middleware.Session(r.Context())
	fmt.Fprintf(w, "%q %v", s.User, ok)
})

func get(h http.Handler, change func(*http.Request)) *httptest.ResponseRecorder {
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)
	if change != nil {
		change(r)
	}
	h.ServeHTTP(w, r)
	return w
}

func bearer(token string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
}

func cookie(token string) func(*http.Request) {
	return func(r *http.Request) { r.AddCookie(&http.Cookie{Name: "session", Value: token}) }
}

func TestALiveSessionGetsThroughByHeaderOrCookie(t *testing.T) {
	s := newService(t)
	token := s.login(t, "alice").Token
	h := middleware.Sessions(s, middleware.Options{Cookie: "session"})(who)

	require.Equal(t, `"alice" true`, get(h, bearer(token)).Body.String())
	require.Equal(t, `"alice" true`, get(h, cookie(token)).Body.String())
	require.Equal(t, http.StatusUnauthorized, get(h, nil).Code)
	require.Equal(t, http.StatusUnauthorized, get(h, bearer("rct_nonsense")).Code)

	headerOnly := middleware.Sessions(s, middleware.Options{})(who)
	require.Equal(t, http.StatusUnauthorized, get(headerOnly, cookie(token)).Code)
}

func TestAKickedSessionIsRefusedAtItsNextRequestWithTheReason(t *testing.T) {
	s := newService(t)
	in := s.login(t, "alice")
	h := middleware.Sessions(s, middleware.Options{})(who)
	require.Equal(t, http.StatusOK, get(h, bearer(in.Token)).Code)
	_, err := s.Kick(t.Context(), rollcall.Kick{User: "alice", Reason: "payment failed"})
	require.NoError(t, err)

	w := get(h, bearer(in.Token))
	require.Equal(t, http.StatusUnauthorized, w.Code)
	require.Equal(t, "application/problem+json", w.Header().Get("Content-Type"))
	require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	var told map[string]any
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &told))
	require.Equal(t, "session_ended", told["code"])
	require.Equal(t, "kicked", told["cause"])
	require.Equal(t, "payment failed", told["reason"])

	var refused error
	own := middleware.Sessions(s, middleware.Options{Refuse: func(w http.ResponseWriter, r *http.Request, err error) {
		refused = err
		http.Redirect(w, r, "/login", http.StatusSeeOther)
	}})(who)
	require.Equal(t, http.StatusSeeOther, get(own, bearer(in.Token)).Code)
	require.Equal(t, rollcall.CodeSessionEnded, rollcall.CodeOf(refused))
}

func TestOneRequestInATenthOfTheWindowIsASignOfLife(t *testing.T) {
	token := newService(t).login(t, "alice").Token
	var s always
	synctest.Test(t, func(t *testing.T) {
		h := middleware.Sessions(&s, middleware.Options{})(who)
		for range 3 {
			for range 10 {
				require.Equal(t, http.StatusOK, get(h, bearer(token)).Code)
			}
			<-time.After(middleware.DefaultEvery)
		}
	})
	require.Equal(t, 3, s.touches)
	require.Equal(t, 27, s.verifies)
}

// always finds every session live, and counts how it was asked.
type always struct{ touches, verifies int }

func (a *always) Touch(context.Context, rollcall.SessionRef) (rollcall.Session, error) {
	a.touches++
	return rollcall.Session{}, nil
}

func (a *always) Verify(context.Context, rollcall.SessionRef) (rollcall.Session, error) {
	a.verifies++
	return rollcall.Session{}, nil
}

func TestOfRequestsAtOnceOneIsTheSignOfLife(t *testing.T) {
	s := newService(t)
	token := s.login(t, "alice").Token
	h := middleware.Sessions(s, middleware.Options{})(who)
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { get(h, bearer(token)) })
	}
	all.Wait()
	require.EqualValues(t, 1, s.touches.Load())
}

func TestWithoutAnAnswerNobodyGetsIn(t *testing.T) {
	s := newService(t)
	token := s.login(t, "alice").Token
	h := middleware.Sessions(s, middleware.Options{})(who)
	var away error = &rollcall.Error{Code: rollcall.CodeUnavailable, Detail: "redis at 10.0.0.7 is away"}
	s.fail.Store(&away)

	w := get(h, bearer(token))
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.NotEmpty(t, w.Header().Get("Retry-After"))
	require.NotContains(t, w.Body.String(), "10.0.0.7")

	// The sign of life that failed is made up for by the next request.
	s.fail.Store(nil)
	require.Equal(t, http.StatusOK, get(h, bearer(token)).Code)
	require.EqualValues(t, 2, s.touches.Load())
}

func TestWhereSessionsAreOptionalOnlyABadTokenIsRefused(t *testing.T) {
	s := newService(t)
	h := middleware.Sessions(s, middleware.Options{Optional: true})(who)
	require.Equal(t, `"" false`, get(h, nil).Body.String())
	require.Equal(t, http.StatusUnauthorized, get(h, bearer("rct_nonsense")).Code)
}

func TestRequestsOfUsersThatTheApplicationKnowsAreBeats(t *testing.T) {
	s := newService(t)
	name := func(r *http.Request) string { return r.Header.Get("X-User") }
	as := func(user string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("X-User", user) }
	}
	h := middleware.Beats(s, name, middleware.Options{})(who)
	for range 5 {
		require.Equal(t, http.StatusOK, get(h, as("alice")).Code)
	}
	get(h, nil)
	require.EqualValues(t, 1, s.beats.Load())
	n, err := s.OnlineCount(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, 1, n)

	// A beat that fails keeps nobody out.
	require.Equal(t, http.StatusOK, get(h, as("bad\nname")).Code)
}

func ExampleSessions() {
	engine, err := local.Open("", local.Options{InMemory: true})
	if err != nil {
		panic(err)
	}
	defer engine.Close()
	roll, err := rollcall.New(engine, rollcall.Options{})
	if err != nil {
		panic(err)
	}
	defer roll.Close()
	in, err := roll.Login(context.Background(), rollcall.Login{User: "alice"})
	if err != nil {
		panic(err)
	}

	mux := http.NewServeMux()
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		s, _ := middleware.Session(r.Context())
		fmt.Fprintln(w, "hello", s.User)
	})
	guard := middleware.Sessions(roll, middleware.Options{Cookie: "session"})
	site := httptest.NewServer(guard(mux))
	defer site.Close()

	ask := func() {
		req, _ := http.NewRequest(http.MethodGet, site.URL, nil)
		req.AddCookie(&http.Cookie{Name: "session", Value: in.Token})
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			panic(err)
		}
		defer res.Body.Close()
		fmt.Println(res.Status)
	}
	ask()
	if _, err := roll.Kick(context.Background(), rollcall.Kick{User: "alice"}); err != nil {
		panic(err)
	}
	ask()
	// Output:
	// 200 OK
	// 401 Unauthorized
}

// readOnly is a service that cannot write, as on a full disk.
type readOnly struct {
	*counted
	code rollcall.Code
}

func (r readOnly) Touch(context.Context, rollcall.SessionRef) (rollcall.Session, error) {
	return rollcall.Session{}, &rollcall.Error{Code: r.code}
}

func TestWhereNothingCanBeWrittenLiveSessionsGetInAndKickedOnesDoNot(t *testing.T) {
	for _, code := range []rollcall.Code{rollcall.CodeStorageFull, rollcall.CodeUnavailable} {
		service := readOnly{newService(t), code}
		site := middleware.Sessions(service, middleware.Options{})(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNoContent)
		}))
		ask := func(token string) int {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
			r.Header.Set("Authorization", "Bearer "+token)
			w := httptest.NewRecorder()
			site.ServeHTTP(w, r)
			return w.Code
		}
		alice, bob := service.login(t, "alice"), service.login(t, "bob")
		_, err := service.Kick(t.Context(), rollcall.Kick{User: "bob"})
		require.NoError(t, err)
		for range 2 {
			require.Equal(t, http.StatusNoContent, ask(alice.Token), code)
			require.Equal(t, http.StatusUnauthorized, ask(bob.Token), code)
		}
	}
}
