package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

func o5OnlineFriends(t *testing.T, on backend) {
	s := newSite(t, on, rollcall.Options{})
	// Friends were made in the order of their numbers, a day apart, and are
	// seen in the opposite order, a minute apart.
	const friends = 10
	made := func(i int) time.Time { return noon.AddDate(0, 0, i-100) }
	for i := range friends {
		require.NoError(t, s.AddFriends(s.ctx, "42", false, rollcall.Friend{User: fmt.Sprint("f", i), Since: made(i)}))
	}
	for i := friends - 1; i >= 0; i-- {
		require.NoError(t, s.Beat(s.ctx, fmt.Sprint("f", i), fmt.Sprint("stranger", i)))
		s.clock.Advance(time.Minute)
	}
	s.clock.Advance(-time.Minute) // f0 is seen just now, f9 nine minutes ago
	online := func(q rollcall.FriendQuery) (users []string, page rollcall.Page[rollcall.FriendStatus]) {
		t.Helper()
		q.User = "42"
		page, err := s.OnlineFriends(s.ctx, q)
		require.NoError(t, err)
		for _, f := range page.Items {
			users = append(users, f.User)
		}
		return users, page
	}
	ten := rollcall.PageRequest{Limit: 10}

	t.Run("which of my friends are online, within any window", func(t *testing.T) {
		users, page := online(rollcall.FriendQuery{Window: 2 * time.Minute, Page: ten})
		require.Equal(t, []string{"f0", "f1", "f2"}, users, "to the minute, not to ten")
		require.Equal(t, 3, page.Total)
		users, _ = online(rollcall.FriendQuery{Window: 9*time.Minute - time.Second, Page: ten})
		require.Len(t, users, 9)
	})
	t.Run("by last seen or by friendship, with the time of each", func(t *testing.T) {
		users, page := online(rollcall.FriendQuery{Window: 2 * time.Minute, Sort: rollcall.FriendsByLastSeen, Page: ten})
		require.Equal(t, []string{"f0", "f1", "f2"}, users)
		require.Equal(t, rollcall.FriendStatus{
			User: "f1", Since: made(1), Online: true, LastSeen: noon.Add(8 * time.Minute),
		}, page.Items[1])
		require.NoError(t, s.AddFriends(s.ctx, "42", false, rollcall.Friend{User: "f0", Since: noon}))
		users, page = online(rollcall.FriendQuery{Window: 2 * time.Minute, Sort: rollcall.FriendsBySince, Page: ten})
		require.Equal(t, []string{"f1", "f2", "f0"}, users)
		require.Equal(t, noon, page.Items[2].Since)
	})
	t.Run("the count alone, and pages", func(t *testing.T) {
		users, page := online(rollcall.FriendQuery{Window: time.Hour})
		require.Empty(t, users)
		require.Equal(t, friends, page.Total)
		var walked []string
		q := rollcall.FriendQuery{Window: time.Hour, Page: rollcall.PageRequest{Limit: 3}}
		for {
			users, page := online(q)
			walked = append(walked, users...)
			if page.Next == "" {
				break
			}
			q.Page.Cursor = page.Next
		}
		require.Equal(t, []string{"f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8", "f9"}, walked)
	})
	t.Run("a login, a touch and a logout are seen at once", func(t *testing.T) {
		b := s.in(rollcall.Login{User: "f9"})
		users, _ := online(rollcall.FriendQuery{Window: time.Second, Page: ten})
		require.Equal(t, []string{"f9", "f0"}, users)
		_, err := s.Kick(s.ctx, rollcall.Kick{Session: b.Session.ID, Cause: rollcall.CauseLogout})
		require.NoError(t, err)
		users, _ = online(rollcall.FriendQuery{Window: time.Second, Page: ten})
		require.Equal(t, []string{"f0"}, users)
	})
	t.Run("a friend removed is gone from the answer, on one side or on both", func(t *testing.T) {
		require.NoError(t, s.AddFriends(s.ctx, "42", true, rollcall.Friend{User: "f2"}))
		require.NoError(t, s.Beat(s.ctx, "42"))
		require.NoError(t, s.RemoveFriend(s.ctx, "42", "f2", false))
		users, _ := online(rollcall.FriendQuery{Window: 3 * time.Minute, Page: ten})
		require.NotContains(t, users, "f2")
		back, err := s.OnlineFriends(s.ctx, rollcall.FriendQuery{User: "f2", Page: ten})
		require.NoError(t, err)
		require.Len(t, back.Items, 1)
		require.Equal(t, "42", back.Items[0].User)
	})
	t.Run("the page of everyone online", func(t *testing.T) {
		page, err := s.Online(s.ctx, 10*time.Minute, rollcall.PageRequest{Limit: 2})
		require.NoError(t, err)
		require.Equal(t, 1+2*friends-1, page.Total, "all but f9, who signed out")
		require.Equal(t, "42", page.Items[0].User)
	})
}
