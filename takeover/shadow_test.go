package takeover_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/redistest"
	"github.com/rollcall/rollcall/takeover"
)

// shadow asks both sides for a moment, or on a slow machine until each question was asked.
func shadow(t *testing.T, m *takeover.Importer) map[string]takeover.Shadowed {
	t.Helper()
	return shadowUntil(t, m, func(takeover.Shadowed) bool { return true })
}

// shadowUntil asks both sides for longer and longer, at most for a minute, until all questions
// were asked with an answer that will do.
func shadowUntil(t *testing.T, m *takeover.Importer, will func(takeover.Shadowed) bool) map[string]takeover.Shadowed {
	t.Helper()
	var list []takeover.Shadowed
	for d := 50 * time.Millisecond; d < time.Minute; d *= 2 {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		var err error
		list, err = m.Shadow(ctx, time.Millisecond)
		cancel()
		require.NoError(t, err)
		if !slices.ContainsFunc(list, func(s takeover.Shadowed) bool { return s.Asked == 0 || !will(s) }) {
			break
		}
	}
	out := make(map[string]takeover.Shadowed)
	for _, s := range list {
		require.Positive(t, s.Asked, s.Question)
		require.LessOrEqual(t, s.Old.Median, s.Old.P99)
		require.Positive(t, s.Here.P99)
		out[s.Question] = s
	}
	return out
}

// agree expects that nothing differs.
func agree(t *testing.T, m *takeover.Importer) {
	t.Helper()
	for question, s := range shadow(t, m) {
		require.Zero(t, s.Differences+s.InDoubt, "%s: %+v", question, s.First)
	}
}

// shadowed is an old system, and what is changed in it alone.
type shadowed struct {
	name     string
	opts     takeover.Options
	fill     []string
	broken   []string
	question string // that finds it
	entry    string // that differs
	old      string // what the old system says of it
	here     string
}

func msAgo(ago time.Duration) string { return fmt.Sprint(time.Now().Add(-ago).UnixMilli()) }

// minuteSet is the set of a minute so long ago.
func minuteSet(ago time.Duration) string {
	return fmt.Sprintf("active.users:%02d", time.Now().Add(-ago).UTC().Minute())
}

func shadows() []shadowed {
	month := time.Now().UTC().AddDate(0, -1, 1-time.Now().UTC().Day()).Format("2006-01")
	recent, earlier := minuteSet(2*time.Minute), minuteSet(5*time.Minute)
	seen := takeover.Options{Layout: takeover.HeartbeatZset, Names: takeover.Names{Friends: "user:{user}:friends"}}
	minutes := takeover.Options{Layout: takeover.MinuteSets, Names: takeover.Names{Friends: "user:{user}:friends"}}
	friends := []string{
		"ZADD users " + msAgo(time.Minute) + " bob " + msAgo(time.Hour) + " carol " + msAgo(time.Hour) + " alice",
		"SADD user:alice:friends bob carol",
	}
	sets := []string{
		"SADD " + recent + " alice bob", "EXPIRE " + recent + " 600",
		"SADD " + earlier + " alice carol", "EXPIRE " + earlier + " 600",
		"SADD user:alice:friends bob dave",
	}
	list := []string{"ZADD online:user " + msAgo(time.Hour) + " alice " + msAgo(2*time.Hour) + " bob " + msAgo(3*time.Hour) + " carol"}
	return []shadowed{
		{
			name: "a user seen later", opts: seen, fill: friends, broken: []string{"ZADD users " + msAgo(10*time.Minute) + " carol"},
			question: "last seen of a user", entry: "carol",
		},
		{
			name: "four users seen just now", opts: seen, fill: friends,
			broken:   []string{"ZADD users " + msAgo(time.Second) + " u1 " + msAgo(time.Second) + " u2 " + msAgo(time.Second) + " u3 " + msAgo(time.Second) + " u4"},
			question: "online within 5 minutes", entry: "users", old: "5", here: "1",
		},
		{
			name: "a friend who came", opts: seen, fill: friends, broken: []string{"ZADD users " + msAgo(2*time.Minute) + " carol"},
			question: "friends online of a user", entry: "user:alice:friends", old: "carol", here: "carol is not online",
		},
		{
			name: "a friend who left", opts: seen, fill: friends, broken: []string{"ZREM users bob"},
			question: "friends online of a user", entry: "user:alice:friends", old: "bob unknown", here: "bob",
		},
		{
			name: "no friend any more", opts: seen, fill: friends, broken: []string{"SREM user:alice:friends bob"},
			question: "friends online of a user", entry: "user:alice:friends", old: "bob is no friend", here: "bob",
		},
		{
			name: "a later login", opts: takeover.Options{Layout: takeover.OnlineZset}, fill: list, broken: []string{"ZADD online:user " + msAgo(0) + " alice"},
			question: "sessions of a user", entry: "alice", old: "alice",
		},
		{
			name: "an entry that was removed", opts: takeover.Options{Layout: takeover.OnlineZset}, fill: list, broken: []string{"ZREM online:user bob"},
			question: "a page of the list", entry: "alice", old: "not on the page", here: "bob",
		},
		{
			name: "an entry that is new", opts: takeover.Options{Layout: takeover.OnlineZset}, fill: list, broken: []string{"ZADD online:user " + msAgo(2*time.Minute) + " dave"},
			question: "a page of the list", entry: "dave", old: "dave", here: "no session",
		},
		{
			name: "another day", opts: takeover.Options{Layout: takeover.LoginBitmaps},
			fill:     []string{"SETBIT loginLog_" + month + "_client_7 3 1"},
			broken:   []string{"SETBIT loginLog_" + month + "_client_7 4 1"},
			question: "days of a user in a month", entry: "loginLog_" + month + "_client_7",
		},
		{
			name: "a user in a later minute", opts: minutes, fill: sets, broken: []string{"SADD " + recent + " carol"},
			question: "minutes of a user", entry: "carol",
		},
		{
			name: "four users in a minute", opts: minutes, fill: sets, broken: []string{"SADD " + recent + " u1 u2 u3 u4"},
			question: "online within 10 minutes", entry: "active.users:{minute}", old: "7", here: "3",
		},
		{
			name: "a friend in a minute", opts: minutes, fill: sets, broken: []string{"SADD " + recent + " dave"},
			question: "friends online of a user", entry: "user:alice:friends", old: "dave", here: "dave is not online",
		},
	}
}

func TestAShadowFindsWhatDiffers(t *testing.T) {
	for _, one := range shadows() {
		t.Run(one.name, func(t *testing.T) {
			t.Parallel()
			onBothEngines(t, func(t *testing.T, roll *rollcall.Roll) {
				o := newOld(t, redistest.Options{})
				o.do(one.fill...)
				one.opts.Settle = time.Millisecond
				m := importer(t, o, roll, one.opts)
				_, err := m.Run(t.Context())
				require.NoError(t, err)
				agree(t, m)

				o.do(one.broken...)
				found := shadowUntil(t, m, func(s takeover.Shadowed) bool { return s.Question != one.question || s.Differences > 0 })[one.question]
				require.Positive(t, found.Differences)
				for _, d := range found.First {
					if d.Entry == one.entry {
						require.True(t, strings.HasPrefix(d.Old, one.old), d.Old)
						require.True(t, strings.HasPrefix(d.Here, one.here), d.Here)
						return
					}
				}
				require.Fail(t, "another entry was found", "%+v", found.First)
			})
		})
	}
}

func TestAShadowPassesOverWhatRightlyDiffers(t *testing.T) {
	var dead, entries []string
	for i := range 60 {
		entries = append(entries, fmt.Sprintf("ZADD online:user %s u%d:a", msAgo(time.Hour+time.Duration(i)*time.Second), i),
			fmt.Sprintf("SADD online:user:u%d a", i), fmt.Sprintf("SET login:u%d:a {}", i))
		if i%3 == 0 { // without a record
			dead = append(dead, fmt.Sprintf("ZADD online:user %s dead%d:a", msAgo(time.Hour+time.Duration(i)*time.Second), i))
		}
	}
	now, odd := minuteSet(time.Minute), strings.Repeat("x", 300)
	for name, one := range map[string]struct {
		opts takeover.Options
		fill []string
	}{
		"a list with dead entries, times ahead and another unit": {
			takeover.Options{Layout: takeover.OnlineZset, Names: takeover.Names{Records: "login:{user}"}},
			append(append(entries, dead...),
				"ZADD online:user "+msAgo(-time.Hour)+" ahead:a "+msAgo(25*time.Hour)+" expired:a 5 odd:a "+fmt.Sprint(time.Now().Add(-time.Hour).Unix())+" seconds:a",
				"SET login:ahead:a {}", "SET login:expired:a {}", "SET login:odd:a {}", "SET login:seconds:a {}"),
		},
		"users seen long ago, in the future and of no id": {
			takeover.Options{Layout: takeover.LastSeenZset, Names: takeover.Names{Friends: "user:{user}:friends"}},
			[]string{
				"ZADD last.seen " + msAgo(100*24*time.Hour) + " old " + msAgo(-time.Hour) + " ahead " + msAgo(time.Minute) + " " + odd + " " + msAgo(time.Minute) + " alice",
				// It goes offline while both are asked.
				"ZADD last.seen " + msAgo(5*time.Minute-200*time.Millisecond) + " leaving",
				"SADD user:alice:friends old ahead leaving nobody alice " + odd, "SADD user:" + odd + ":friends alice", "SET user:bob:friends text",
			},
		},
		"minutes without an expiry, and of another type": {
			takeover.Options{Layout: takeover.MinuteSets, Names: takeover.Names{Friends: "user:{user}:friends"}},
			[]string{
				"SADD " + now + " alice " + odd, "EXPIRE " + now + " 600", "SADD " + minuteSet(4*time.Minute) + " u1 u2 u3 u4 u5 bob",
				"SET " + minuteSet(6*time.Minute) + " text", "SADD user:alice:friends bob alice",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBothEngines(t, func(t *testing.T, roll *rollcall.Roll) {
				o := newOld(t, redistest.Options{})
				o.do(one.fill...)
				one.opts.Settle = time.Millisecond
				m := importer(t, o, roll, one.opts)
				_, err := m.Run(t.Context())
				require.NoError(t, err)
				for i := 0; i < 5 && one.opts.Layout == takeover.OnlineZset; i++ { // after the switch
					_, err := roll.Login(t.Context(), rollcall.Login{User: fmt.Sprint("here", i)})
					require.NoError(t, err)
				}
				agree(t, m)
			})
		})
	}
}

func TestADifferenceCountsOnceItHasLasted(t *testing.T) {
	onBothEngines(t, func(t *testing.T, roll *rollcall.Roll) {
		o := newOld(t, redistest.Options{})
		o.do("ZADD users " + msAgo(time.Hour) + " alice")
		m := importer(t, o, roll, takeover.Options{Layout: takeover.HeartbeatZset})
		_, err := m.Run(t.Context())
		require.NoError(t, err)
		o.do("ZADD users " + msAgo(10*time.Minute) + " alice")
		found := shadow(t, m)["last seen of a user"]
		require.Zero(t, found.Differences, "a follower may enter it yet")
		require.Equal(t, 1, found.InDoubt)
	})
}

// passing is a Roll beside which time passes: while a question about friends is asked first, and
// behind that.
type passing struct {
	*rollcall.Roll
	asked                   int
	passed, within, between time.Duration
}

func (p *passing) now() time.Time { return time.Now().Add(p.passed) }

func (p *passing) OnlineFriends(ctx context.Context, q rollcall.FriendQuery) (rollcall.Page[rollcall.FriendStatus], error) {
	if p.asked++; p.asked == 1 {
		p.passed += p.within
	}
	return p.Roll.OnlineFriends(ctx, q)
}

// Status is asked before each question about friends.
func (p *passing) Status(ctx context.Context, users ...string) ([]rollcall.Status, error) {
	if p.asked == 1 && p.between > 0 {
		p.passed += p.between
		p.between = 0
	}
	return p.Roll.Status(ctx, users...)
}

// A follower reads lists of friends once a minute, and takes a while.
func TestADifferenceLastsLongerThanAFollowerMayBeBehind(t *testing.T) {
	for name, one := range map[string]struct {
		to                   passing
		differences, inDoubt int
	}{
		"a slow answer":             {passing{within: 10 * time.Minute}, 0, 1},
		"hardly more than a minute": {passing{between: 66 * time.Second}, 0, 1},
		"two minutes":               {passing{between: 2 * time.Minute}, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOld(t, redistest.Options{})
			o.do("ZADD users "+msAgo(time.Minute)+" bob", "SADD user:alice:friends bob")
			one.to.Roll = newLate(t).Roll
			m := importer(t, o, &one.to, takeover.Options{
				Layout: takeover.HeartbeatZset, Names: takeover.Names{Friends: "user:{user}:friends"}, Now: one.to.now,
			})
			_, err := m.Run(t.Context())
			require.NoError(t, err)
			one.to.asked = 0
			o.do("SREM user:alice:friends bob", "SADD user:alice:friends carol")
			found := shadow(t, m)["friends online of a user"]
			require.Equal(t, one.differences, found.Differences, "%+v", found.First)
			require.Equal(t, one.inDoubt, found.InDoubt)
		})
	}
}
