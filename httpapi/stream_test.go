package httpapi_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/httpapi"
)

// carriers are the ways in which a stream reaches its client.
var carriers = []struct {
	name     string
	secure   bool
	http2    bool
	asClient func(target, auth string) string // the request; nil for a client of net/http
}{
	{name: "HTTP/1.1", asClient: func(target, auth string) string {
		return "GET " + target + " HTTP/1.1\r\nHost: a\r\n" + auth + "\r\n"
	}},
	{name: "HTTP/1.1 with a body", asClient: func(target, auth string) string {
		return "GET " + target + " HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n" + auth + "\r\n{}"
	}},
	{name: "HTTP/1.0", asClient: func(target, auth string) string {
		return "GET " + target + " HTTP/1.0\r\nHost: a\r\n" + auth + "\r\n"
	}},
	{name: "HTTP/1.1 over TLS", secure: true},
	{name: "HTTP/2", secure: true, http2: true},
}

// serveAs serves the site as a carrier needs it.
func (s *site) serveAs(secure, http2 bool) *httptest.Server {
	s.t.Helper()
	srv := httptest.NewUnstartedServer(s.server)
	srv.EnableHTTP2 = http2
	if secure {
		srv.StartTLS()
	} else {
		srv.Start()
	}
	s.t.Cleanup(srv.Close)
	s.t.Cleanup(s.server.EndStreams)
	return srv
}

// openSockets expects so many streams of events to be open.
func (s *site) openSockets(n int) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		return strings.Contains(s.ok(200, "", "GET", "/metrics", ""), fmt.Sprintf("rollcall_streams{kind=\"events\"} %d\n", n))
	}, patience, 2*time.Millisecond, "%d streams are open", n)
}

// socket sends a request as it is, and reads the head of the answer.
func (s *site) socket(base, request string) (net.Conn, *http.Response) {
	s.t.Helper()
	conn, err := new(net.Dialer).DialContext(s.t.Context(), "tcp", strings.TrimPrefix(base, "http://"))
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = conn.Close() })
	_, err = io.WriteString(conn, request)
	require.NoError(s.t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(s.t, err)
	require.Equal(s.t, http.StatusOK, resp.StatusCode)
	return conn, resp
}

// readerOf reads the frames of a stream.
func readerOf(t testing.TB, body io.Reader) *stream {
	st := &stream{t: t, body: bufio.NewReader(body), frames: make(chan sseFrame, 2_000)}
	go st.read()
	return st
}

// TestAStreamIsServedInEveryVersionOfHTTP has each carrier tell, notice that the client
// goes, and end with the server.
func TestAStreamIsServedInEveryVersionOfHTTP(t *testing.T) {
	for _, c := range carriers {
		t.Run(c.name, func(t *testing.T) {
			s := newSite(t)
			srv := s.serveAs(c.secure, c.http2)
			auth := "Authorization: Bearer " + s.keys[rollcall.RoleReader] + "\r\n"
			open := func() (st *stream, leave func()) {
				if c.asClient != nil {
					conn, resp := s.socket(srv.URL, c.asClient("/v1/events", auth))
					return readerOf(t, resp.Body), func() { _ = conn.Close() }
				}
				ctx, cancel := context.WithCancel(t.Context())
				r, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL+"/v1/events", nil)
				require.NoError(t, err)
				r.Header.Set("Authorization", "Bearer "+s.keys[rollcall.RoleReader])
				resp, err := srv.Client().Do(r)
				require.NoError(t, err)
				t.Cleanup(func() { cancel(); _ = resp.Body.Close() })
				require.Equal(t, c.http2, resp.ProtoMajor == 2)
				return readerOf(t, resp.Body), cancel
			}
			st, leave := open()
			<-st.frames
			<-st.frames // it has begun
			s.login(`{"user":"alice"}`)
			require.Equal(t, "alice", st.event().User)
			require.Equal(t, "user.online", st.event().Type)
			leave()
			s.openSockets(0)

			st, _ = open()
			s.openSockets(1)
			s.server.EndStreams()
			st.ends()
			s.openSockets(0)
			require.Contains(t, s.ok(200, "", "GET", "/metrics", ""), `rollcall_streams_ended_total{cause="shutdown",kind="events"} 1`)
		})
	}
}

// TestTheBytesOfAStream reads what a client of HTTP/1.1 gets, to its end.
func TestTheBytesOfAStream(t *testing.T) {
	s := newSite(t, func(o *httpapi.Options) { o.CORSOrigins = []string{"https://app.example"} })
	id, token := s.login(`{"user":"me"}`)
	base := s.listen()
	conn, resp := s.socket(base, "GET /v1/me/friends/events HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer "+token+"\r\nOrigin: https://app.example\r\nX-Request-Id: mine\r\n\r\n")
	require.Equal(t, []string{"chunked"}, resp.TransferEncoding)
	require.True(t, resp.Close, "the connection is for one answer")
	for name, want := range map[string]string{
		"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no", "X-Request-Id": "mine",
		"X-Content-Type-Options": "nosniff", "Access-Control-Allow-Origin": "https://app.example",
	} {
		require.Equal(t, want, resp.Header.Get(name), name)
	}
	_, err := http.ParseTime(resp.Header.Get("Date"))
	require.NoError(t, err)

	s.ok(200, "writer", "POST", "/v1/kicks", `{"session":"`+id+`"}`)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(patience)))
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err, "the stream comes to its proper end")
	require.Contains(t, string(text), "event: session.ended\n")
	require.True(t, strings.HasSuffix(string(text), "\n\n"))
	_, err = conn.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "and the connection is closed")
}

func TestWhatAClientSendsBehindItsRequestDoesNotHurt(t *testing.T) {
	s := newSite(t)
	base := s.listen()
	ask := "GET /v1/events HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " + s.keys[rollcall.RoleReader] + "\r\n\r\n"
	_, resp := s.socket(base, ask+"GET /v1/stats HTTP/1.1\r\nHost: a\r\n\r\n")
	st := readerOf(t, resp.Body)
	<-st.frames
	<-st.frames
	s.login(`{"user":"alice"}`)
	require.Equal(t, "alice", st.event().User, "a request that came ahead is not answered")

	// One who goes on to send is cut off.
	conn, _ := s.socket(base, ask)
	s.openSockets(2)
	require.Eventually(t, func() bool {
		_, err := conn.Write(make([]byte, 4<<10))
		return err != nil
	}, patience, time.Millisecond, "the connection is closed")
	s.openSockets(1)
}

func TestTheHeadOfAStreamEnds(t *testing.T) {
	s := newSite(t)
	_, token := s.login(`{"user":"me"}`)
	for target, as := range map[string]string{"/v1/events": "reader", "/v1/me/friends/events": token} {
		w := s.call(as, "HEAD", target, "")
		require.Equal(t, 200, w.Code)
		require.Equal(t, "text/event-stream", w.Header().Get("Content-Type"))
	}
	require.NotContains(t, s.ok(200, "", "GET", "/metrics", ""), "rollcall_streams{")
}

// TestAnIdleStreamIsOneGoroutine counts the goroutines of streams that nothing happens
// to: their stacks are most of what streams cost.
func TestAnIdleStreamIsOneGoroutine(t *testing.T) {
	const streams = 50
	s := newSite(t)
	base := s.listen()
	_, token := s.login(`{"user":"me"}`)
	s.socket(base, "GET /v1/events HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer "+s.keys[rollcall.RoleReader]+"\r\n\r\n")
	s.socket(base, "GET /v1/me/friends/events HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer "+token+"\r\n\r\n")
	s.openSockets(1)
	before := runtime.NumGoroutine() // with those that all streams share
	for range streams {
		s.socket(base, "GET /v1/events HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer "+s.keys[rollcall.RoleReader]+"\r\n\r\n")
	}
	for n := range streams {
		_, token := s.login(fmt.Sprintf(`{"user":"u%d"}`, n))
		s.socket(base, "GET /v1/me/friends/events HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer "+token+"\r\n\r\n")
	}
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+2*streams+5 }, patience, time.Millisecond,
		"%d streams hold a goroutine each", 2*streams)
}

// TestAClientThatPausesGetsAllInOrder has more come than the socket takes at once.
func TestAClientThatPausesGetsAllInOrder(t *testing.T) {
	const bans, writers = 320, 16
	s := newSite(t)
	base := s.listen()
	conn, resp := s.socket(base, "GET /v1/events?types=user.banned HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer "+s.keys[rollcall.RoleReader]+"\r\n\r\n")
	require.NoError(t, conn.(*net.TCPConn).SetReadBuffer(4<<10))
	s.openSockets(1)
	reason := strings.Repeat("r", rollcall.MaxReasonLen)
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for n := range bans / writers {
				_, err := s.roll.Ban(context.Background(), fmt.Sprint("u", w, "-", n), time.Hour, reason, "")
				assert.NoError(t, err)
			}
		})
	}
	all.Wait()
	var page struct{ Items []told }
	require.Eventually(t, func() bool {
		page.Items = nil
		s.decode(s.page("admin", "after=start&limit=1000&types=user.banned"), &page)
		return len(page.Items) == bans
	}, patience, time.Millisecond)
	st := readerOf(t, resp.Body)
	for _, want := range page.Items {
		require.Equal(t, want, st.event())
	}
}

// holding is an engine whose look at friends can be held up once it has read.
type holding struct {
	rollcall.Engine
	mu   sync.Mutex
	hold chan struct{} // nil lets through
	read chan struct{} // receives when a look that is held has read
}

func (h *holding) FriendsOfMany(ctx context.Context, now time.Time, users []string, window time.Duration, v rollcall.Viewer) ([][]rollcall.FriendStatus, error) {
	out, err := h.Engine.FriendsOfMany(ctx, now, users, window, v)
	h.mu.Lock()
	hold := h.hold
	h.mu.Unlock()
	if hold != nil {
		h.read <- struct{}{}
		<-hold
	}
	return out, err
}

func (h *holding) set(hold chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hold = hold
}

// TestWhatIsToldDoesNotWaitForALook holds a look up that has read what was, while
// friends come and go.
func TestWhatIsToldDoesNotWaitForALook(t *testing.T) {
	engine := &holding{Engine: openLocal(t), read: make(chan struct{}, 100)}
	s := newSiteOver(t, engine)
	_, token := s.login(`{"user":"me"}`)
	s.befriend("me", "alice", "bob", "carol")
	s.login(`{"user":"alice"}`)
	s.beat("carol")
	st := s.open(s.listen(), token, "/v1/me/friends/events")
	require.Equal(t, []string{"alice", "carol"}, st.friends())

	hold := make(chan struct{})
	engine.set(hold)
	s.ok(204, "writer", "DELETE", "/v1/users/me/friends/carol", "") // wants a look
	<-engine.read
	engine.set(nil)
	s.ok(200, "writer", "POST", "/v1/kicks", `{"user":"alice"}`)
	require.Equal(t, "offline alice", st.change())
	s.beat("bob")
	require.Equal(t, "online bob", st.change())
	close(hold)
	require.Equal(t, "offline carol", st.change(), "of alice and bob the look is older than what was told")
}
