package local

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// eventReader follows the events, and holds what it was given by their ids.
type eventReader struct {
	*rig
	given map[rollcall.EventID]rollcall.Event
	last  rollcall.EventID
}

// read takes what there is. An id that was given before stands for the same event.
func (r *eventReader) read() {
	for {
		events, err := r.within(r.last)
		if errors.Is(err, context.DeadlineExceeded) {
			return
		}
		if errors.Is(err, rollcall.ErrEventsGone) {
			r.last = ""
			continue
		}
		r.NoError(err)
		for _, e := range events {
			if before, ok := r.given[e.ID]; ok {
				r.Equal(before, e, "a number that was delivered is another event's")
			}
			r.given[e.ID] = e
			r.last = e.ID
		}
	}
}

// openInterval opens an engine that syncs with each tick.
func (r *rig) openInterval() {
	eng, err := Open("data", Options{fs: r.fs, ReserveBytes: -1, Durability: Interval})
	r.NoError(err)
	r.eng = eng
	r.configure()
}

func TestNoNumberOfAnEventThatWasDeliveredIsUsedAgainAfterAPowerCut(t *testing.T) {
	r := &eventReader{rig: &rig{
		Assertions: require.New(t), t: t, fs: vfs.NewCrashableMem(), ctx: t.Context(), clock: rollcall.NewManualClock(startOfTests()),
	}, given: map[rollcall.EventID]rollcall.Event{}}
	r.openInterval()
	t.Cleanup(func() { r.NoError(r.eng.Close()) })
	for round := range 5 {
		r.login(fmt.Sprint("durable", round))
		r.NoError(r.roll.Beat(r.ctx, fmt.Sprint("heard", round)))
		r.NoError(r.roll.Tick(r.ctx))
		r.read()

		// Acknowledged, as interval allows, and lost with the power.
		lost := fmt.Sprint("lost", round)
		for i := range 3 {
			r.login(fmt.Sprint(lost, i))
		}
		r.read()
		for _, e := range r.given {
			r.NotContains(e.User, lost, "told before it is durable")
		}
		beyond := r.eng.events.id(r.eng.events.newestSeq())
		left := r.eng
		r.fs = r.fs.CrashClone(vfs.CrashCloneCfg{})
		r.NoError(left.Close())
		r.openInterval()

		// Who was somewhere that there never was is told, and not left waiting.
		_, err := r.within(beyond)
		r.ErrorIs(err, rollcall.ErrEventsGone)
		r.read()
		r.second()
	}
	r.Len(r.given, 5*3, "session.started and two times user.online a round")
}

func TestNoNumberIsUsedAgainWhenNoEventIsKept(t *testing.T) {
	eng, roll, clock := openSmall(t, 1000)
	login := func(user string) rollcall.EventID {
		_, err := roll.Login(t.Context(), rollcall.Login{User: user})
		require.NoError(t, err)
		id, err := roll.LastEvent(t.Context())
		require.NoError(t, err)
		return id
	}
	before := login("alice")
	fs := eng.opts.fs
	require.NoError(t, roll.Tick(t.Context()))
	live := func() { // longer than the grace behind an outage
		for range 20 {
			clock.Advance(4 * time.Second)
			require.NoError(t, roll.Tick(t.Context()))
		}
	}
	clock.Advance(24 * time.Hour)
	live() // the session ends, its user falls silent
	clock.Advance(8 * 24 * time.Hour)
	live()
	eng.events.mu.Lock()
	require.Equal(t, [2]int{}, eng.events.keptCounts, "all are past their age")
	eng.events.mu.Unlock()
	require.NoError(t, eng.Close())

	again, err := Open("data", Options{fs: fs, ReserveBytes: -1})
	require.NoError(t, err)
	defer func() { require.NoError(t, again.Close()) }()
	roll, err = rollcall.New(again, rollcall.Options{Clock: clock, Secret: make([]byte, 32)})
	require.NoError(t, err)
	require.Greater(t, login("bob"), before)
	_, err = roll.Tail(t.Context(), before, 10)
	require.ErrorIs(t, err, rollcall.ErrEventsGone)
}

func TestPresenceEventsPastWhatIsKeptAreTrimmedAndNotSkipped(t *testing.T) {
	_, roll, clock := openSmall(t, 1000)
	_, err := roll.Login(t.Context(), rollcall.Login{User: "alice"})
	require.NoError(t, err)
	after, err := roll.LastEvent(t.Context())
	require.NoError(t, err)
	users := make([]string, 5000)
	for i := range users {
		users[i] = fmt.Sprint("u", i)
	}
	require.NoError(t, roll.Beat(t.Context(), users...))
	clock.Advance(time.Second)
	require.NoError(t, roll.Tick(t.Context()))
	_, err = roll.Tail(t.Context(), after, 1000)
	require.ErrorIs(t, err, rollcall.ErrEventsGone, "of 5,000 events 1,000 are kept: the reader is told that it has missed some")
	kept, err := roll.Tail(t.Context(), "", 1000)
	require.NoError(t, err)
	require.NotEmpty(t, kept)
}

func TestAnEventOfAFailedSyncIsToldOnceItIsDurableUnderItsOwnNumber(t *testing.T) {
	r := newFaultRig(t)
	r.NoError(r.login())
	first, err := r.roll.LastEvent(t.Context())
	r.NoError(err)
	r.disk.fault.Store(&diskFault{err: errors.New("disk on fire"), hits: syncs})
	r.Error(r.login(), "it could not be synced")
	ctx, cancel := context.WithTimeout(t.Context(), neverWithin)
	defer cancel()
	_, err = r.roll.Tail(ctx, first, 10)
	r.ErrorIs(err, context.DeadlineExceeded, "nothing is told that is not durable")
	r.disk.fault.Store(nil)
	r.until("writes are taken again", func() bool { return r.roll.Ready(t.Context()) == nil })
	r.NoError(r.login())
	given := map[rollcall.EventID]string{}
	for after := first; !func() bool {
		for _, user := range given {
			if user == "user3" {
				return true
			}
		}
		return false
	}(); {
		events, err := r.roll.Tail(t.Context(), after, 10)
		r.NoError(err)
		for _, e := range events {
			r.NotContains(given, e.ID)
			r.Greater(e.ID, after)
			given[e.ID], after = e.User, e.ID
		}
	}
	r.NoError(r.eng.Close())
}
