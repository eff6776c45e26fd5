package redis

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// TestSessionsOfAllKindsAreOneOrder lists sessions of so many kinds that a script reads few of
// each: by pages behind cursors, by number to where a page is counted to, and by an attribute.
func TestSessionsOfAllKindsAreOneOrder(t *testing.T) {
	t.Parallel()
	r := newRig(t, 2, rollcall.Options{})
	ctx := t.Context()
	const sessions, kinds = 1200, 40
	var all []rollcall.SessionID // in the order of logins
	hidden := make(map[rollcall.SessionID]bool)
	for i := range sessions {
		user, invisible := fmt.Sprint("user", i%300), true
		in, err := r.roll.Login(ctx, rollcall.Login{User: user, Kind: fmt.Sprint("kind", i*i%kinds), Attrs: map[string]string{"k": "v"}})
		require.NoError(t, err)
		all = append(all, in.Session.ID)
		if i%300 == 7 {
			_, err := r.roll.PutUser(ctx, user, rollcall.UserPatch{Invisible: &invisible})
			require.NoError(t, err)
			hidden[in.Session.ID] = true
		}
		r.clock.Advance(time.Duration(i%3) * time.Millisecond)
	}
	slices.SortFunc(all, func(a, b rollcall.SessionID) int { return bytes.Compare(a[:], b[:]) })
	for _, sort := range []rollcall.SessionSort{rollcall.OldestLogin, rollcall.NewestLogin} {
		for _, viewer := range []rollcall.Viewer{rollcall.ViewerAdmin, rollcall.ViewerPublic} {
			expected := slices.DeleteFunc(slices.Clone(all), func(id rollcall.SessionID) bool {
				return viewer == rollcall.ViewerPublic && hidden[id]
			})
			if sort == rollcall.NewestLogin {
				slices.Reverse(expected)
			}
			page := func(q rollcall.SessionQuery) rollcall.Page[rollcall.Session] {
				page, err := r.roll.As(viewer).Sessions(ctx, q)
				require.NoError(t, err)
				require.Equal(t, len(expected), page.Total)
				return page
			}
			for _, filter := range []rollcall.SessionFilter{{}, {Attrs: map[string]string{"k": "v"}}} {
				q := rollcall.SessionQuery{Sort: sort, Filter: filter, Page: rollcall.PageRequest{Limit: 170}}
				var listed []rollcall.SessionID
				for more := true; more; more = q.Page.Cursor != "" {
					found := page(q)
					listed = append(listed, idsIn(found)...)
					q.Page.Cursor = found.Next
				}
				require.Equal(t, expected, listed)
			}
			deep := page(rollcall.SessionQuery{Sort: sort, Page: rollcall.PageRequest{Limit: 20, Number: 57}})
			require.Greater(t, 56*20, walkLimit)
			require.Equal(t, expected[56*20:57*20], idsIn(deep))
		}
	}
}

func idsIn(page rollcall.Page[rollcall.Session]) []rollcall.SessionID {
	ids := make([]rollcall.SessionID, len(page.Items))
	for i, s := range page.Items {
		ids[i] = s.ID
	}
	return ids
}

// TestNoScriptTakesLongOfManyKinds reads large pages of sessions of all kinds that a store has.
func TestNoScriptTakesLongOfManyKinds(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, rollcall.Options{})
	const sessions = 64_000
	c.load(t, `
for i = 1, tonumber(ARGV[1]) do
  local login, kind = tonumber(ARGV[2]) + i, 'kind' .. i % 64
  redis.call('ZADD', root .. ':by:kind:' .. kind, login, struct.pack('>I6I8', login, i) .. 'ab')
  redis.call('SADD', root .. ':kinds', kind)
end`, fmt.Sprint(sessions), fmt.Sprint(c.at.UnixMilli()))
	for _, sort := range []rollcall.SessionSort{rollcall.NewestLogin, rollcall.OldestLogin} {
		for _, viewer := range []rollcall.Viewer{rollcall.ViewerAdmin, rollcall.ViewerPublic} {
			c.m.requireQuick(t, "a page of all kinds", func() {
				l := &listing{e: c.e, at: c.at, q: &rollcall.SessionQuery{Sort: sort, Viewer: viewer}, index: allSessions, high: endOfTime}
				m := l.newMerge("", "", 2000)
				require.NoError(t, m.fill(t.Context(), true))
				require.Equal(t, sessions, m.total)
				for range 2000 {
					_, ok, err := m.next(t.Context())
					require.NoError(t, err)
					require.True(t, ok)
				}
			})
		}
	}
}
