package redis_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/redistest"
	"github.com/rollcall/rollcall/redis"
)

// fixed are the keys that data always has: those of no partition, and the state
// of each.
func fixed(keys []string) (rest []string) {
	for _, k := range keys {
		name := strings.TrimPrefix(k, "rc:")
		if name != "meta" && name != "kinds" && name != "keys" && name != "hooks" && name != "samples" && name != "passes" && name != "audit" && !strings.HasSuffix(name, "}:part") {
			rest = append(rest, k)
		}
	}
	slices.Sort(rest)
	return rest
}

// TestNoKeyIsLeftBehind lives a life of everything and takes it all back.
func TestNoKeyIsLeftBehind(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{User: minimal(t)})
	engine, err := redis.Open(t.Context(), redis.Options{URL: s.URL(), Partitions: 8, Timeout: time.Minute})
	require.NoError(t, err)
	clock := rollcall.NewManualClock(time.Now().UTC().Truncate(time.Millisecond))
	policies, err := rollcall.NewPolicies(rollcall.Policy{Device: "tv", IdleTimeout: time.Minute, Lifetime: time.Hour})
	require.NoError(t, err)
	roll, err := rollcall.New(engine, rollcall.Options{Clock: clock, EventsAge: time.Minute, Policies: policies})
	require.NoError(t, err)
	defer func() {
		require.NoError(t, roll.Close())
		require.NoError(t, engine.Close())
	}()
	ctx := t.Context()
	require.NoError(t, roll.Tick(ctx))
	var users []string
	for i := range 60 {
		users = append(users, fmt.Sprintf("user%d", i))
	}
	for i, u := range users {
		for j := range 3 {
			in, err := roll.Login(ctx, rollcall.Login{
				User: u, Device: []string{"tv", "web", "ios"}[j], App: "shop", RetryKey: fmt.Sprint(u, j),
				Attrs: map[string]string{"k": "v"},
			})
			require.NoError(t, err)
			if j == 1 {
				_, err = roll.Kick(ctx, rollcall.Kick{Session: in.Session.ID})
				require.NoError(t, err)
			}
		}
		require.NoError(t, roll.AddFriends(ctx, u, true, rollcall.Friend{User: users[(i+7)%60]}, rollcall.Friend{User: "star"}))
		_, _, err := roll.ImportMarks(ctx, rollcall.Mark{User: u, Kind: "guest", Day: rollcall.Day(i)}, rollcall.Mark{User: u, Day: roll.Today()})
		require.NoError(t, err)
		invisible := i%2 == 0
		_, err = roll.PutUser(ctx, u, rollcall.UserPatch{Invisible: &invisible})
		require.NoError(t, err)
	}
	for range 70 { // more than a script looks at
		_, err := roll.Login(ctx, rollcall.Login{User: "user1", Device: "tv"})
		require.NoError(t, err)
	}
	require.NoError(t, roll.Beat(ctx, append(users, "only a beat")...))
	_, err = roll.Ban(ctx, "user3", time.Minute, "", "")
	require.NoError(t, err)
	for cursor, more := "", true; more; more = cursor != "" { // the guests' days leave for an archive
		var maps []rollcall.MonthMap
		maps, cursor, err = engine.ListDirty(ctx, cursor, 100)
		require.NoError(t, err)
		n, err := engine.ClearDirty(ctx, maps)
		require.NoError(t, err)
		require.Zero(t, n)
	}
	for i := range users {
		_, left, err := engine.Offload(ctx, "guest", rollcall.Day(len(users)-1-i))
		require.NoError(t, err)
		require.True(t, left)
	}
	require.Contains(t, strings.Join(fixed(s.Keys()), " "), ":offloaded")

	for _, u := range append(users, "star") {
		require.NoError(t, roll.Erase(ctx, u))
	}
	clock.Advance(2 * time.Minute)
	_, err = roll.ClearPresence(ctx, 0)
	require.NoError(t, err)
	clock.Advance(2 * time.Minute) // past what is kept of events
	for range 5 {
		clock.Advance(time.Second)
		require.NoError(t, roll.Tick(ctx))
	}
	var stay []string
	for _, k := range fixed(s.Keys()) {
		ttl, err := s.Do("PTTL", k)
		require.NoError(t, err)
		if ttl == "-1" { // what expires by itself is no leftover
			stay = append(stay, k)
		}
	}
	require.Empty(t, stay)
}

// TestHostileIDsStayOneKey uses ids that look like keys, patterns and commands.
func TestHostileIDsStayOneKey(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{User: minimal(t)})
	roll := open(t, redis.Options{URL: s.URL()})
	ctx := t.Context()
	hostile := []string{
		"*", "?", "[a-z]", "{", "}", "{0}", "{1}:part", "rc:{0}:part", "rc:{0}:seen", "a:b", ":", "seen", "part",
		"user:alice", "u:alice", "$1", "' or 1=1", "EVAL return 1", "\u2028", "🙂", strings.Repeat("ü", 64), "GT", "-1", "(5", "+inf", "nan",
	}
	for i, u := range hostile {
		in, err := roll.Login(ctx, rollcall.Login{
			User: u, App: u[:min(len(u), 6)], Device: "{0}:part", DeviceID: u, UserAgent: u, Name: u,
			Attrs: map[string]string{"{0}": u},
		})
		if err != nil { // cut inside a letter
			in, err = roll.Login(ctx, rollcall.Login{User: u, Name: u})
		}
		require.NoError(t, err, u)
		require.NoError(t, roll.Beat(ctx, u))
		require.NoError(t, roll.AddFriends(ctx, u, false, rollcall.Friend{User: hostile[(i+1)%len(hostile)]}))
		_, _, err = roll.Mark(ctx, rollcall.Mark{User: u, Day: roll.Today()})
		require.NoError(t, err)
		got, err := roll.Verify(ctx, rollcall.SessionRef{Token: in.Token})
		require.NoError(t, err)
		require.Equal(t, u, got.User)
	}
	n, err := roll.OnlineCount(ctx, time.Hour)
	require.NoError(t, err)
	require.Equal(t, len(hostile), n, "each is one user")
	active, err := roll.Active(ctx, rollcall.ActiveQuery{
		Range: rollcall.DayRange{From: roll.Today(), To: roll.Today()}, Page: rollcall.PageRequest{Limit: 1000},
	})
	require.NoError(t, err)
	require.ElementsMatch(t, hostile, active.Items)
	for _, k := range s.Keys() {
		require.Regexp(t, `^rc:(meta|kinds|keys|samples|\{\d+\}:)`, k, "no key lies elsewhere")
		if user, ok := strings.CutPrefix(k[strings.Index(k, ":")+1:], "f:"); ok {
			require.Contains(t, hostile, user)
		}
	}
	for _, u := range hostile {
		page, err := roll.OnlineFriends(ctx, rollcall.FriendQuery{User: u, Page: rollcall.PageRequest{Limit: 10}})
		require.NoError(t, err)
		require.Len(t, page.Items, 1, u)
	}
	for _, u := range hostile {
		require.NoError(t, roll.Erase(ctx, u))
	}
	known, err := roll.KnownCount(ctx)
	require.NoError(t, err)
	require.Zero(t, known)
}
