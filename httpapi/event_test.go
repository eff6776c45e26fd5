package httpapi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

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

	// What an invisible user does moves no place that a reader is told.
	place := func(as, query string) string {
		var page struct{ Next string }
		s.decode(s.page(as, query), &page)
		return page.Next
	}
	asked := []string{"wait=0", "types=session.started&after=start", "types=user.online&after=start", "after=unknown", "after=start"}
	before, truth := make([]string, len(asked)), place("admin", "wait=0")
	for i, query := range asked {
		before[i] = place("reader", query)
	}
	s.ok(200, "writer", "POST", "/v1/kicks", `{"user":"ghost"}`)
	s.login(`{"user":"ghost"}`)
	for i, query := range asked {
		require.Equal(t, before[i], place("reader", query), query)
	}
	require.NotEqual(t, truth, place("admin", "wait=0"))
	begins := s.open(base, "reader", "/v1/events")
	<-begins.frames
	require.Equal(t, before[0], (<-begins.frames).ID, "nor the place that a stream begins at")
	require.Contains(t, s.page("admin", "after=start"), "ghost")
}
