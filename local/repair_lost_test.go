package local

import (
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

func TestAHoleInTheJournalRevivesNobodyAndUndoesNoBan(t *testing.T) {
	s := newFullStore(t, 20, true)
	ctx := t.Context()
	s.open(0)
	early := s.login("early", "")
	kicked := s.login("kicked", "")
	require.NoError(t, s.eng.store.journal.Sync())
	hole := s.eng.store.journal.Last()
	s.kick(kicked, "kicked")
	_, err := s.roll.Ban(ctx, "late", time.Hour*1000, "", "")
	require.NoError(t, err)
	s.banned["late"] = true
	require.NoError(t, s.roll.Erase(ctx, fullUser(3)))
	_, _, err = s.roll.Mark(ctx, rollcall.Mark{User: "late2", Day: rollcall.DayOf(s.clock.Now(), time.UTC)})
	require.NoError(t, err)
	crashed := s.fs.CrashClone(vfs.CrashCloneCfg{})
	s.close()
	s.fs = crashed
	s.damageRecord(hole + 1)

	_, err = Open(storeName, s.options())
	require.ErrorContains(t, err, "rollcall check")
	out, err := s.repair()
	require.NoError(t, err)
	require.Contains(t, fmt.Sprint(out.Losses), "commands in the journal")
	require.Contains(t, fmt.Sprint(out.Losses), "every live session has ended")
	s.open(0)
	defer s.close()
	for _, in := range []rollcall.LoggedIn{early, kicked} {
		_, err = s.roll.Verify(ctx, rollcall.SessionRef{Token: in.Token})
		require.Equal(t, rollcall.CodeSessionEnded, rollcall.CodeOf(err))
	}
	_, err = s.roll.Login(ctx, rollcall.Login{User: "late"})
	require.Equal(t, rollcall.CodeUserBanned, rollcall.CodeOf(err), "a ban behind the hole holds")
	require.False(t, s.eng.hasNumber(fullUser(3)), "an erasure behind the hole is carried out")
	_, err = s.roll.Login(ctx, rollcall.Login{User: "kicked"})
	require.NoError(t, err)
}

// damageRecord flips a byte of the group that holds a record of the journal.
func (s *fullStore) damageRecord(n uint64) {
	dir := storeName + "/journal"
	name := dir + "/" + lastOf(s.t, s.fs, dir)
	b := contentOf(s.t, s.fs, name)
	for i := range b {
		if string(b[i:min(len(b), i+4)]) == "grp1" && be64(b[i+8:]) <= n && n < be64(b[i+8:])+uint64(be32(b[i+16:])) {
			b[i+40] ^= 0x10
			setContent(s.t, s.fs, name, b)
			return
		}
	}
	s.t.Fatalf("record %d is not in %s", n, name)
}

func TestAStoreWhoseClockRanAheadIsBroughtBack(t *testing.T) {
	s := newFullStore(t, 30, true)
	ctx, present := t.Context(), s.clock.Now()
	before := map[string]string{}
	for text, user := range s.live {
		before[text] = user
	}
	s.clock.Set(present.Add(20 * time.Second)) // the server stood for no longer
	s.open(0)
	require.NoError(t, s.roll.Tick(ctx))
	s.clock.Set(present.Add(365 * 24 * time.Hour))
	future := s.login("future", "retry")
	_, err := s.roll.Ban(ctx, "banned-then", time.Hour, "", "")
	require.NoError(t, err)
	require.NoError(t, s.roll.Visit(ctx, "then", "v"))
	_, _, err = s.roll.Mark(ctx, rollcall.Mark{User: fullUser(2), Day: rollcall.DayOf(s.clock.Now(), time.UTC)})
	require.NoError(t, err)
	require.NoError(t, s.roll.Beat(ctx, "beat-then"))
	for text := range before {
		if _, err := s.roll.Touch(ctx, rollcall.SessionRef{Token: text}); err != nil {
			require.NoError(t, err, "the leap is an outage, and ends nobody")
		}
	}
	require.NoError(t, s.eng.Flush(ctx))
	s.close()

	s.clock.Set(present.Add(time.Minute))
	_, err = rollcall.New(s.mustOpen(), rollcall.Options{Clock: s.clock, Secret: make([]byte, 32)})
	require.ErrorContains(t, err, "check --repair")
	require.NoError(t, s.eng.Close())
	report, err := Check(storeName, s.options(), s.clock.Now())
	require.NoError(t, err)
	require.True(t, report.Ahead)
	out, err := s.repair()
	require.NoError(t, err)
	require.Contains(t, fmt.Sprint(out.Losses), "live sessions that began in the future")
	require.Contains(t, fmt.Sprint(out.Notes), "were set back")

	s.open(0)
	defer s.close()
	require.NoError(t, s.roll.Ready(ctx))
	_, err = s.roll.Verify(ctx, rollcall.SessionRef{Token: future.Token})
	require.Error(t, err)
	for text, user := range before {
		in, err := s.roll.Verify(ctx, rollcall.SessionRef{Token: text})
		require.NoError(t, err, user)
		require.False(t, in.SeenAt.After(s.clock.Now()))
	}
	delete(s.live, future.Token)
	delete(s.days, "future")
	s.compare("a clock that ran ahead", nil)
	in, err := s.roll.Login(ctx, rollcall.Login{User: "future"})
	require.NoError(t, err)
	_, err = s.roll.Verify(ctx, rollcall.SessionRef{Token: in.Token})
	require.NoError(t, err)
	_, err = s.roll.Login(ctx, rollcall.Login{User: "banned-then"})
	require.Equal(t, rollcall.CodeUserBanned, rollcall.CodeOf(err))
	s.clock.Advance(61 * time.Minute)
	_, err = s.roll.Login(ctx, rollcall.Login{User: "banned-then"})
	require.NoError(t, err, "a ban of an hour lasts an hour")
}

func (s *fullStore) mustOpen() *Engine {
	var err error
	s.eng, err = Open(storeName, s.options())
	require.NoError(s.t, err)
	return s.eng
}
