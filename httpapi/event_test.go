package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/httpapi"
)

// patience is how long a test waits for what is going to come.
const patience = time.Minute

// listen serves the site on a socket, which streams need.
func (s *site) listen() string {
	s.t.Helper()
	srv := httptest.NewUnstartedServer(s.server)
	srv.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetWriteBuffer(16 << 10) // so that a reader who reads nothing is noticed soon
		}
		return ctx
	}
	srv.Start()
	s.t.Cleanup(srv.Close)
	s.t.Cleanup(s.server.EndStreams)
	return srv.URL
}

// stream is an SSE reader.
type stream struct {
	t      testing.TB
	body   *bufio.Reader
	close  func()
	header http.Header
	frames chan sseFrame // closed at the end
}

// sseFrame is one event of a stream; Comment is set for what is none.
type sseFrame struct{ ID, Event, Data, Retry, Comment string }

// open opens a stream as a role, a token or, with "", as nobody.
func (s *site) open(base, as, target string, header ...string) *stream {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+target, nil)
	require.NoError(s.t, err)
	if key, ok := s.keys[rollcall.Role(as)]; ok {
		as = key
	}
	if as != "" {
		r.Header.Set("Authorization", "Bearer "+as)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	transport := &http.Transport{}
	resp, err := (&http.Client{Transport: transport}).Do(r)
	require.NoError(s.t, err)
	require.Equal(s.t, http.StatusOK, resp.StatusCode, "%s", target)
	require.Equal(s.t, "text/event-stream", resp.Header.Get("Content-Type"))
	st := &stream{t: s.t, body: bufio.NewReader(resp.Body), header: resp.Header, frames: make(chan sseFrame, 2_000)}
	st.close = func() { cancel(); _ = resp.Body.Close(); transport.CloseIdleConnections() }
	s.t.Cleanup(st.close)
	go st.read()
	return st
}

func (st *stream) read() {
	defer close(st.frames)
	f := sseFrame{}
	for {
		line, err := st.body.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.TrimSuffix(line, "\n")
		name, value, _ := strings.Cut(line, ": ")
		switch {
		case line == "":
			st.frames <- f
			f = sseFrame{}
		case strings.HasPrefix(line, ":"):
			f.Comment = line
		case name == "id":
			f.ID = value
		case name == "event":
			f.Event = value
		case name == "data":
			f.Data = value
		case name == "retry":
			f.Retry = value
		}
	}
}

// next returns the next event; what is none is passed over.
func (st *stream) next() sseFrame {
	st.t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case f, ok := <-st.frames:
			require.True(st.t, ok, "the stream goes on")
			if f.Event != "" {
				return f
			}
		case <-timeout:
			require.FailNow(st.t, "no event came")
		}
	}
}

// ends expects that the stream ends, and returns the events that came before.
func (st *stream) ends() []sseFrame {
	st.t.Helper()
	timeout := time.After(patience)
	var out []sseFrame
	for {
		select {
		case f, ok := <-st.frames:
			if !ok {
				return out
			}
			if f.Event != "" {
				out = append(out, f)
			}
		case <-timeout:
			require.FailNow(st.t, "the stream did not end")
		}
	}
}

// told is what an event of a stream says.
type told struct{ ID, Type, At, User, Session, Cause, Reason, Actor string }

func (st *stream) event() told {
	st.t.Helper()
	f := st.next()
	var e told
	require.NoError(st.t, json.Unmarshal([]byte(f.Data), &e), "%s", f.Data)
	require.Equal(st.t, f.ID, e.ID)
	require.Equal(st.t, f.Event, e.Type)
	return e
}

func TestEventsAreStreamed(t *testing.T) {
	s := newSite(t)
	st := s.open(s.listen(), "reader", "/v1/events")
	first := <-st.frames
	require.NotEmpty(t, first.Comment, "a comment comes at once")
	require.Regexp(t, `^[2-5]\d{3}$`, first.Retry)
	require.Equal(t, "no-store", st.header.Get("Cache-Control"))
	require.Equal(t, "no", st.header.Get("X-Accel-Buffering"))
	require.Equal(t, "start", (<-st.frames).ID, "who connects again before the first event misses none")

	id, _ := s.login(`{"user":"alice"}`)
	e := st.event()
	require.Equal(t, told{ID: e.ID, Type: "session.started", At: "2026-02-03T12:00:00.789Z", User: "alice", Session: id}, e)
	require.Equal(t, "user.online", st.event().Type)
	s.ok(200, "writer", "POST", "/v1/kicks", `{"user":"alice","reason":"a \u003c b"}`)
	e = st.event()
	require.Equal(t, []string{"session.ended", "kicked", "a < b", "writer"}, []string{e.Type, e.Cause, e.Reason, e.Actor})
	require.Equal(t, "user.offline", st.event().Type)
}

func TestAStreamOfEventsResumes(t *testing.T) {
	s := newSite(t)
	base := s.listen()
	st := s.open(base, "reader", "/v1/events")
	<-st.frames
	<-st.frames // it has begun
	for i := range 5 {
		s.login(fmt.Sprintf(`{"user":"u%d"}`, i))
	}
	var all []told
	for range 10 {
		all = append(all, st.event())
	}
	for i, e := range all {
		for _, again := range []*stream{
			s.open(base, "reader", "/v1/events?after="+e.ID),
			s.open(base, "reader", "/v1/events?after=start", "Last-Event-ID", e.ID),
		} {
			for _, want := range all[i+1:] {
				require.Equal(t, want, again.event())
			}
			again.close()
		}
	}
	whole := s.open(base, "reader", "/v1/events?after=start")
	for _, want := range all {
		require.Equal(t, want, whole.event())
	}
	s.login(`{"user":"later"}`)
	require.Equal(t, "later", whole.event().User, "and goes on with what happens")
}

func TestAPlaceThatIsGoneIsAReset(t *testing.T) {
	s := newSite(t)
	base := s.listen()
	s.login(`{"user":"alice"}`)
	st := s.open(base, "reader", "/v1/events", "Last-Event-ID", "of another store")
	f := st.next()
	require.Equal(t, "reset", f.Event)
	require.NotEmpty(t, f.Data)
	s.login(`{"user":"bob"}`)
	require.Equal(t, "bob", st.event().User, "it goes on from now")
	again := s.open(base, "reader", "/v1/events?after="+f.ID)
	require.Equal(t, "bob", again.event().User, "the reset is a place to resume behind")

	var page struct {
		Items []told
		Next  string
		Reset bool
	}
	require.NoError(t, json.Unmarshal([]byte(s.page("reader", "after=x")), &page))
	require.True(t, page.Reset)
	require.Empty(t, page.Items)
	require.NotEmpty(t, page.Next)
}

// page asks for a page of events.
func (s *site) page(as, query string) string {
	s.t.Helper()
	r := s.request(as, "GET", "/v1/events?"+query, "")
	r.Header.Set("Accept", "application/json")
	w := s.serve(r)
	require.Equal(s.t, 200, w.Code, "%s", w.Body)
	return w.Body.String()
}

func TestEventsAreFiltered(t *testing.T) {
	s := newSite(t)
	base := s.listen()
	streams := map[string]*stream{}
	for _, query := range []string{"types=session.ended,user.banned", "user=bob", "cause=kicked", "user=bob&types=session.started"} {
		st := s.open(base, "admin", "/v1/events?"+query)
		<-st.frames
		<-st.frames
		streams[query] = st
	}
	s.login(`{"user":"alice"}`)
	s.login(`{"user":"bob"}`)
	s.ok(200, "writer", "POST", "/v1/kicks", `{"user":"alice"}`)
	s.ok(200, "admin", "PUT", "/v1/bans/bob", `{"duration":"1h"}`)
	for query, want := range map[string][]string{
		"types=session.ended,user.banned": {"session.ended alice", "session.ended bob", "user.banned bob"},
		"user=bob":                        {"session.started bob", "user.online bob"},
		"cause=kicked":                    {"session.ended alice"},
		"user=bob&types=session.started":  {"session.started bob"},
	} {
		pages, st := []string{}, streams[query]
		var page struct{ Items []told }
		require.NoError(t, json.Unmarshal([]byte(s.page("admin", "after=start&"+query)), &page))
		for _, e := range page.Items {
			pages = append(pages, e.Type+" "+e.User)
		}
		require.Subset(t, pages, want)
		got := []string{}
		for range pages {
			e := st.event()
			got = append(got, e.Type+" "+e.User)
		}
		require.Equal(t, pages, got, query)
	}
	for _, query := range []string{"types=session.ended,nonsense", "types=,", "cause=none", "user=%07", "limit=5", "wait=1s", "types=user.online,user.online"} {
		s.refused(400, rollcall.CodeInvalidArgument, "reader", "GET", "/v1/events?"+query, "")
	}
}

func TestPagesOfEventsWait(t *testing.T) {
	s := newSite(t)
	var page struct {
		Items []told
		Next  string
	}
	read := func(query string) {
		t.Helper()
		page.Items = nil
		require.NoError(t, json.Unmarshal([]byte(s.page("reader", query)), &page))
	}
	read("wait=0")
	require.Empty(t, page.Items)
	require.Equal(t, "start", page.Next, "without a place it begins now")
	answer := make(chan string, 1)
	go func() { answer <- s.page("reader", "wait=30s&types=session.started&after="+page.Next) }()
	require.Eventually(t, func() bool {
		return strings.Contains(s.ok(200, "", "GET", "/metrics", ""), `rollcall_streams{kind="events"} 1`)
	},
		patience, time.Millisecond, "the reader waits")
	s.login(`{"user":"alice"}`)
	select {
	case text := <-answer:
		require.NoError(t, json.Unmarshal([]byte(text), &page))
	case <-time.After(patience):
		require.FailNow(t, "no page came")
	}
	require.Len(t, page.Items, 1)
	require.Equal(t, "alice", page.Items[0].User)

	for i := range 5 {
		s.login(fmt.Sprintf(`{"user":"u%d"}`, i))
	}
	var users []string
	for page.Next = "start"; ; {
		read("limit=2&types=session.started&after=" + page.Next)
		if len(page.Items) == 0 {
			break
		}
		require.LessOrEqual(t, len(page.Items), 2)
		for _, e := range page.Items {
			users = append(users, e.User)
		}
	}
	require.Equal(t, []string{"alice", "u0", "u1", "u2", "u3", "u4"}, users)
	read("wait=1s&after=" + page.Next)
	require.Empty(t, page.Items, "nothing came in time")

	for _, query := range []string{"limit=0", "limit=1001", "limit=x", "wait=31s", "wait=-1s"} {
		r := s.request("reader", "GET", "/v1/events?"+query, "")
		r.Header.Set("Accept", "application/json")
		require.Equal(t, 400, s.serve(r).Code, query)
	}
}

func TestEventsOfInvisibleUsersAreForAdministrators(t *testing.T) {
	s := newSite(t)
	base := s.listen()
	s.ok(200, "writer", "PUT", "/v1/users/ghost", `{"invisible":true}`)
	_, all := s.open(base, "writer", "/v1/events?after=start"), s.open(base, "admin", "/v1/events?after=start")
	writer := s.open(base, "writer", "/v1/events?after=start")
	s.login(`{"user":"ghost"}`)
	s.login(`{"user":"seen"}`)
	require.Equal(t, "ghost", all.event().User)
	require.Equal(t, "seen", writer.event().User)
	require.NotContains(t, s.page("reader", "after=start"), "ghost")
	require.Contains(t, s.page("admin", "after=start"), "ghost")
}

func TestAStreamEndsWithItsKey(t *testing.T) {
	s := newSite(t)
	base := s.listen()
	made, text, err := s.roll.CreateKey(t.Context(), rollcall.NewKey{Name: "short", Role: rollcall.RoleReader})
	require.NoError(t, err)
	st, other := s.open(base, text, "/v1/events"), s.open(base, "reader", "/v1/events")
	s.ok(204, "admin", "DELETE", "/v1/keys/"+made.ID, "")
	require.Empty(t, st.ends())
	s.login(`{"user":"alice"}`)
	require.Equal(t, "alice", other.event().User, "streams of other keys go on")
}

func TestStreamsEndWhenTheServerStops(t *testing.T) {
	s := newSite(t)
	base := s.listen()
	st := s.open(base, "reader", "/v1/events")
	_, token := s.login(`{"user":"alice"}`)
	live := s.open(base, token, "/v1/me/friends/events")
	live.next()
	s.server.EndStreams()
	st.ends()
	live.ends()
	p := s.refused(503, rollcall.CodeUnavailable, "reader", "GET", "/v1/events", "")
	require.Contains(t, p.Detail, "streams")
}

func TestStreamsAreLimited(t *testing.T) {
	s := newSite(t, func(o *httpapi.Options) { o.Streams = httpapi.StreamLimits{All: 4, PerKey: 2, PerUser: 1} })
	base := s.listen()
	_, token := s.login(`{"user":"alice"}`)
	first := s.open(base, "reader", "/v1/events")
	s.open(base, "reader", "/v1/events")
	refused := func(as, target string) {
		t.Helper()
		w := s.call(as, "GET", target, "")
		require.Equal(t, 503, w.Code)
		require.NotEmpty(t, w.Header().Get("Retry-After"))
	}
	refused("reader", "/v1/events")
	s.open(base, "writer", "/v1/events")
	s.open(base, token, "/v1/me/friends/events")
	refused(token, "/v1/me/friends/events")
	refused("admin", "/v1/events")
	first.close()
	require.Eventually(t, func() bool {
		return strings.Contains(s.ok(200, "", "GET", "/metrics", ""), `rollcall_streams{kind="events"} 2`)
	},
		patience, 5*time.Millisecond, "a stream that ends makes room")
	s.open(base, "reader", "/v1/events")
}

func TestATicketWorksOnce(t *testing.T) {
	s := newSite(t, func(o *httpapi.Options) { o.CORSOrigins = []string{"https://app.example"} })
	base := s.listen()
	ticket := func(as, body string) string {
		t.Helper()
		var out struct {
			Ticket    string
			ExpiresAt string `json:"expires_at"`
		}
		require.NoError(t, json.Unmarshal([]byte(s.ok(201, as, "POST", "/v1/events/tickets", body)), &out))
		require.Equal(t, "2026-02-03T12:00:30.789Z", out.ExpiresAt)
		require.NotContains(t, out.Ticket, "bob-of-a-long-name")
		return "/v1/events?ticket=" + url.QueryEscape(out.Ticket)
	}
	target := ticket("reader", `{"user":"bob-of-a-long-name","types":["session.started"]}`)
	st := s.open(base, "", target, "Origin", "https://app.example")
	require.Equal(t, "https://app.example", st.header.Get("Access-Control-Allow-Origin"))
	s.login(`{"user":"alice"}`)
	s.login(`{"user":"bob-of-a-long-name"}`)
	e := st.event()
	require.Equal(t, "session.started bob-of-a-long-name", e.Type+" "+e.User, "it shows what it was made for")
	p := s.refused(401, rollcall.CodeUnauthenticated, "", "GET", target, "")
	require.Contains(t, p.Detail, "used")

	s.refused(400, rollcall.CodeInvalidArgument, "", "GET", ticket("reader", `{}`)+"&user=alice", "")
	s.refused(400, rollcall.CodeInvalidArgument, "reader", "POST", "/v1/events/tickets", `{"types":["x"]}`)
	s.refused(401, rollcall.CodeUnauthenticated, "", "GET", "/v1/events?ticket=rcet_AAAA", "")
	s.refused(401, rollcall.CodeUnauthenticated, "", "GET", target[:len(target)-3]+"AAA", "")
	s.refused(400, rollcall.CodeInvalidArgument, "reader", "GET", "/v1/online/count?ticket=x", "")

	s.ok(200, "writer", "PUT", "/v1/users/ghost", `{"invisible":true}`)
	public, truth := s.open(base, "", ticket("writer", `{}`)), s.open(base, "", ticket("admin", `{}`))
	<-public.frames
	<-public.frames
	<-truth.frames
	<-truth.frames
	s.login(`{"user":"ghost"}`)
	s.login(`{"user":"carol"}`)
	require.Equal(t, "carol", public.event().User, "a ticket has the role of its key")
	require.Equal(t, "ghost", truth.event().User)

	made, text, err := s.roll.CreateKey(t.Context(), rollcall.NewKey{Role: rollcall.RoleReader})
	require.NoError(t, err)
	late, gone := ticket("reader", `{}`), ticket(text, `{}`)
	running := s.open(base, "", ticket(text, `{}`))
	s.ok(204, "admin", "DELETE", "/v1/keys/"+made.ID, "")
	s.refused(401, rollcall.CodeUnauthenticated, "", "GET", gone, "")
	running.ends()
	s.clock.Advance(rollcall.EventTicketTTL)
	s.refused(401, rollcall.CodeUnauthenticated, "", "GET", late, "")
}
