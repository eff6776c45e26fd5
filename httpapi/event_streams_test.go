package httpapi_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/httpapi"
)

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
