package local

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/testbudget"
)

func TestEndedSessionsLeaveNothingAmongTheAbsoluteEnds(t *testing.T) {
	r := newRig(t, 0)
	ps, err := rollcall.NewPolicies(rollcall.Policy{Lifetime: 30 * 24 * time.Hour})
	r.NoError(err)
	r.roll.SetPolicies(ps)
	for range 200 {
		r.logout(r.login("alice"))
	}
	r.login("alice")
	s := &r.eng.partitionOf("alice").sessions
	r.Len(s.absoluteEnds.heap, 1)
}

// manyTimeouts imports sessions of one partition, each with a timeout of its own.
func (r *rig) manyTimeouts(n int) []string {
	users := r.neighbours(n)
	now := r.clock.Now()
	snapshots := make([]rollcall.UserSnapshot, n)
	for i, u := range users {
		id := rollcall.NewSessionID(now.Add(-time.Minute), u, uint64(i+1))
		idle := 10*time.Minute + time.Duration(i)*time.Millisecond
		snapshots[i] = rollcall.UserSnapshot{User: u, Sessions: []rollcall.SessionSnapshot{{
			Session: rollcall.Session{ID: id, User: u, Kind: "user", LoginAt: id.Time(), SeenAt: id.Time(), ExpiresAt: id.Time().Add(idle)},
			Token:   rollcall.TokenKey{byte(i), byte(i >> 8), byte(i >> 16), 1}, Idle: idle,
		}}}
	}
	for len(snapshots) > 0 {
		some := snapshots[:min(len(snapshots), rollcall.MaxSnapshots)]
		r.NoError(r.eng.Import(r.ctx, now, some))
		snapshots = snapshots[len(some):]
	}
	return users
}

func TestEachSessionKeepsItsTimeoutHoweverManyThereAre(t *testing.T) {
	r := newRig(t, 0)
	const n = 70_000 // more than a uint16 tells apart
	s := &r.eng.partitionOf(r.neighbours(1)[0]).sessions
	for i := range n {
		s.classes.addSession(timeouts{idle: int64(1 + i)})
	}
	r.Len(s.classes.indexes, n)
	seen := map[uint32]bool{}
	for i := range n {
		c := s.classes.indexes[timeouts{idle: int64(1 + i)}]
		r.False(seen[c], "timeout %d shares the class of another", i)
		seen[c] = true
		r.EqualValues(1+i, s.classes.list[c].idle)
	}
	for c := range seen {
		s.classes.removeSession(c)
	}
	r.Empty(s.classes.indexes)

	users := r.manyTimeouts(200)
	r.Len(s.classes.indexes, 200)
	r.Less(s.classes.bytes(), 8<<20, "a class of one session takes as much as it needs")
	for i, u := range users {
		page, err := r.roll.Sessions(r.ctx, rollcall.SessionQuery{Filter: rollcall.SessionFilter{Users: []string{u}}, Page: rollcall.PageRequest{Limit: 10}})
		r.NoError(err)
		r.Len(page.Items, 1)
		r.Equal(10*time.Minute+time.Duration(i)*time.Millisecond, page.Items[0].ExpiresAt.Sub(page.Items[0].SeenAt))
	}
	r.clock.Advance(9*time.Minute + 100*time.Millisecond)
	page, err := r.roll.Sessions(r.ctx, rollcall.SessionQuery{Page: rollcall.PageRequest{Limit: 1}})
	r.NoError(err)
	r.Equal(99, page.Total, "timeouts of 600,000 to 600,100 ms have passed")
	r.clock.Advance(time.Second)
	r.tick()
	r.Empty(s.classes.indexes, "a class ends with its last session")
}

func (r *rig) tick() { r.NoError(r.roll.Tick(r.ctx)) }

func TestCountAndTotalSeeEveryUserWhoStaysOnline(t *testing.T) {
	r := newRig(t, 0)
	users := make([]string, 2000)
	for i := range users {
		users[i] = fmt.Sprint(i)
	}
	r.NoError(r.roll.Beat(r.ctx, users...))
	done := make(chan error)
	go func() {
		var err error
		for range testbudget.Rounds(t, testbudget.Budget{Least: 150, Most: 500}) {
			r.second()
			if err = r.roll.Beat(r.ctx, users...); err != nil {
				break
			}
		}
		done <- err
	}()
	for {
		select {
		case err := <-done:
			r.NoError(err)
			return
		default:
		}
		n, err := r.roll.OnlineCount(r.ctx, 0)
		r.NoError(err)
		r.Equal(len(users), n)
		page, err := r.roll.Online(r.ctx, 0, rollcall.PageRequest{Limit: 1})
		r.NoError(err)
		r.Equal(len(users), page.Total)
	}
}

func TestSecondsThatNobodyWasLastSeenInTakeNoMemory(t *testing.T) {
	r := newRig(t, 0)
	r.NoError(r.roll.Beat(r.ctx, "alice"))
	before := r.eng.seconds.Bytes()
	for range 400 {
		r.clock.Advance(24 * time.Hour)
		_, _ = r.roll.KnownCount(r.ctx) // the gap is one of a clock that leaps
		r.NoError(r.roll.Beat(r.ctx, "alice"))
		r.tick()
	}
	r.Less(r.eng.seconds.Bytes(), before+4<<20, "of 400 days, those within the retention at most")
}

// openSmall opens an engine in memory that keeps few events.
func openSmall(t *testing.T, keep int) (*Engine, *rollcall.Roll, *rollcall.ManualClock) {
	eng, err := Open("data", Options{fs: vfs.NewMem(), ReserveBytes: -1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, eng.Close()) })
	clock := rollcall.NewManualClock(startOfTests())
	roll, err := rollcall.New(eng, rollcall.Options{Clock: clock, Secret: make([]byte, 32), EventsCount: keep})
	require.NoError(t, err)
	require.NoError(t, roll.Tick(t.Context()))
	return eng, roll, clock
}

func TestATickTrimsAsMuchAsThereIs(t *testing.T) {
	eng, roll, clock := openSmall(t, 1000)
	eng.opts.stopwatch = func() func() time.Duration { return func() time.Duration { return 0 } }
	for i := range 6000 {
		_, err := roll.Ban(t.Context(), fmt.Sprint(i), time.Hour, "", "")
		require.NoError(t, err)
	}
	clock.Advance(time.Second)
	require.NoError(t, roll.Tick(t.Context()))
	eng.events.mu.Lock()
	defer eng.events.mu.Unlock()
	require.Equal(t, 1000, eng.events.keptCounts[sessionFamily])
}

func TestATickGivesUpItsTurnAndGoesOnWithTheNext(t *testing.T) {
	r := newRig(t, 0)
	const n = 3*reapStep + 1
	logins := make([]rollcall.LoggedIn, n)
	for i, u := range r.neighbours(n) {
		logins[i] = r.login(u)
	}
	r.tick()
	for range 30 * 60 / 4 {
		r.clock.Advance(4 * time.Second)
		_, err := r.roll.KnownCount(r.ctx)
		r.NoError(err)
	}
	r.eng.opts.stopwatch = func() func() time.Duration { return func() time.Duration { return time.Hour } }
	s := &r.eng.partitionOf(logins[0].Session.User).sessions
	left := func() int { return s.byID.used }
	r.Equal(n, left())
	for ticks := 0; left() > 0; ticks++ {
		r.Less(ticks, 64*n, "each tick takes a step")
		before := left()
		r.tick()
		r.LessOrEqual(before-left(), reapStep, "and no more than one when its time is over")
		page, err := r.roll.Sessions(r.ctx, rollcall.SessionQuery{Page: rollcall.PageRequest{Limit: 1}})
		r.NoError(err)
		r.Zero(page.Total, "what a list answers does not depend on it")
		_, err = r.roll.Verify(r.ctx, rollcall.SessionRef{Token: logins[n-1].Token})
		r.ErrorIs(err, rollcall.ErrSessionEnded)
	}
}

// presenceEvents returns the changes that everybody is told of.
func (r *rig) presenceEvents() []rollcall.Event {
	r.NoError(r.eng.Flush(r.ctx))
	events, _, err := r.eng.events.read(r.ctx, rollcall.EventFamilies(), 1, r.eng.events.newestSeq(), 1<<20, rollcall.ViewerAdmin)
	r.NoError(err)
	out := []rollcall.Event{}
	for _, e := range events {
		if e.Type == rollcall.UserOnline || e.Type == rollcall.UserOffline {
			out = append(out, e)
		}
	}
	return out
}

func TestNoPresenceEventIsDroppedBeforeItHasANumber(t *testing.T) {
	eng, roll, _ := openSmall(t, 1000)
	first, err := roll.LastEvent(t.Context())
	require.NoError(t, err)
	users := make([]string, 9000)
	for i := range users {
		users[i] = fmt.Sprint(i)
	}
	require.NoError(t, eng.Beat(t.Context(), startOfTests(), users))
	require.NoError(t, eng.Flush(t.Context()))
	after, got := first, 0
	for got < len(users) {
		events, err := roll.Tail(t.Context(), after, 1000)
		require.NoError(t, err)
		got, after = got+len(events), events[len(events)-1].ID
	}
	require.Equal(t, len(users), got)
}

func TestEventsThatWaitAreBounded(t *testing.T) {
	r := newRig(t, 0)
	users := r.neighbours(2*maxWaiting + 100)
	for len(users) > 0 {
		n := min(len(users), 500)
		r.NoError(r.roll.Beat(r.ctx, users[:n]...))
		users = users[n:]
		r.LessOrEqual(len(r.eng.parts[7].announcements.waiting), maxWaiting+n)
	}
	r.Len(r.presenceEvents(), 2*maxWaiting+100)
}

func TestSilenceToldHalfwayThroughASecondIsNotToldAgain(t *testing.T) {
	r := newRig(t, 0)
	users := r.neighbours(2*silenceStep + 10)
	r.NoError(r.roll.Beat(r.ctx, users...))
	r.tick()
	for range 302 / 2 {
		r.clock.Advance(2 * time.Second)
		_, err := r.roll.KnownCount(r.ctx)
		r.NoError(err)
	}
	r.NoError(r.eng.Flush(r.ctx)) // and with it the stamp of life: the crash is no outage
	// One step, durable, then a crash.
	p := r.eng.parts[7]
	tx, more, err := p.sweepStep(r.clock.Now().UnixMilli())
	r.NoError(err)
	r.True(more)
	r.NoError(tx.wait())
	r.crash()
	for range 5 {
		r.second()
		r.tick()
	}
	offline := map[string]int{}
	for _, e := range r.presenceEvents() {
		if e.Type == rollcall.UserOffline {
			offline[e.User]++
		}
	}
	r.Len(offline, len(users))
	for user, n := range offline {
		r.Equal(1, n, user)
	}
}

func TestAnAnnouncementAndTheBeatBehindItSurviveACrashTogether(t *testing.T) {
	r := newRig(t, 0)
	r.tick()
	r.NoError(r.roll.Beat(r.ctx, "alice")) // not flushed
	r.second()
	_, err := r.roll.Ban(r.ctx, "alice", time.Minute, "", "") // durable, and takes the beat's event along
	r.NoError(err)
	r.crash()
	st, err := r.roll.Status(r.ctx, "alice")
	r.NoError(err)
	r.True(st[0].Online)
	r.NoError(r.roll.Beat(r.ctx, "alice"))
	r.Len(r.presenceEvents(), 1)
}

func TestNumbersOfWhomNothingIsKnownAreGivenBack(t *testing.T) {
	r := newRig(t, 0)
	in := r.login("alice")
	_, _, err := r.roll.Mark(r.ctx, rollcall.Mark{User: "bob", Day: r.roll.Today()})
	r.NoError(err)
	r.second()
	_, err = r.roll.ClearPresence(r.ctx, 0)
	r.NoError(err)
	r.logout(in)
	_, err = r.roll.Unmark(r.ctx, true, rollcall.Mark{User: "alice", Day: r.roll.Today()}, rollcall.Mark{User: "bob", Day: r.roll.Today()})
	r.NoError(err)
	maps, _, err := r.eng.ListDirty(r.ctx, "", 100)
	r.NoError(err)
	_, err = r.eng.ClearDirty(r.ctx, maps) // till then the archive may have to hear of it
	r.NoError(err)
	r.tick()
	for _, user := range []string{"alice", "bob"} {
		_, known := r.eng.partitionOf(user).find(user)
		r.False(known, user)
	}
	r.restart()
	st, err := r.roll.Stats(r.ctx)
	r.NoError(err)
	r.Zero(st.Users)
}

func TestAnErasureThatACrashCutShortIsFinishedOnOpening(t *testing.T) {
	r := newRig(t, 0)
	r.logout(r.login("alice"))
	r.NoError(r.eng.Flush(r.ctx))
	p := r.eng.partitionOf("alice")
	p.mu.Lock()
	p.releasable = slices.Repeat([]uint32{p.dir.Limit() + 1}, releaseStep) // the number's turn comes after the crash
	tx := p.newTx()
	_, err := p.erase(tx, p.clock, "alice", rollcall.BanKey{})
	p.mu.Unlock()
	r.NoError(err)
	r.NoError(tx.wait())
	r.crash()
	for table := range 256 {
		r.NoError(r.eng.store.scan(r.ctx, newKey(byte(table), 1), func(k, v []byte) error {
			r.NotContains(string(v), "alice", "key %x", k)
			return nil
		}))
	}
}
