package redis

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// TestNoScriptTakesLongOfLargeBatches sends the largest batches there may be, all of
// one partition.
func TestNoScriptTakesLongOfLargeBatches(t *testing.T) {
	c := newCrowd(t, rollcall.Options{})
	ctx := t.Context()
	users := make([]string, 10_000)
	for i := range users {
		users[i] = fmt.Sprintf("%s%05d", strings.Repeat("u", 120), i)
	}
	c.m.requireQuick(t, "beats", func() { require.NoError(t, c.roll.Beat(ctx, users...)) })
	hidden := true
	_, err := c.roll.PutUser(ctx, users[0], rollcall.UserPatch{Invisible: &hidden})
	require.NoError(t, err)
	c.m.requireQuick(t, "beats where one is invisible", func() { require.NoError(t, c.roll.Beat(ctx, users...)) })
	c.m.requireQuick(t, "the status of users", func() {
		found, err := c.roll.Status(ctx, users[:1000]...)
		require.NoError(t, err)
		require.Len(t, found, 1000)
	})
	var marks []rollcall.Mark
	for _, u := range users {
		marks = append(marks, rollcall.Mark{User: u, Day: c.roll.Today()})
	}
	c.m.requireQuick(t, "marks", func() {
		_, _, err := c.roll.Mark(ctx, marks...)
		require.NoError(t, err)
	})
	c.m.requireQuick(t, "marks taken back", func() {
		_, err := c.roll.Unmark(ctx, false, marks...)
		require.NoError(t, err)
	})
	c.m.requireQuick(t, "visitors", func() { require.NoError(t, c.roll.Visit(ctx, "page", users...)) })
	c.clock.Advance(time.Hour)
	c.m.requireQuick(t, "beats after an hour", func() { require.NoError(t, c.roll.Beat(ctx, users...)) })
	c.clock.Advance(time.Hour)
	c.m.requireQuick(t, "silence", func() { require.NoError(t, c.roll.Tick(ctx)) })
	c.m.requireQuick(t, "forgetting", func() {
		_, err := c.roll.ClearPresence(ctx, time.Minute)
		require.NoError(t, err)
	})
}

// TestNoScriptTakesLongOfManyTimeouts has sessions of as many idle timeouts as there
// are orders of, and touches and ends many of each.
func TestNoScriptTakesLongOfManyTimeouts(t *testing.T) {
	const timeouts, each = 70, 40
	var list []rollcall.Policy
	for i := range timeouts {
		list = append(list, rollcall.Policy{Device: fmt.Sprint("d", i), IdleTimeout: time.Minute + time.Duration(i)*time.Millisecond, Lifetime: time.Hour})
	}
	policies, err := rollcall.NewPolicies(list...)
	require.NoError(t, err)
	c := newCrowd(t, rollcall.Options{Policies: policies})
	ctx := t.Context()
	require.NoError(t, c.roll.Tick(ctx))
	var refs []rollcall.SessionRef
	for i := range timeouts * each {
		in, err := c.roll.Login(ctx, rollcall.Login{User: fmt.Sprint("user", i), Device: fmt.Sprint("d", i%timeouts)})
		require.NoError(t, err)
		refs = append(refs, rollcall.SessionRef{Token: in.Token})
	}
	c.m.requireQuick(t, "a login among many timeouts", func() {
		_, err := c.roll.Login(ctx, rollcall.Login{User: "user1"})
		require.NoError(t, err)
	})
	c.m.requireQuick(t, "touches", func() {
		found, err := c.roll.TouchAll(ctx, refs[:1000])
		require.NoError(t, err)
		require.Len(t, found, 1000)
	})
	c.load(t, `
redis.call('HSET', root .. ':part', 'clockahead', '1')
for _, idle in ipairs(redis.call('SMEMBERS', root .. ':idles')) do
  for _, sid in ipairs(redis.call('ZRANGE', root .. ':idle:' .. idle, 0, -1)) do
    redis.call('ZADD', root .. ':idle:' .. idle, ARGV[1], sid)
  end
end`, fmt.Sprint(c.at.Add(48*time.Hour).UnixMilli()))
	c.m.requireQuick(t, "signs of life far ahead", func() {
		for left, tick := "1", 0; left != "0"; tick++ {
			require.Less(t, tick, 1000, "all are brought back")
			require.NoError(t, c.roll.Tick(ctx))
			var err error
			left, err = c.s.Do("HEXISTS", c.e.of(0, "part"), "clockahead")
			require.NoError(t, err)
		}
		page, err := c.roll.Sessions(ctx, rollcall.SessionQuery{Sort: rollcall.NewestSeen, Page: rollcall.PageRequest{Limit: 1}})
		require.NoError(t, err)
		require.Equal(t, c.at.UnixMilli(), page.Items[0].SeenAt.UnixMilli())
	})
	for range 20 { // without an outage
		c.clock.Advance(4 * time.Second)
		_, err := c.e.inAllParts(ctx, c.clock.Now().UnixMilli(), &c.e.scripts.upkeepStamp, "1")
		require.NoError(t, err)
	}
	c.m.requireQuick(t, "many due of each timeout", func() {
		page, err := c.roll.Sessions(ctx, rollcall.SessionQuery{})
		require.NoError(t, err)
		require.LessOrEqual(t, page.Total, 4, "the logins without a timeout of their own")
	})
}
