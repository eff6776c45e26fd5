package redis

import (
	"encoding/binary"
	"fmt"
	"maps"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/enginetest"
	"github.com/rollcall/rollcall/internal/redistest"
	"github.com/rollcall/rollcall/internal/testbudget"
)

// crowd is much data in one partition.
type crowd struct {
	s     *redistest.Server
	e     *Engine
	roll  *rollcall.Roll
	clock *rollcall.ManualClock
	at    time.Time
	m     *meter
}

// newCrowd opens an engine of one partition whose commands are measured.
func newCrowd(t *testing.T, o rollcall.Options) *crowd {
	t.Helper()
	c := &crowd{s: redistest.Start(t, redistest.Options{}), m: newMeter(t), at: time.Now().UTC().Truncate(time.Hour)}
	var err error
	c.e, err = Open(t.Context(), Options{URL: c.s.URL(), Partitions: 1, Timeout: 30 * time.Second, wrap: c.m.wrap})
	require.NoError(t, err)
	c.clock = rollcall.NewManualClock(c.at)
	o.Clock = c.clock
	c.roll, err = rollcall.New(c.e, o)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, c.roll.Close())
		require.NoError(t, c.e.Close())
	})
	return c
}

// load runs a script of the test's own in the partition.
func (c *crowd) load(t *testing.T, script string, args ...string) {
	t.Helper()
	_, err := c.s.Do(append([]string{"EVAL", "local root = KEYS[1]\n" + script, "1", c.e.keyPrefixes[0]}, args...)...)
	require.NoError(t, err)
}

// service gives a user n sessions.
func (c *crowd) service(t *testing.T, user string, n int) {
	t.Helper()
	_, err := c.roll.Login(t.Context(), rollcall.Login{User: user, App: "a", Device: "web"})
	require.NoError(t, err)
	_, err = c.s.Do("EVAL", copySessions, "1", c.e.keyPrefixes[0], strconv.Itoa(n), user)
	require.NoError(t, err)
}

// TestNoScriptTakesLongOfManySessions asks for sessions that meet two conditions.
func TestNoScriptTakesLongOfManySessions(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, rollcall.Options{})
	const sessions = 156_250
	for from := 0; from < sessions; from += 1000 {
		for _, order := range []string{"by:kind:user", "by:app:shop"} {
			args := []string{"ZADD", c.e.of(0, order)}
			for i := from; i < min(sessions, from+1000); i++ {
				login := c.at.UnixMilli() + int64(i)
				id := binary.BigEndian.AppendUint64(nil, uint64(login)<<16)
				args = append(args, strconv.FormatInt(login, 10), string(binary.BigEndian.AppendUint64(id, uint64(i))))
			}
			_, err := c.s.Do(args...)
			require.NoError(t, err)
		}
	}
	both := func(what string) {
		c.m.requireQuick(t, what, func() {
			page, err := c.e.List(t.Context(), c.at, rollcall.SessionQuery{Filter: rollcall.SessionFilter{Kind: "user", App: "shop"}, Sort: rollcall.NewestLogin})
			require.NoError(t, err)
			require.Equal(t, sessions, page.Total)
		})
	}
	class := func(device string) string { return "\x04user\x04shop" + string(rune(len(device))) + device }
	_, err := c.s.Do("HSET", c.e.of(0, "classes"), class(""), strconv.Itoa(sessions))
	require.NoError(t, err)
	both("two conditions")

	// With too many classes to add up, it looks at all sessions.
	args := []string{"HSET", c.e.of(0, "classes")}
	for i := range 250 {
		args = append(args, class(fmt.Sprint("device", i)), "1")
	}
	_, err = c.s.Do(args...)
	require.NoError(t, err)
	both("two conditions of many classes")
}

// TestNoScriptTakesLongOfManyHours asks for the visitors of many dense hours.
func TestNoScriptTakesLongOfManyHours(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, rollcall.Options{})
	days := 90
	if testbudget.Long() {
		days = 365
	}
	first := c.at.Add(-time.Duration(days) * 24 * time.Hour)
	args := []string{"PFADD", c.e.of(0, fmt.Sprintf("visits:%d:page", first.Unix()))}
	for i := range 5000 {
		args = append(args, fmt.Sprint("visitor", i))
	}
	_, err := c.s.Do(args...)
	require.NoError(t, err)
	groups := make([][]string, days)
	for i := range days * 24 {
		hour := strconv.FormatInt(first.Add(time.Duration(i)*time.Hour).Unix(), 10)
		groups[i/24] = append(groups[i/24], hour)
		if i > 0 {
			_, err := c.s.Do("COPY", args[1], c.e.of(0, "visits:"+hour+":page"))
			require.NoError(t, err)
		}
	}
	c.m.requireQuick(t, "visitors of dense days", func() {
		counts, err := c.e.countVisitors(t.Context(), "page", groups)
		require.NoError(t, err)
		require.InEpsilon(t, 5000, counts[0], 0.05)
	})
}

// TestNoScriptTakesLongOfAUserWithMuch has a user with very many sessions and
// friends log in, at a limit too, be exported, kicked and erased.
func TestNoScriptTakesLongOfAUserWithMuch(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, rollcall.Options{})
	ctx := t.Context()
	const sessions = 5000
	c.service(t, "svc", sessions)
	login := func() error {
		_, err := c.roll.Login(ctx, rollcall.Login{User: "svc", App: "a", Device: "web"})
		return err
	}
	c.m.requireQuick(t, "a login", func() { require.NoError(t, login()) })

	friends := make([][]rollcall.Friend, 2)
	for i := range rollcall.MaxFriends {
		friends[0] = append(friends[0], rollcall.Friend{User: fmt.Sprint("friend", i)})
		friends[1] = append(friends[1], rollcall.Friend{User: fmt.Sprint("other", i)})
	}
	c.m.requireQuick(t, "10,000 friends", func() {
		require.NoError(t, c.e.ReplaceFriends(ctx, c.at, "svc", friends[0]))
		require.NoError(t, c.e.ReplaceFriends(ctx, c.at, "svc", friends[1]))
		friends[0], friends[1] = friends[1], friends[0]
	})
	c.m.requireQuick(t, "an export", func() {
		for _, d := range export(t, c.e, c.at) {
			require.GreaterOrEqual(t, len(d.Sessions), sessions)
			require.Len(t, d.Friends, rollcall.MaxFriends)
		}
	})
	for _, hidden := range []bool{true, false} {
		c.m.requireQuick(t, "invisible or not", func() {
			_, err := c.roll.PutUser(ctx, "svc", rollcall.UserPatch{Invisible: &hidden})
			require.NoError(t, err)
		})
	}
	c.m.requireQuick(t, "a kick", func() {
		_, err := c.roll.Kick(ctx, rollcall.Kick{User: "svc", Device: "web"})
		require.NoError(t, err)
	})
	c.m.requireQuick(t, "an erasure", func() { require.NoError(t, c.roll.Erase(ctx, "svc")) })
}

// TestNoScriptTakesLongOfALoginAtALimit has a user with very many sessions log in
// where a limit is reached, and where it was lowered, name sessions that go, and log
// in when all others are due.
func TestNoScriptTakesLongOfALoginAtALimit(t *testing.T) {
	c := newCrowd(t, rollcall.Options{})
	const sessions = 5000
	c.service(t, "svc", sessions)
	login := func(t *testing.T, p rollcall.Policy, ended int) {
		policies, err := rollcall.NewPolicies(p)
		require.NoError(t, err)
		c.roll.SetPolicies(policies)
		in, err := c.roll.Login(t.Context(), rollcall.Login{User: "svc", App: "a", Device: "web"})
		if p.Overflow == rollcall.Reject {
			var refused *rollcall.Error
			require.ErrorAs(t, err, &refused)
			require.Len(t, refused.Conflicts, rollcall.MaxConflicts)
			return
		}
		require.NoError(t, err)
		require.Len(t, in.Ended, ended)
	}
	for _, how := range []rollcall.Overflow{rollcall.EvictOldest, rollcall.EvictIdle, rollcall.Reject} {
		for _, p := range []rollcall.Policy{
			{MaxSessions: sessions, Overflow: how},
			{MaxPerDevice: sessions, Overflow: how},
			{MaxSessions: sessions, MaxPerDevice: sessions, Overflow: how},
		} {
			c.m.requireQuick(t, fmt.Sprintf("a login at %+v", p), func() { login(t, p, 1) })
		}
	}
	left := sessions
	for _, how := range []rollcall.Overflow{rollcall.EvictOldest, rollcall.EvictIdle} {
		c.m.requireQuick(t, fmt.Sprintf("a lower limit, %s", how), func() {
			left -= 100
			login(t, rollcall.Policy{MaxSessions: left, Overflow: how}, 101)
		})
	}
	c.m.requireQuick(t, "sessions that are named", func() {
		page, err := c.roll.Sessions(t.Context(), rollcall.SessionQuery{Filter: rollcall.SessionFilter{Users: []string{"svc"}}, Page: rollcall.PageRequest{Limit: rollcall.MaxEvict}})
		require.NoError(t, err)
		l := rollcall.Login{User: "svc", App: "a", Device: "web"}
		for _, s := range page.Items {
			l.Evict = append(l.Evict, s.ID)
		}
		in, err := c.roll.Login(t.Context(), l)
		require.NoError(t, err)
		require.Len(t, in.Ended, rollcall.MaxEvict)
	})
	c.clock.Advance(rollcall.DefaultIdleTimeout)
	c.m.requireQuick(t, "all are due", func() { login(t, rollcall.Policy{MaxSessions: 100}, 0) })
}

// TestNoScriptTakesLongOfManyInvisibleUsers asks what the public is shown.
func TestNoScriptTakesLongOfManyInvisibleUsers(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, rollcall.Options{})
	ctx, public := t.Context(), c.roll.As(rollcall.ViewerPublic)
	const users = 20_000
	c.service(t, "svc", 2)
	c.load(t, `
local sid = redis.call('ZRANGE', root .. ':u:svc', 0, 0)[1]
local blob = redis.call('HGET', root .. ':sessions', sid)
local login = struct.unpack('>I6', sid)
for i = 1, tonumber(ARGV[1]) do
  local user = 'hidden' .. i
  local id = string.sub(sid, 1, 6) .. struct.pack('>I8', 1000 + i) .. string.sub(sid, 15)
  redis.call('HSET', root .. ':sessions', id, blob)
  for _, k in ipairs({'invisible:login', 'u:' .. user, 'idle:1800000', 'by:kind:user', 'invisible:by:kind:user'}) do
    redis.call('ZADD', root .. ':' .. k, login, id)
  end
  redis.call('ZADD', root .. ':seen', ARGV[2], user)
  redis.call('ZADD', root .. ':hidden', ARGV[2], user)
end`, strconv.Itoa(users), strconv.FormatInt(c.at.Unix(), 10))
	c.m.requireQuick(t, "who is online", func() {
		n, err := public.OnlineCount(ctx, time.Hour)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		known, err := public.KnownCount(ctx)
		require.NoError(t, err)
		require.Equal(t, 1, known)
		page, err := public.Online(ctx, time.Hour, rollcall.PageRequest{Limit: 50})
		require.NoError(t, err)
		require.Len(t, page.Items, 1)
		_, err = public.Stats(ctx)
		require.NoError(t, err)
	})
	for _, sort := range []rollcall.SessionSort{rollcall.NewestLogin, rollcall.OldestLogin, rollcall.NewestSeen} {
		c.m.requireQuick(t, "a first page", func() {
			page, err := public.Sessions(ctx, rollcall.SessionQuery{Sort: sort, Page: rollcall.PageRequest{Limit: 50}})
			require.NoError(t, err)
			require.Equal(t, 2, page.Total)
			require.Len(t, page.Items, 2)
		})
	}
}

// TestNoScriptTakesLongOfManyDays has users who were there for ten years.
func TestNoScriptTakesLongOfManyDays(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, rollcall.Options{})
	ctx, today := t.Context(), c.roll.Today()
	const days = 3650
	var first []rollcall.Mark
	for i := range 300 {
		first = append(first, rollcall.Mark{User: fmt.Sprint("user", i), Kind: "user", Day: today - days})
	}
	_, _, err := c.roll.ImportMarks(ctx, first...)
	require.NoError(t, err)
	c.load(t, `
for day = tonumber(ARGV[1]) + 1, tonumber(ARGV[2]) do
  local name = root .. ':day:user:' .. day
  redis.call('COPY', root .. ':day:user:' .. ARGV[1], name)
  redis.call('HSET', root .. ':days', 'user:' .. day, 300)
  redis.call('ZADD', root .. ':days:user', day, day)
end`, fmt.Sprint(int32(today-days)), fmt.Sprint(int32(today)))
	all := rollcall.DayRange{From: today - days, To: today}
	c.m.requireQuick(t, "the days of a user", func() {
		found, err := c.e.Days(ctx, "user7", "", all)
		require.NoError(t, err)
		require.Len(t, found, days+1)
	})
	c.m.requireQuick(t, "figures", func() {
		_, err := c.e.Series(ctx, rollcall.SeriesQuery{Range: rollcall.DayRange{From: today - days + 40, To: today}, MAU: rollcall.MAU28})
		require.NoError(t, err)
	})
	next := 0
	c.m.requireQuick(t, "first days taken back", func() {
		next++
		var some []rollcall.Mark
		for i := range 60 {
			some = append(some, rollcall.Mark{User: fmt.Sprint("user", next*60+i), Kind: "user", Day: today - days})
		}
		n, err := c.roll.Unmark(ctx, true, some...)
		require.NoError(t, err)
		require.Equal(t, 60, n)
	})
	c.m.requireQuick(t, "an export", func() {
		snapshots := export(t, c.e, c.at)
		require.Len(t, snapshots, 300)
		require.Len(t, snapshots[0].Days["user"], days+1)
	})
	c.m.requireQuick(t, "an archive's copies", func() {
		require.NoError(t, c.e.MarkDirty(ctx, "user", today-100))
		_, _, err := c.e.Offload(ctx, "user", today-100)
		require.NoError(t, err)
	})
	c.m.requireQuick(t, "erasures", func() {
		for i := range 3 {
			require.NoError(t, c.roll.Erase(ctx, fmt.Sprint("user", i)))
		}
	})
	page, err := c.e.Active(ctx, rollcall.ActiveQuery{Range: rollcall.DayRange{From: today - 50, To: today}, Page: rollcall.PageRequest{Limit: 1000}})
	require.NoError(t, err)
	require.Equal(t, 297, page.Total)
	require.Len(t, page.Items, 297)
}

// TestNoScriptTakesLongOfManyBans lists and exports very many.
func TestNoScriptTakesLongOfManyBans(t *testing.T) {
	t.Parallel()
	c := newCrowd(t, rollcall.Options{})
	const bans = 20_000
	_, err := c.roll.Ban(t.Context(), "bad", time.Hour, "", "")
	require.NoError(t, err)
	c.load(t, `
local blob = redis.call('HVALS', root .. ':bans')[1]
for i = 1, tonumber(ARGV[1]) - 1 do
  local name = 'bad' .. i
  local of = string.sub(blob, 1, 16) .. struct.pack('>Bc0I2B', #name, name, 0, 0)
  redis.call('HSET', root .. ':bans', struct.pack('>I8I8', 1, i), of)
  redis.call('ZADD', root .. ':banends', struct.unpack('>I8', blob), struct.pack('>I8I8', 1, i))
end`, strconv.Itoa(bans))
	c.m.requireQuick(t, "bans", func() {
		page, err := c.e.Bans(t.Context(), c.at, rollcall.PageRequest{Limit: 10})
		require.NoError(t, err)
		require.Equal(t, bans, page.Total)
		require.Len(t, export(t, c.e, c.at), bans)
	})
	c.m.requireQuick(t, "a tick", func() { require.NoError(t, c.roll.Tick(t.Context())) })
}

// measured is a place for data on a server whose commands are measured.
type measured struct {
	t    testing.TB
	opts Options
}

func (m measured) Open() (rollcall.Engine, error) { return Open(m.t.Context(), m.opts) }

// TestNoScriptOfTheSuiteTakesLong runs some cases of the suite, in a long run all of
// them, and looks at each command that they sent. If one was slow they run again, as for
// requireQuick: none may be slow each time.
func TestNoScriptOfTheSuiteTakesLong(t *testing.T) {
	t.Parallel()
	s, m, n := redistest.Start(t, redistest.Options{}), newMeter(t), 0
	nth := 24
	if testbudget.Long() {
		nth = 1
	}
	always := map[string]time.Duration{}
	m.slow() // from the first command on
	for run := range 4 {
		enginetest.RunShort(t, func(t testing.TB) enginetest.Store {
			n++
			return measured{t, Options{URL: s.URL(), Prefix: fmt.Sprint("rc:", n), Partitions: 8, Timeout: time.Minute, wrap: m.wrap}}
		}, 0, nth)
		name, spent := m.costliest()
		slow := m.slow()
		t.Logf("of %d commands, %s took most, %v; slow: %v", m.ran, name, spent, slow)
		if run == 0 {
			always = slow
		}
		maps.DeleteFunc(always, func(name string, _ time.Duration) bool { return slow[name] == 0 })
		if len(always) == 0 {
			return
		}
	}
	require.Failf(t, "slow commands", "processor time of Redis: %v", always)
}
