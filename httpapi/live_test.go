package httpapi_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// friends is what a reader of live friends knows.
func (st *stream) friends() []string {
	st.t.Helper()
	var out []string
	for {
		f := st.next()
		require.Equal(st.t, "snapshot", f.Event)
		var part struct {
			Items    []struct{ User string }
			Complete bool
		}
		require.NoError(st.t, json.Unmarshal([]byte(f.Data), &part))
		for _, item := range part.Items {
			out = append(out, item.User)
		}
		if part.Complete {
			slices.Sort(out)
			return out
		}
	}
}

// change is the next friend who comes or goes.
func (st *stream) change() string {
	st.t.Helper()
	f := st.next()
	var c struct{ User, At string }
	require.NoError(st.t, json.Unmarshal([]byte(f.Data), &c), "%s", f.Data)
	require.NotEmpty(st.t, c.At)
	return f.Event + " " + c.User
}

// befriend makes users friends of me.
func (s *site) befriend(me string, users ...string) {
	s.t.Helper()
	for _, user := range users {
		s.ok(204, "writer", "PUT", "/v1/users/"+me+"/friends/"+user, "")
	}
}

func (s *site) beat(users ...string) {
	s.t.Helper()
	text, err := json.Marshal(map[string]any{"users": users})
	require.NoError(s.t, err)
	s.ok(200, "writer", "POST", "/v1/beats", string(text))
	require.NoError(s.t, s.roll.Tick(s.t.Context()))
}

func TestFriendsComeAndGoLive(t *testing.T) {
	s := newSite(t)
	base := s.listen()
	_, token := s.login(`{"user":"me"}`)
	s.befriend("me", "alice", "bob", "carol")
	s.beat("alice", "stranger")
	st := s.open(base, token, "/v1/me/friends/events")
	require.Equal(t, []string{"alice"}, st.friends())

	s.beat("bob", "another stranger")
	require.Equal(t, "online bob", st.change())
	s.login(`{"user":"carol"}`)
	require.Equal(t, "online carol", st.change())
	s.ok(200, "writer", "POST", "/v1/kicks", `{"user":"carol"}`)
	require.Equal(t, "offline carol", st.change())

	// Who hides is gone to the public, and comes when they show themselves.
	s.ok(200, "writer", "PUT", "/v1/users/bob", `{"invisible":true}`)
	require.Equal(t, "offline bob", st.change())
	s.ok(200, "writer", "PUT", "/v1/users/bob", `{"invisible":false}`)
	require.Equal(t, "online bob", st.change())

	// A friend who is added or removed through this server shows at once.
	s.befriend("me", "stranger")
	require.Equal(t, "online stranger", st.change())
	s.ok(204, "writer", "DELETE", "/v1/users/me/friends/alice", "")
	require.Equal(t, "offline alice", st.change())
	s.beat("alice")

	// A silent friend goes when the window has passed.
	for range 310 {
		s.clock.Advance(time.Second)
		require.NoError(t, s.roll.Tick(t.Context()))
	}
	got := []string{st.change(), st.change()}
	slices.Sort(got)
	require.Equal(t, []string{"offline bob", "offline stranger"}, got, "alice is a friend no longer")
}

func TestAFriendWhoReturnsWithinTheLeaveGraceWasNotAway(t *testing.T) {
	s := newSite(t)
	_, token := s.login(`{"user":"me"}`)
	s.befriend("me", "alice", "bob")
	id, _ := s.login(`{"user":"alice"}`)
	st := s.open(s.listen(), token, "/v1/me/friends/events")
	require.Equal(t, []string{"alice"}, st.friends())
	s.ok(200, "writer", "DELETE", "/v1/sessions/"+id, "")
	s.clock.Advance(5 * time.Second)
	s.login(`{"user":"alice"}`)
	s.beat("bob")
	require.Equal(t, "online bob", st.change(), "nothing was said of alice")
}

func TestLiveFriendsNoticeWhatIsDoneElsewhere(t *testing.T) {
	s := newSite(t)
	s.server.LookEvery(40 * time.Millisecond)
	_, token := s.login(`{"user":"me"}`)
	s.beat("alice", "bob")
	s.befriend("me", "alice")
	st := s.open(s.listen(), token, "/v1/me/friends/events")
	require.Equal(t, []string{"alice"}, st.friends())
	ctx := t.Context()
	require.NoError(t, s.roll.AddFriends(ctx, "me", false, rollcall.Friend{User: "bob"})) // as another server would
	require.Equal(t, "online bob", st.change())
	require.NoError(t, s.roll.RemoveFriend(ctx, "me", "alice", false))
	require.Equal(t, "offline alice", st.change())
	require.NoError(t, s.roll.ReplaceFriends(ctx, "me", nil))
	require.Equal(t, "offline bob", st.change())
}

func TestAStreamOfFriendsEndsWithItsSession(t *testing.T) {
	for name, end := range map[string]func(s *site, id string){
		"kicked": func(s *site, id string) {
			s.ok(200, "writer", "POST", "/v1/kicks", `{"session":"`+id+`","reason":"enough"}`)
		},
		"banned": func(s *site, _ string) {
			s.ok(200, "admin", "PUT", "/v1/bans/me", `{"duration":"1h","reason":"enough"}`)
		},
		"logout": func(s *site, id string) { s.ok(200, "writer", "DELETE", "/v1/sessions/"+id, "") },
		"erased": func(s *site, _ string) { s.ok(204, "admin", "DELETE", "/v1/users/me", "") },
		"expired": func(s *site, _ string) {
			s.clock.Advance(time.Hour)
			require.NoError(s.t, s.roll.Tick(s.t.Context()))
			require.NoError(s.t, s.roll.Tick(s.t.Context()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			id, token := s.login(`{"user":"me"}`)
			_, other := s.login(`{"user":"other"}`)
			s.befriend("me", "friend")
			base := s.listen()
			st, stays := s.open(base, token, "/v1/me/friends/events"), s.open(base, other, "/v1/me/friends/events")
			require.Empty(t, st.friends())
			require.Empty(t, stays.friends())
			if name == "expired" {
				stays.close()
			}
			end(s, id)
			frames := st.ends()
			require.NotEmpty(t, frames)
			last := frames[len(frames)-1]
			require.Equal(t, "session.ended", last.Event)
			var said struct{ Cause, Reason string }
			require.NoError(t, json.Unmarshal([]byte(last.Data), &said))
			require.Equal(t, name, said.Cause)
			if name == "kicked" || name == "banned" {
				require.Equal(t, "enough", said.Reason)
			}
			if name != "expired" {
				s.befriend("other", "friend")
				s.beat("friend")
				require.Equal(t, "online friend", stays.change(), "other streams go on")
			}
		})
	}
}

func TestASnapshotOfManyFriendsComesInParts(t *testing.T) {
	s := newSite(t)
	_, token := s.login(`{"user":"me"}`)
	var users, list []string
	for i := range 1100 {
		users = append(users, fmt.Sprintf("u%04d", i))
		list = append(list, fmt.Sprintf(`{"user":"u%04d"}`, i))
	}
	s.beat(users...)
	s.ok(204, "writer", "PUT", "/v1/users/me/friends", `{"friends":[`+strings.Join(list, ",")+`]}`)
	st := s.open(s.listen(), token, "/v1/me/friends/events")
	require.Equal(t, users, st.friends())
}

func TestLiveFriendsAreForLiveSessions(t *testing.T) {
	s := newSite(t)
	id, token := s.login(`{"user":"me"}`)
	s.ok(200, "writer", "DELETE", "/v1/sessions/"+id, "")
	s.refused(401, rollcall.CodeSessionEnded, token, "GET", "/v1/me/friends/events", "")
	s.refused(401, rollcall.CodeUnauthenticated, "reader", "GET", "/v1/me/friends/events", "")
}
