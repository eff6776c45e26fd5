package takeover_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/redistest"
	"github.com/rollcall/rollcall/local"
	"github.com/rollcall/rollcall/takeover"
)

// late is a Roll that gives no answer to some questions about days.
type late struct {
	*rollcall.Roll
	refuse atomic.Int64
}

func (l *late) DaysOf(ctx context.Context, user, kind string, d rollcall.DayRange) ([]rollcall.Day, error) {
	if l.refuse.Add(-1) >= 0 {
		return nil, rollcall.ErrUnavailable
	}
	return l.Roll.DaysOf(ctx, user, kind, d)
}

func newLate(t *testing.T) *late {
	t.Helper()
	engine, err := local.Open("", local.Options{InMemory: true})
	require.NoError(t, err)
	roll, err := rollcall.New(engine, rollcall.Options{Secret: []byte("the secret of the tests of takeover")})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, roll.Close())
		require.NoError(t, engine.Close())
	})
	return &late{Roll: roll}
}

func TestALateAnswerDoesNotEndAComparison(t *testing.T) {
	o := newOld(t, redistest.Options{})
	o.do("SETBIT loginLog_2026-01_client_7 3 1")
	to := newLate(t)
	m := importer(t, o, to, takeover.Options{Layout: takeover.LoginBitmaps})
	_, err := m.Run(t.Context())
	require.NoError(t, err)
	to.refuse.Store(2)
	require.EqualValues(t, 1, clean(t, m).Compared)

	to.refuse.Store(3)
	_, err = m.Compare(t.Context())
	require.Equal(t, rollcall.CodeUnavailable, rollcall.CodeOf(err))
}

func TestALookReadsHoweverManyHaveOneScore(t *testing.T) {
	const users = 70_000
	o := newOld(t, redistest.Options{})
	to := newLate(t)
	m := importer(t, o, to, takeover.Options{Layout: takeover.LastSeenZset})
	_, err := m.Run(t.Context())
	require.NoError(t, err)
	at := time.Now().Unix()
	o.do(fmt.Sprintf("ZADD last.seen %d before", at-1), fmt.Sprintf("ZADD last.seen %d behind", at+1))
	for from := 0; from < users; from += 10_000 {
		var line strings.Builder
		line.WriteString("ZADD last.seen")
		for i := range 10_000 {
			fmt.Fprintf(&line, " %d u%d", at, from+i)
		}
		o.do(line.String())
	}
	require.NoError(t, m.Look(t.Context(), true))
	known, err := to.KnownUsers(t.Context(), rollcall.PageRequest{Limit: 1})
	require.NoError(t, err)
	require.Equal(t, users+2, known.Total)
}

// leaving is a Roll in front of which those who were seen long ago are seen again in the old system
// whenever it is asked about others.
type leaving struct {
	*rollcall.Roll
	leave func()
}

func (l *leaving) Status(ctx context.Context, users ...string) ([]rollcall.Status, error) {
	if l.leave != nil {
		l.leave()
	}
	return l.Roll.Status(ctx, users...)
}

func TestALookMissesNobodyWhileOthersAreSeenAgain(t *testing.T) {
	const before, step = 20_000, 1200 // more than a portion
	o := newOld(t, redistest.Options{})
	to := &leaving{Roll: newLate(t).Roll}
	add := func(name string, from, n int, at time.Time) {
		var line strings.Builder
		line.WriteString("ZADD last.seen")
		for i := range n {
			fmt.Fprintf(&line, " %d %s%d", at.Unix(), name, from+i)
		}
		o.do(line.String())
	}
	began := time.Now()
	add("early", 0, before, began.Add(-time.Hour))
	m := importer(t, o, to, takeover.Options{Layout: takeover.LastSeenZset})
	_, err := m.Run(t.Context())
	require.NoError(t, err)

	const users = 10_000
	add("u", 0, users, began.Add(-time.Second))
	again := 0
	to.leave = func() {
		if again+step <= before {
			add("early", again, step, began)
			again += step
		}
	}
	require.NoError(t, m.Look(t.Context(), true))
	known, err := to.KnownUsers(t.Context(), rollcall.PageRequest{Limit: 1})
	require.NoError(t, err)
	require.Equal(t, before+users, known.Total)
}

// scans is how often the old Redis was asked for names of keys.
func scans(t *testing.T, o *old) (n int) {
	t.Helper()
	stats := o.ask("INFO commandstats")[0]
	if _, rest, found := strings.Cut(stats, "cmdstat_scan:calls="); found {
		_, err := fmt.Sscanf(rest, "%d", &n)
		require.NoError(t, err)
	}
	return n
}

func TestAFollowerWalksOverBitmapsOnceInTwelveLooks(t *testing.T) {
	o := newOld(t, redistest.Options{})
	to := newLate(t)
	m := importer(t, o, to, takeover.Options{Layout: takeover.LoginBitmaps, Every: 100 * time.Millisecond})
	_, err := m.Run(t.Context())
	require.NoError(t, err)
	month := time.Now().UTC().Format("2006-01")
	o.do("SETBIT loginLog_" + month + "_client_7 0 1")

	before := scans(t, o)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	require.NoError(t, m.Follow(ctx, func(takeover.Summary) { stop() }))
	require.LessOrEqual(t, scans(t, o)-before, 2, "one look, at two months at most")
	require.EqualValues(t, 1, clean(t, m).Compared, "it has found the day")
}

// slowFriends is a target that takes its time for lists of friends, and beside which the old
// system goes on.
type slowFriends struct {
	*rollcall.Roll
	lists  atomic.Int64
	change func(list int64)
}

func (s *slowFriends) ReplaceFriends(ctx context.Context, user string, friends []rollcall.Friend) error {
	s.change(s.lists.Add(1))
	return s.Roll.ReplaceFriends(ctx, user, friends)
}

// TestWhoIsSeenWhileFriendsAreReadIsNotLeftBehind: the later time of a user who is known can be
// entered for a minute, and lists of friends may take longer.
func TestWhoIsSeenWhileFriendsAreReadIsNotLeftBehind(t *testing.T) {
	const lists = 3000
	for _, layout := range []takeover.Layout{takeover.LastSeenZset, takeover.MinuteSets} {
		t.Run(string(layout), func(t *testing.T) {
			o := newOld(t, redistest.Options{})
			clock := time.Now().UTC().Add(-10 * time.Minute)
			see := func(at time.Time, user string) {
				if layout == takeover.LastSeenZset {
					o.do(fmt.Sprintf("ZADD last.seen %d %s", at.Unix(), user))
					return
				}
				key := fmt.Sprintf("active.users:%02d", at.Minute())
				o.do("SADD "+key+" "+user, "EXPIRE "+key+" 600")
			}
			lines := make([]string, lists)
			for i := range lists {
				lines[i] = fmt.Sprintf("SADD user:u%d:friends f1 f2", i)
			}
			o.do(lines...)
			for i := range 30 {
				see(clock.Add(-3*time.Minute), fmt.Sprintf("u%d", i))
			}

			var mu sync.Mutex
			now := func() time.Time {
				mu.Lock()
				defer mu.Unlock()
				return clock
			}
			to := &slowFriends{Roll: newLate(t).Roll, change: func(list int64) {
				if list%100 != 0 || list > lists {
					return
				}
				mu.Lock()
				clock = clock.Add(4 * time.Second)
				at := clock
				mu.Unlock()
				see(at, fmt.Sprintf("u%d", list/100-1))
			}}
			m := importer(t, o, to, takeover.Options{Layout: layout, Names: takeover.Names{Friends: "user:{user}:friends"}, Now: now})
			_, err := m.Run(t.Context())
			require.NoError(t, err)
			require.NoError(t, m.Look(t.Context(), true))
			s := m.Summary()
			require.Zero(t, s.Behind)
			require.GreaterOrEqual(t, s.Moved, int64(30))
			require.EqualValues(t, 2*lists, s.Friends, "once, and by the look")
			c, err := m.Compare(t.Context())
			require.NoError(t, err)
			for _, d := range c.First { // the beat was entered as of the real time
				require.Equal(t, "seen later here", d.Reason, "%+v", d)
			}
		})
	}
}

// markCount is a Roll that only counts marks.
type markCount struct {
	*rollcall.Roll
	marks atomic.Int64
}

func (c *markCount) ImportMarks(_ context.Context, marks ...rollcall.Mark) (marked, already int, err error) {
	c.marks.Add(int64(len(marks)))
	return len(marks), 0, nil
}

// TestALookAtManyBitmapsEntersEachDayOnce: there are more than are gathered before they are entered.
func TestALookAtManyBitmapsEntersEachDayOnce(t *testing.T) {
	const users = 140_000
	o := newOld(t, redistest.Options{})
	at := time.Date(2026, time.March, 4, 12, 0, 0, 0, time.UTC)
	for from := 0; from < users; from += 5000 {
		lines := make([]string, 5000)
		for i := range lines {
			lines[i] = fmt.Sprintf("SETBIT loginLog_2026-03_client_%d 3 1", from+i)
		}
		o.do(lines...)
	}
	to := &markCount{Roll: newLate(t).Roll}
	m := importer(t, o, to, takeover.Options{Layout: takeover.LoginBitmaps, Now: func() time.Time { return at }})
	require.NoError(t, m.Look(t.Context(), false))
	require.InDelta(t, users, to.marks.Load(), users/10, "SCAN may return a key twice")
}
