package httpapi_test

import (
	"encoding/json"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/httpapi"
)

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
