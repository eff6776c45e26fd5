package local

import (
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

func TestAPageNumberPastAllNumbersIsAnEmptyPage(t *testing.T) {
	r := newRig(t, 0)
	r.login("alice")
	r.NoError(r.roll.AddFriends(r.ctx, "alice", false, rollcall.Friend{User: "bob"}))
	_, err := r.roll.Ban(r.ctx, "mallory", time.Hour, "", "")
	r.NoError(err)
	for _, n := range []int{math.MaxInt, math.MaxInt/rollcall.MaxLimit + 2, math.MaxInt / 2, 1 << 62} {
		p := rollcall.PageRequest{Limit: rollcall.MaxLimit, Number: n}
		friends, err := r.roll.Friends(r.ctx, "alice", p)
		r.NoError(err)
		r.Empty(friends.Items)
		sessions, err := r.roll.Sessions(r.ctx, rollcall.SessionQuery{Page: p})
		r.NoError(err)
		r.Empty(sessions.Items)
		bans, err := r.roll.Bans(r.ctx, p)
		r.NoError(err)
		r.Empty(bans.Items)
		active, err := r.roll.Active(r.ctx, rollcall.ActiveQuery{Range: rollcall.DayRange{From: r.roll.Today(), To: r.roll.Today()}, Page: p})
		r.NoError(err)
		r.Empty(active.Items)
	}
}

func TestHostileCallsAreRefusedInWords(t *testing.T) {
	r := newRig(t, 0)
	in := r.login(strings.Repeat("ü", 64))
	token, bad := in.Token, rollcall.SessionID{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}
	foreign := in.Session.ID
	foreign[15]++ // the home of another user
	for name, call := range map[string]func() error{
		"no user":         func() error { _, err := r.roll.Login(r.ctx, rollcall.Login{}); return err },
		"a user too long": func() error { return r.roll.Beat(r.ctx, strings.Repeat("x", rollcall.MaxUserLen+1)) },
		"a broken user":   func() error { return r.roll.Beat(r.ctx, "\xff") },
		"a zero kick":     func() error { _, err := r.roll.Kick(r.ctx, rollcall.Kick{}); return err },
		"an empty filter": func() error {
			_, err := r.roll.Kick(r.ctx, rollcall.Kick{Filter: &rollcall.SessionFilter{}})
			return err
		},
		"a kick of a stranger": func() error { _, err := r.roll.Kick(r.ctx, rollcall.Kick{Session: foreign}); return err },
		"a rotated stranger":   func() error { _, _, err := r.roll.Rotate(r.ctx, bad); return err },
		"a changed stranger": func() error {
			_, err := r.roll.UpdateSession(r.ctx, foreign, rollcall.SessionPatch{})
			return err
		},
		"a zero ref": func() error { _, err := r.roll.Verify(r.ctx, rollcall.SessionRef{}); return err },
		"a token of another home": func() error {
			_, err := r.roll.Touch(r.ctx, rollcall.SessionRef{Token: token[:4] + flipped(token[4:5]) + token[5:]})
			return err
		},
		"a window past retention": func() error {
			_, err := r.roll.OnlineCount(r.ctx, 1<<62)
			return err
		},
		"a negative window": func() error { _, err := r.roll.OnlineCount(r.ctx, -time.Second); return err },
		"a negative age":    func() error { _, err := r.roll.ClearPresence(r.ctx, -1); return err },
		"a page before all": func() error {
			_, err := r.roll.Online(r.ctx, 0, rollcall.PageRequest{Number: math.MinInt})
			return err
		},
		"a huge limit": func() error { _, err := r.roll.Bans(r.ctx, rollcall.PageRequest{Limit: math.MaxInt}); return err },
		"a cursor of nothing": func() error {
			_, err := r.roll.Sessions(r.ctx, rollcall.SessionQuery{Page: rollcall.PageRequest{Cursor: "AAAA"}})
			return err
		},
		"a range of all days": func() error {
			_, err := r.roll.Attended(r.ctx, "alice", "", rollcall.DayRange{From: math.MinInt32, To: math.MaxInt32})
			return err
		},
		"a mark at the end of days": func() error {
			_, _, err := r.roll.ImportMarks(r.ctx, rollcall.Mark{User: "alice", Day: math.MaxInt32})
			return err
		},
	} {
		err := call()
		require.Error(t, err, name)
		require.NotEqual(t, rollcall.CodeInternal, rollcall.CodeOf(err), "%s: %v", name, err)
	}
	r.Empty(must(r.roll.TouchAll(r.ctx, nil)))
	r.Empty(must(r.roll.Status(r.ctx)))
	r.NoError(r.roll.Beat(r.ctx))
	none := must(r.roll.Sessions(r.ctx, rollcall.SessionQuery{Filter: rollcall.SessionFilter{Users: []string{}}}))
	r.Zero(none.Total, "nobody is not anybody")
	r.Zero(must(r.roll.Sessions(r.ctx, rollcall.SessionQuery{Filter: rollcall.SessionFilter{
		IP: netip.MustParsePrefix("::/0"), Name: "x", SeenWithin: math.MaxInt64, Attrs: map[string]string{"k": ""},
	}})).Total)
}

// must returns the answer of a call that may not fail.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func flipped(c string) string {
	if c == "A" {
		return "B"
	}
	return "A"
}
