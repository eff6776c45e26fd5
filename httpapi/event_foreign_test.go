package httpapi_test

import (
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/httpapi"
)

// TestPlacesThatAreNotOurs has clients resume behind what no server told them.
func TestPlacesThatAreNotOurs(t *testing.T) {
	s := newSite(t)
	base := s.listen()
	s.ok(200, "writer", "PUT", "/v1/users/ghost", `{"invisible":true}`)
	s.login(`{"user":"ghost"}`)
	s.login(`{"user":"seen"}`)
	var truth struct{ Items []told }
	s.decode(s.page("admin", "after=start"), &truth)
	require.Equal(t, "ghost", truth.Items[0].User)
	hidden, newest := truth.Items[0].ID, truth.Items[len(truth.Items)-1].ID

	// The id of an event that the reader may not see is a place as any other.
	st := s.open(base, "reader", "/v1/events", "Last-Event-ID", hidden)
	require.Equal(t, "seen", st.event().User)
	st = s.open(base, "reader", "/v1/events?user=seen", "Last-Event-ID", strings.ToUpper(hidden))
	require.Equal(t, "seen", st.event().User)

	// What may have been is not taken for what was.
	for _, forged := range []string{
		"ffffffff" + newest[8:], newest[:8] + "ffffffffffffffff", newest + "00", newest[:len(newest)-1], "0", "START", "../", "id: x",
	} {
		f := s.open(base, "reader", "/v1/events", "Last-Event-ID", forged).next()
		require.Equal(t, "reset", f.Event, forged)
		require.NotEqual(t, forged, f.ID)
	}

	// Another filter than before is that of the resume.
	st = s.open(base, "reader", "/v1/events?user=seen&types=user.online", "Last-Event-ID", hidden)
	require.Equal(t, "user.online seen", func() string { e := st.event(); return e.Type + " " + e.User }())
}

// TestATicketWorksOnceOnEachServer has two servers over one store.
func TestATicketWorksOnceOnEachServer(t *testing.T) {
	engine, clock := openLocal(t), rollcall.NewManualClock(noon)
	var servers []*httpapi.Server
	var rolls []*rollcall.Roll
	for range 2 {
		roll, err := rollcall.New(engine, rollcall.Options{Clock: clock, Secret: make([]byte, 32)})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, roll.Close()) })
		server, err := httpapi.New(roll, httpapi.Options{})
		require.NoError(t, err)
		servers, rolls = append(servers, server), append(rolls, roll)
	}
	key, _, err := rolls[0].CreateKey(t.Context(), rollcall.NewKey{Role: rollcall.RoleReader})
	require.NoError(t, err)
	page := func(at int, ticket string) int {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/v1/events?ticket="+url.QueryEscape(ticket), nil)
		r.Header.Set("Accept", "application/json")
		w := httptest.NewRecorder()
		servers[at].ServeHTTP(w, r)
		return w.Code
	}
	newTicket := func() string {
		text, _, err := rolls[0].NewEventTicket(rollcall.EventTicket{Key: key.ID, Role: key.Role})
		require.NoError(t, err)
		return text
	}
	text := newTicket()
	require.Equal(t, 200, page(1, text))
	require.Equal(t, 401, page(1, text))
	require.Equal(t, 200, page(0, text), "each server remembers its own")
	require.Equal(t, 401, page(0, text))

	text = newTicket()
	require.NoError(t, rolls[0].RevokeKey(t.Context(), key.ID))
	require.Equal(t, 401, page(1, text), "its key was revoked at the other server")
}
