package takeover_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/redistest"
	"github.com/rollcall/rollcall/internal/testbudget"
	"github.com/rollcall/rollcall/local"
	"github.com/rollcall/rollcall/redis"
	"github.com/rollcall/rollcall/takeover"
)

// onBothEngines runs a test with a Roll of each engine, on the system's clock.
func onBothEngines(t *testing.T, test func(*testing.T, *rollcall.Roll)) {
	t.Helper()
	open := func(t *testing.T, engine rollcall.Engine) *rollcall.Roll {
		t.Helper()
		roll, err := rollcall.New(engine, rollcall.Options{Secret: []byte("the secret of the tests of takeover")})
		require.NoError(t, err)
		t.Cleanup(func() {
			require.NoError(t, roll.Close())
			require.NoError(t, engine.Close())
		})
		return roll
	}
	t.Run("local", func(t *testing.T) {
		engine, err := local.Open("", local.Options{InMemory: true})
		require.NoError(t, err)
		test(t, open(t, engine))
	})
	t.Run("redis", func(t *testing.T) {
		server := redistest.Start(t, redistest.Options{})
		engine, err := redis.Open(t.Context(), redis.Options{URL: server.URL(), Partitions: 4})
		require.NoError(t, err)
		test(t, open(t, engine))
	})
}

func importer(t *testing.T, o *old, to takeover.Target, opts takeover.Options) *takeover.Importer {
	t.Helper()
	if opts.Now == nil {
		opts.Now = time.Now
	}
	m, err := takeover.NewImporter(o.source(), to, opts)
	require.NoError(t, err)
	return m
}

// clean expects both sides to agree.
func clean(t *testing.T, m *takeover.Importer) takeover.Comparison {
	t.Helper()
	c, err := m.Compare(t.Context())
	require.NoError(t, err)
	require.Zero(t, c.Differences, "%+v", c.First)
	return c
}

func everyUser(t *testing.T, roll *rollcall.Roll, window time.Duration) []string {
	t.Helper()
	var out []string
	for p := (rollcall.PageRequest{Limit: rollcall.MaxLimit}); ; {
		page, err := roll.Online(t.Context(), window, p)
		require.NoError(t, err)
		for _, s := range page.Items {
			out = append(out, s.User)
		}
		if p.Cursor = page.Next; p.Cursor == "" {
			return out
		}
	}
}

func TestLastSeenTimesAreTakenOverWhileTheyChange(t *testing.T) {
	for _, unit := range []time.Duration{time.Second, time.Millisecond} {
		layout, key := takeover.LastSeenZset, "last.seen"
		if unit == time.Millisecond {
			layout, key = takeover.HeartbeatZset, "users"
		}
		t.Run(string(layout), func(t *testing.T) {
			onBothEngines(t, func(t *testing.T, roll *rollcall.Roll) {
				o := newOld(t, redistest.Options{})
				score := func(ago time.Duration) int64 { return time.Now().Add(-ago).UnixNano() / int64(unit) }
				var lines []string
				for i := range 1500 {
					lines = append(lines, fmt.Sprintf("ZADD %s %d u%d", key, score(time.Duration(i)*time.Second), i))
				}
				lines = append(lines, fmt.Sprintf("ZADD %s %d ancient", key, score(200*24*time.Hour)), fmt.Sprintf("ZADD %s -5 never", key),
					"SADD user:u1:friends u2 u3 u1400", fmt.Sprintf("ZADD user:u2:friends %d u3 %d u1", score(time.Hour), score(2*time.Hour)))
				o.do(lines...)
				m := importer(t, o, roll, takeover.Options{Layout: layout, Names: takeover.Names{Friends: "user:{user}:friends"}})
				s, err := m.Run(t.Context())
				require.NoError(t, err)
				require.EqualValues(t, 1500, s.Entered)
				require.EqualValues(t, 1, s.Dead)
				require.EqualValues(t, 1, s.Refused)
				require.EqualValues(t, 2, s.Friends)
				require.Zero(t, clean(t, m).Moved, "each has its own time")

				// The old system goes on; what changed is found by its score.
				o.do(fmt.Sprintf("ZADD %s %d u1400", key, score(0)), fmt.Sprintf("ZADD %s %d new", key, score(0)))
				require.NoError(t, m.Look(t.Context(), false))
				clean(t, m)

				// Afterwards both give the same answers, by the article's own commands.
				from := score(10 * time.Minute)
				want := o.ask(fmt.Sprintf("ZRANGEBYSCORE %s %d +inf", key, from))
				got := everyUser(t, roll, 10*time.Minute)
				require.InDelta(t, len(want), len(got), 3, "the window moves on between the two questions")
				o.do("ZUNIONSTORE tmp 1 "+key, fmt.Sprintf("ZREMRANGEBYSCORE tmp 0 (%d", from), "ZINTERSTORE tmp 2 tmp user:u1:friends")
				page, err := roll.OnlineFriends(t.Context(), rollcall.FriendQuery{User: "u1", Window: 10 * time.Minute, Page: rollcall.PageRequest{Limit: 10}})
				require.NoError(t, err)
				var friends []string
				for _, f := range page.Items {
					friends = append(friends, f.User)
				}
				require.ElementsMatch(t, o.ask("ZRANGE tmp 0 -1"), friends)
				require.ElementsMatch(t, []string{"u2", "u3", "u1400"}, friends)
			})
		})
	}
}

func TestAnOnlineListBecomesSessions(t *testing.T) {
	onBothEngines(t, func(t *testing.T, roll *rollcall.Roll) {
		o := newOld(t, redistest.Options{})
		at := func(ago time.Duration) int64 { return time.Now().Add(-ago).UnixMilli() }
		var lines []string
		for i := range 600 {
			for _, d := range []string{"a", "b"} {
				lines = append(lines, fmt.Sprintf("ZADD online:user %d u%d:%s", at(time.Duration(i)*time.Second), i, d),
					fmt.Sprintf("SADD online:user:u%d %s", i, d),
					fmt.Sprintf(`SET login:u%d:%s {"user":{"name":"N%d"},"ip":"10.0.%d.%d","device":%q,"subsystem":"shop"}`, i, d, i, i/250, i%250, d))
			}
		}
		lines = append(lines, "DEL login:u5:a", fmt.Sprintf("ZADD online:user %d u7:a", at(25*time.Hour)))
		o.do(lines...)
		m := importer(t, o, roll, takeover.Options{Layout: takeover.OnlineZset, Names: takeover.Names{Records: "login:{user}"}})
		s, err := m.Run(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 600, s.Entered, "users")
		require.EqualValues(t, 2, s.Dead, "one expired, one without a record")
		c := clean(t, m)
		require.EqualValues(t, 1198, c.Compared)
		require.Zero(t, c.Moved, "each has its own login time")

		page, err := roll.Sessions(t.Context(), rollcall.SessionQuery{Filter: rollcall.SessionFilter{Users: []string{"u3"}, Device: "b"}, Page: rollcall.PageRequest{Limit: 5}})
		require.NoError(t, err)
		require.Len(t, page.Items, 1)
		require.Equal(t, []string{"N3", "shop", "10.0.0.3"}, []string{page.Items[0].Name, page.Items[0].App, page.Items[0].IP.String()})

		// Newest first, without the dead: the pages of both sides.
		var want []string
		for _, name := range o.ask("ZREVRANGE online:user 0 99") {
			if name != "u5:a" && name != "u7:a" {
				want = append(want, name)
			}
		}
		page, err = roll.Sessions(t.Context(), rollcall.SessionQuery{Page: rollcall.PageRequest{Limit: len(want)}})
		require.NoError(t, err)
		require.EqualValues(t, 1198, page.Total)
		require.Len(t, page.Items, len(want), "full pages")

		// It goes on: one logs in, one again, one out.
		o.do(fmt.Sprintf("ZADD online:user %d new:a", at(0)), "SADD online:user:new a", "SET login:new:a {}",
			fmt.Sprintf("ZADD online:user %d u9:a", at(0)), "ZREM online:user u8:a", "SREM online:user:u8 a", "DEL login:u8:a")
		require.NoError(t, m.Look(t.Context(), true))
		clean(t, m)
		counts, err := roll.Sessions(t.Context(), rollcall.SessionQuery{Page: rollcall.PageRequest{Limit: 1}})
		require.NoError(t, err)
		require.Equal(t, 1198, counts.Total, "one more, one less")

		// To repeat it changes nothing.
		again, err := importer(t, o, roll, takeover.Options{Layout: takeover.OnlineZset, Names: takeover.Names{Records: "login:{user}"}}).Run(t.Context())
		require.NoError(t, err)
		require.Zero(t, again.Entered+again.Moved+again.Ended)
	})
}

// TestTheSetsOfAnOnlineListMayHoldWholeEntries: all sessions of a user are entered together, and
// the set says which there are, by user:session or by the session alone.
func TestTheSetsOfAnOnlineListMayHoldWholeEntries(t *testing.T) {
	onBothEngines(t, func(t *testing.T, roll *rollcall.Roll) {
		o := newOld(t, redistest.Options{})
		m := importer(t, o, roll, takeover.Options{Layout: takeover.OnlineZset})
		_, err := m.Run(t.Context())
		require.NoError(t, err)

		// A look finds one entry of each user by its score, and the other by the set.
		at, early := time.Now().UnixMilli(), time.Now().Add(-time.Hour).UnixMilli()
		o.do(fmt.Sprintf("ZADD online:user %d alice:a %d alice:b %d bob:a %d bob:b", at, early, at, early),
			"SADD online:user:alice alice:a alice:b", "SADD online:user:bob a b")
		require.NoError(t, m.Look(t.Context(), false))
		require.EqualValues(t, 4, clean(t, m).Compared)
	})
}

func TestLoginDaysAreTakenOverByKind(t *testing.T) {
	onBothEngines(t, func(t *testing.T, roll *rollcall.Roll) {
		o := newOld(t, redistest.Options{})
		users, months := 100, 3
		if testbudget.Long() {
			users, months = 100_000, 12
		}
		today := time.Now().UTC()
		var lines []string
		for i := range users {
			for back := 1; back <= months; back++ {
				month := time.Date(today.Year(), today.Month()-time.Month(back), 1, 0, 0, 0, 0, time.UTC).Format("2006-01")
				for _, kind := range []string{"client", "office"} {
					lines = append(lines, fmt.Sprintf("SETBIT loginLog_%s_%s_%d %d 1", month, kind, i, (i+back)%28))
				}
			}
			if len(lines) > 1000 {
				o.do(lines...)
				lines = nil
			}
		}
		o.do(append(lines, "SETBIT loginLog_2024-02_client_7 31 1", "SETBIT loginLog_"+today.Format("2006-01")+"_client_0 0 1")...)
		m := importer(t, o, roll, takeover.Options{Layout: takeover.LoginBitmaps, Kinds: map[string]string{"client": "client:", "office": "office:"}})
		began := time.Now()
		s, err := m.Run(t.Context())
		require.NoError(t, err)
		t.Logf("%d bitmaps in %v", s.Read, time.Since(began))
		require.EqualValues(t, users*months*2+1, s.Entered)
		require.EqualValues(t, 1, s.Refused, "February has no 32nd")
		require.EqualValues(t, users*months*2+1, clean(t, m).Compared)

		// The same number is two people.
		kinds, err := roll.Kinds(t.Context())
		require.NoError(t, err)
		require.GreaterOrEqual(t, len(kinds), 2)
		month := time.Date(today.Year(), today.Month()-1, 1, 0, 0, 0, 0, time.UTC)
		a, err := roll.Attended(t.Context(), "office:3", "office", rollcall.MonthOf(rollcall.DateOf(month.Year(), month.Month(), 1)).Range())
		require.NoError(t, err)
		require.Len(t, a.Days, 1)
		require.Equal(t, []string{"1"}, o.ask(fmt.Sprintf("GETBIT loginLog_%s_office_3 %d", month.Format("2006-01"), a.Days[0].Date().Day()-1)))

		// It goes on today.
		if !testbudget.Long() {
			o.do("SETBIT loginLog_" + today.Format("2006-01") + "_office_1 0 1")
			require.NoError(t, m.Look(t.Context(), false))
			clean(t, m)
		}
	})
}

func TestMinuteSetsBecomeLastSeenTimes(t *testing.T) {
	onBothEngines(t, func(t *testing.T, roll *rollcall.Roll) {
		o := newOld(t, redistest.Options{})
		at := time.Now().UTC()
		var lines []string
		for i := range 5 {
			key := fmt.Sprintf("active.users:%02d", at.Add(-time.Duration(i)*time.Minute).Minute())
			lines = append(lines, fmt.Sprintf("SADD %s u%d all", key, i), fmt.Sprintf("EXPIRE %s 600", key))
		}
		stale := at.Add(-20 * time.Minute)
		o.do(append(lines, fmt.Sprintf("SADD active.users:%02d stale", stale.Minute()))...)
		m := importer(t, o, roll, takeover.Options{Layout: takeover.MinuteSets})
		s, err := m.Run(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 1, s.Dead, "the set without an expiry may be hours old")
		require.EqualValues(t, 6, s.Entered)
		clean(t, m)
		require.ElementsMatch(t, []string{"u0", "u1", "u2", "u3", "u4", "all"}, everyUser(t, roll, 10*time.Minute))
		next := fmt.Sprintf("active.users:%02d", time.Now().UTC().Minute())
		o.do("SADD "+next+" later", "EXPIRE "+next+" 600")
		require.NoError(t, m.Look(t.Context(), false))
		clean(t, m)
	})
}

// TestAUserSeenAtTheEndOfAMinuteIsNotLeftBehind: a set says the minute, whose beginning may be
// over a minute ago when a look finds who was added at its end.
func TestAUserSeenAtTheEndOfAMinuteIsNotLeftBehind(t *testing.T) {
	onBothEngines(t, func(t *testing.T, roll *rollcall.Roll) {
		o := newOld(t, redistest.Options{})
		clock := time.Now().UTC().Truncate(time.Minute).Add(-time.Minute)
		set := func(at time.Time) {
			key := fmt.Sprintf("active.users:%02d", at.Minute())
			o.do("SADD "+key+" alice", "EXPIRE "+key+" 600")
		}
		set(clock.Add(-3 * time.Minute))
		m := importer(t, o, roll, takeover.Options{Layout: takeover.MinuteSets, Now: func() time.Time { return clock }})
		_, err := m.Run(t.Context())
		require.NoError(t, err)
		set(clock.Add(-time.Minute))
		clock = clock.Add(15 * time.Second)
		require.NoError(t, m.Look(t.Context(), false))
		clean(t, m)
	})
}

func TestACompareNamesWhatDiffers(t *testing.T) {
	onBothEngines(t, func(t *testing.T, roll *rollcall.Roll) {
		o := newOld(t, redistest.Options{})
		at := time.Now().Add(-time.Hour)
		o.do(fmt.Sprintf("ZADD last.seen %d same %d older %d gone", at.Unix(), at.Unix(), at.Unix()))
		m := importer(t, o, roll, takeover.Options{Layout: takeover.LastSeenZset})
		_, err := m.Run(t.Context())
		require.NoError(t, err)
		o.do(fmt.Sprintf("ZADD last.seen %d older %d unknown", at.Unix()+600, at.Unix()), "ZREM last.seen gone")
		c, err := m.Compare(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 3, c.Differences)
		var all []string
		for _, d := range c.First {
			all = append(all, d.Entry+": "+d.Reason)
		}
		slices.Sort(all)
		require.Equal(t, []string{"gone: known here alone", "older: seen later in the old system", "unknown: not seen here"}, all)
	})
}

// stopping is a target that dies after some calls.
type stopping struct {
	*rollcall.Roll
	left int
	stop context.CancelFunc
}

func (s *stopping) Import(ctx context.Context, d ...rollcall.UserSnapshot) error {
	if s.left--; s.left <= 0 {
		s.stop()
		return context.Canceled
	}
	return s.Roll.Import(ctx, d...)
}

func TestAnImportThatWasCutShortGoesOn(t *testing.T) {
	const users = 100_000 // more than are entered together
	onBothEngines(t, func(t *testing.T, roll *rollcall.Roll) {
		o := newOld(t, redistest.Options{})
		for from := 0; from < users; from += 5000 {
			var line strings.Builder
			line.WriteString("ZADD last.seen")
			for i := from; i < from+5000; i++ {
				fmt.Fprintf(&line, " %d u%d", time.Now().Unix()-int64(i%80_000), i)
			}
			o.do(line.String())
		}
		opts := takeover.Options{Layout: takeover.LastSeenZset, State: filepath.Join(t.TempDir(), "state")}
		ctx, cancel := context.WithCancel(t.Context())
		_, err := importer(t, o, &stopping{roll, 80, cancel}, opts).Run(ctx)
		require.ErrorIs(t, err, context.Canceled)
		_, err = os.Stat(opts.State)
		require.NoError(t, err, "it left its state")

		m := importer(t, o, roll, opts)
		s, err := m.Run(t.Context())
		require.NoError(t, err)
		require.Less(t, s.Read, int64(users/2), "it went on behind what was through")
		require.Greater(t, s.Read, int64(20_000))
		require.Positive(t, s.Already, "of the part at hand some had been entered")
		clean(t, m)
		_, err = os.Stat(opts.State)
		require.ErrorIs(t, err, os.ErrNotExist)
	})
}

// changing is a target beside which the old system goes on when it is first called.
type changing struct {
	*rollcall.Roll
	once   sync.Once
	change func(user string)
}

func (c *changing) Import(ctx context.Context, d ...rollcall.UserSnapshot) error {
	c.once.Do(func() { c.change(d[0].User) })
	return c.Roll.Import(ctx, d...)
}

// TestWhatChangesWhileAllIsReadIsNotLeftOut: a set that takes longer to read than looks overlap
// changes behind the reader, and ahead of it.
func TestWhatChangesWhileAllIsReadIsNotLeftOut(t *testing.T) {
	onBothEngines(t, func(t *testing.T, roll *rollcall.Roll) {
		o := newOld(t, redistest.Options{})
		clock := time.Now().Add(-5 * time.Minute)
		for from := 0; from < 100_000; from += 5000 {
			var line strings.Builder
			line.WriteString("ZADD last.seen")
			for i := from; i < from+5000; i++ {
				fmt.Fprintf(&line, " %d u%d", clock.Unix()-3600-int64(i%1000), i)
			}
			o.do(line.String())
		}
		to := &changing{Roll: roll, change: func(user string) {
			line := fmt.Sprintf("ZADD last.seen %d %s", clock.Unix()+1, user)
			clock = clock.Add(50 * time.Second)
			for i := range 500 { // of which the reader meets some
				line += fmt.Sprintf(" %d late-%d", clock.Unix()-1, i)
			}
			o.do(line)
		}}
		m := importer(t, o, to, takeover.Options{Layout: takeover.LastSeenZset, Now: func() time.Time { return clock }})
		_, err := m.Run(t.Context())
		require.NoError(t, err)
		clock = time.Now()
		require.NoError(t, m.Look(t.Context(), false))
		c, err := m.Compare(t.Context())
		require.NoError(t, err)
		for _, d := range c.First { // the beat was entered as of the real time
			require.Equal(t, "seen later here", d.Reason, "%+v", d)
		}
		require.LessOrEqual(t, c.Differences, int64(1))
	})
}

// TestTheRateCountsWhatIsReadAndNotTheQuestions reads many small sets: each counted for a whole
// portion once, and a thousand of them took 50 s.
func TestTheRateCountsWhatIsReadAndNotTheQuestions(t *testing.T) {
	o := newOld(t, redistest.Options{})
	var lines []string
	for i := range 1000 {
		lines = append(lines, fmt.Sprintf("ZADD online:user %d u%d:a", time.Now().Unix()-60, i), fmt.Sprintf("SADD online:user:u%d a", i),
			fmt.Sprintf("SADD user:u%d:friends f1 f2", i))
	}
	o.do(lines...)
	source, err := takeover.NewSource(o.client, takeover.SourceOptions{})
	require.NoError(t, err)
	engine, err := local.Open("", local.Options{InMemory: true})
	require.NoError(t, err)
	roll, err := rollcall.New(engine, rollcall.Options{Secret: []byte("the secret of the tests of takeover")})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, roll.Close())
		require.NoError(t, engine.Close())
	})
	m, err := takeover.NewImporter(source, roll, takeover.Options{
		Layout: takeover.OnlineZset, Names: takeover.Names{Friends: "user:{user}:friends"}, Now: time.Now,
	})
	require.NoError(t, err)
	began := time.Now()
	s, err := m.Run(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1000, s.Entered)
	require.EqualValues(t, 1000, s.Friends)
	require.Less(t, time.Since(began), 30*time.Second)
}

func TestAnImportDoesNotWaitForARedisThatDoesNotAnswer(t *testing.T) {
	onBothEngines(t, func(t *testing.T, roll *rollcall.Roll) {
		o := newOld(t, redistest.Options{Proxied: true})
		o.do(fmt.Sprintf("ZADD users %d u", time.Now().UnixMilli()))
		o.server.Proxy().BlackHole()
		defer o.server.Proxy().Heal()
		s, err := takeover.NewSource(o.client, takeover.SourceOptions{Timeout: 200 * time.Millisecond})
		require.NoError(t, err)
		m, err := takeover.NewImporter(s, roll, takeover.Options{Layout: takeover.HeartbeatZset, Now: time.Now})
		require.NoError(t, err)
		began := time.Now()
		_, err = m.Run(t.Context())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Less(t, time.Since(began), 20*time.Second)
	})
}

// Engines spread sessions over indexes by how the hash of their token begins.
func TestHashesOfTokensOfSessionsTakenOverBeginDifferently(t *testing.T) {
	onBothEngines(t, func(t *testing.T, roll *rollcall.Roll) {
		const sessions = 300
		o := newOld(t, redistest.Options{})
		for i := range sessions {
			o.do(fmt.Sprintf("ZADD online:user %d user%d", time.Now().Add(-time.Hour).UnixMilli(), i))
		}
		_, err := importer(t, o, roll, takeover.Options{Layout: takeover.OnlineZset}).Run(t.Context())
		require.NoError(t, err)
		tokens, beginnings := make(map[rollcall.TokenKey]bool), make(map[byte]bool)
		require.NoError(t, roll.Export(t.Context(), func(d rollcall.UserSnapshot) error {
			for _, s := range d.Sessions {
				tokens[s.Token], beginnings[s.Token[0]] = true, true
			}
			return nil
		}))
		require.Len(t, tokens, sessions)
		require.Greater(t, len(beginnings), 100)
	})
}
