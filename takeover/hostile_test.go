package takeover_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/redistest"
	"github.com/rollcall/rollcall/local"
	"github.com/rollcall/rollcall/takeover"
)

// TestAFriendThatCannotBeCostsNobodyTheOthers imports lists in which something is wrong.
func TestAFriendThatCannotBeCostsNobodyTheOthers(t *testing.T) {
	onBothEngines(t, func(t *testing.T, roll *rollcall.Roll) {
		o := newOld(t, redistest.Options{})
		o.do(fmt.Sprintf("ZADD last.seen %d alice", time.Now().Unix()),
			"SADD user:alice:friends bob \xff "+strings.Repeat("x", rollcall.MaxUserLen+1),
			"ZADD user:bob:friends 1e15 alice inf carol -1 dave 7 erin",
			"HSET user:carol:friends a b", "SADD user:\xff:friends a")
		for from := 0; from <= rollcall.MaxFriends; from += 1000 {
			line := "SADD user:dave:friends"
			for i := range 1000 {
				line += fmt.Sprintf(" f%d", from+i)
			}
			o.do(line)
		}
		m := importer(t, o, roll, takeover.Options{Layout: takeover.LastSeenZset, Names: takeover.Names{Friends: "user:{user}:friends"}})
		s, err := m.Run(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 2, s.Friends)
		require.EqualValues(t, 5, s.Refused, "%q", s.FirstRefused)
		for user, want := range map[string]int{"alice": 1, "bob": 4, "carol": 0, "dave": 0} {
			page, err := roll.Friends(t.Context(), user, rollcall.PageRequest{})
			require.NoError(t, err)
			require.Equal(t, want, page.Total, user)
		}
		require.EqualValues(t, 5, clean(t, m).Passed, "what was refused is rightly not here")
	})
}

// TestNoKeyIsReadFurtherThanItCanMatter puts what is far too long, or of another type, under the
// names of bitmaps, records and sets.
func TestNoKeyIsReadFurtherThanItCanMatter(t *testing.T) {
	onBothEngines(t, func(t *testing.T, roll *rollcall.Roll) {
		o := newOld(t, redistest.Options{})
		// Empty, as memory is given only where something is written.
		o.do("SETBIT loginLog_2026-03_user_huge 4294967295 1", "HSET loginLog_2026-03_user_hash a b", "SETBIT loginLog_2026-03_user_alice 3 1")
		days := importer(t, o, roll, takeover.Options{Layout: takeover.LoginBitmaps})
		s, err := days.Run(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 1, s.Entered)
		require.EqualValues(t, 2, s.Refused, "%q", s.FirstRefused)
		require.Contains(t, strings.Join(s.FirstRefused, "\n"), "more than 64 bytes")
		require.Contains(t, strings.Join(s.FirstRefused, "\n"), "it is no bitmap")
		clean(t, days)

		score := time.Now().UnixMilli()
		o.do(fmt.Sprintf("ZADD online:user %d bob:1 %d carol:1 %d dave:1", score, score, score),
			"SET online:user:bob text", "SADD online:user:carol 1",
			`SET login:bob:1 {"app":"shop"}`, "HSET login:carol:1 a b", `SET login:dave:1 {"app":"shop","x":"`+strings.Repeat("x", 70<<10)+`"}`)
		online := importer(t, o, roll, takeover.Options{Layout: takeover.OnlineZset, Names: takeover.Names{Records: "login:{user}"}})
		s, err = online.Run(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 3, s.Entered)
		apps := make(map[string]string)
		page, err := roll.Sessions(t.Context(), rollcall.SessionQuery{Page: rollcall.PageRequest{Limit: 10}})
		require.NoError(t, err)
		for _, s := range page.Items {
			apps[s.User] = s.App
		}
		require.Equal(t, map[string]string{"bob": "shop", "carol": "", "dave": ""}, apps)
		clean(t, online)

		at := time.Now()
		for i := range 12 {
			o.do(fmt.Sprintf("SET active.users:%02d text", at.Add(time.Duration(i-10)*time.Minute).Minute()))
		}
		minutes := importer(t, o, roll, takeover.Options{Layout: takeover.MinuteSets})
		_, err = minutes.Run(t.Context())
		require.NoError(t, err)
		clean(t, minutes)
	})
}

// TestTheDoctorLooksPastKeysOfAnotherType puts one under every name that it knows.
func TestTheDoctorLooksPastKeysOfAnotherType(t *testing.T) {
	o := newOld(t, redistest.Options{})
	o.do("SET last.seen x", "HSET users a b", "SET active.users:05 x", "SADD active.users:06 alice", "HSET user:a:friends x y",
		"LPUSH login:alice:1 a", "SET online:user:alice x", "HSET loginLog_2026-01_u_a b c",
		"ZADD online:user "+ms(time.Hour)+" alice:1")
	report, err := takeover.Doctor(t.Context(), o.source(), takeover.DoctorOptions{Now: now})
	require.NoError(t, err)
	odd := make(map[takeover.Layout]int64)
	for _, f := range report.Findings {
		for _, fault := range f.Faults {
			if fault.Code == "odd" {
				odd[f.Layout] = fault.Count.N
			}
		}
	}
	require.Equal(t, map[takeover.Layout]int64{takeover.MinuteSets: 1, takeover.LoginBitmaps: 1}, odd)
	roll := newRoll(t)
	for layout, key := range map[takeover.Layout]string{takeover.LastSeenZset: "last.seen", takeover.HeartbeatZset: "users"} {
		_, err = importer(t, o, roll, takeover.Options{Layout: layout}).Run(t.Context())
		require.ErrorContains(t, err, key+" is no sorted set")
	}
}

func newRoll(t *testing.T) *rollcall.Roll {
	t.Helper()
	engine, err := local.Open("", local.Options{InMemory: true})
	require.NoError(t, err)
	roll, err := rollcall.New(engine, rollcall.Options{})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, roll.Close())
		require.NoError(t, engine.Close())
	})
	return roll
}

// TestAnEntryThatCannotBeKnownAgainIsRefused has entries whose names no attribute can hold. They
// would begin a session at each look.
func TestAnEntryThatCannotBeKnownAgainIsRefused(t *testing.T) {
	onBothEngines(t, func(t *testing.T, roll *rollcall.Roll) {
		o := newOld(t, redistest.Options{})
		score := time.Now().UnixMilli()
		o.do(fmt.Sprintf("ZADD online:user %d alice:%s %d bob:\xff %d carol:1", score, strings.Repeat("x", 300), score, score))
		for range 3 {
			m := importer(t, o, roll, takeover.Options{Layout: takeover.OnlineZset})
			s, err := m.Run(t.Context())
			require.NoError(t, err)
			require.EqualValues(t, 2, s.Refused)
			require.Zero(t, s.Moved)
			clean(t, m)
		}
		page, err := roll.Sessions(t.Context(), rollcall.SessionQuery{})
		require.NoError(t, err)
		require.Equal(t, 1, page.Total)
	})
}

// TestWhatWasWrittenBackIsNotTakenOverAgain goes back, and on again.
func TestWhatWasWrittenBackIsNotTakenOverAgain(t *testing.T) {
	for _, sets := range []string{"", "online:user:{user}"} {
		onBothEngines(t, func(t *testing.T, roll *rollcall.Roll) {
			o := newOld(t, redistest.Options{})
			names := takeover.Names{Sets: sets}
			for _, user := range []string{"alice", "bob"} {
				_, err := roll.Login(t.Context(), rollcall.Login{User: user})
				require.NoError(t, err)
			}
			for range 2 {
				for _, unit := range []takeover.Unit{takeover.UnitSeconds, takeover.UnitMilliseconds} {
					require.NoError(t, writeBack(t, o, roll, takeover.WriteBackOptions{Layout: takeover.OnlineZset, Names: names, Unit: unit}).Look(t.Context()))
					m := importer(t, o, roll, takeover.Options{Layout: takeover.OnlineZset, Names: names})
					s, err := m.Run(t.Context())
					require.NoError(t, err)
					require.Zero(t, s.Moved)
					require.EqualValues(t, 2, s.Already)
					clean(t, m)
				}
			}
			require.Equal(t, []string{"2"}, o.ask("ZCARD online:user"))
			page, err := roll.Sessions(t.Context(), rollcall.SessionQuery{})
			require.NoError(t, err)
			require.Equal(t, 2, page.Total)
		})
	}
}

// many is more than are entered together.
const many = 80_000

// seeMany makes a sorted set of many users.
func seeMany(o *old) {
	for from := 0; from < many; from += 5000 {
		var line strings.Builder
		line.WriteString("ZADD last.seen")
		for i := from; i < from+5000; i++ {
			fmt.Fprintf(&line, " %d u%d", time.Now().Unix()-3600-int64(i%1000), i)
		}
		o.do(line.String())
	}
}

// TestAStateThatIsDamagedIsRefused flips each byte of one.
func TestAStateThatIsDamagedIsRefused(t *testing.T) {
	o := newOld(t, redistest.Options{})
	seeMany(o)
	opts := takeover.Options{Layout: takeover.LastSeenZset, State: filepath.Join(t.TempDir(), "state")}
	onBothEngines(t, func(t *testing.T, roll *rollcall.Roll) {
		stopAfter(t, o, roll, opts, 70_000)
		kept, err := os.ReadFile(opts.State)
		require.NoError(t, err)
		for i := range kept {
			damaged := bytes.Clone(kept)
			damaged[i] ^= 1
			require.NoError(t, os.WriteFile(opts.State, damaged, 0o600))
			_, err := importer(t, o, roll, opts).Run(t.Context())
			require.Error(t, err, "byte %d of %s", i, damaged)
		}
		require.NoError(t, os.WriteFile(opts.State, kept, 0o600))
		s, err := importer(t, o, roll, opts).Run(t.Context())
		require.NoError(t, err)
		require.Less(t, s.Read, int64(many), "it went on")
	})
}

// TestTheStateOfARehearsalLeavesNothingOutOfAnotherStore cuts one short, and imports into a
// store that is new.
func TestTheStateOfARehearsalLeavesNothingOutOfAnotherStore(t *testing.T) {
	o := newOld(t, redistest.Options{})
	seeMany(o)
	opts := takeover.Options{Layout: takeover.LastSeenZset, State: filepath.Join(t.TempDir(), "state")}
	rehearsed := false
	onBothEngines(t, func(t *testing.T, roll *rollcall.Roll) {
		if rehearsed {
			s, err := importer(t, o, roll, opts).Run(t.Context())
			require.NoError(t, err)
			require.EqualValues(t, many, s.Entered)
			return
		}
		rehearsed = true
		stopAfter(t, o, roll, opts, 70_000)
		require.FileExists(t, opts.State)
	})
}

// stopAfter begins an import, and stops it when some entries have been read.
func stopAfter(t *testing.T, o *old, roll *rollcall.Roll, opts takeover.Options, entries int64) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	opts.Progress = func(done, _ int64) {
		if done > entries {
			stop()
		}
	}
	_, err := importer(t, o, roll, opts).Run(ctx)
	require.ErrorIs(t, err, context.Canceled)
}
