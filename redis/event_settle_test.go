package redis

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// ban makes one event of a user in a partition, and returns the user.
func (r *rig) ban(t *testing.T, part int, name string) string {
	t.Helper()
	for n := 0; ; n++ {
		user := name + strconv.Itoa(n)
		if r.e.partOf(user) != part {
			continue
		}
		_, err := r.roll.Ban(t.Context(), user, time.Hour, "", "")
		require.NoError(t, err)
		return user
	}
}

// after returns the users of the events after one, and the last id.
func (r *rig) after(t *testing.T, id rollcall.EventID) (users []string, last rollcall.EventID) {
	t.Helper()
	events, err := r.roll.EventsAfter(t.Context(), id, 100)
	require.NoError(t, err)
	for _, e := range events {
		users, id = append(users, e.User), e.ID
	}
	return users, id
}

// TestAnEventIsNotPassedOverWhoseClockIsBehind has one partition an hour ahead, as one
// on a master whose clock was set back, or is ahead of the others'.
func TestAnEventIsNotPassedOverWhoseClockIsBehind(t *testing.T) {
	t.Parallel()
	r := newRig(t, 2, rollcall.Options{})
	hour := strconv.FormatInt(time.Now().Add(time.Hour).UnixMicro(), 10)
	r.do(t, "HSET", r.e.states[0], "lastevent", hour)
	ahead := r.ban(t, 0, "ahead")
	got, last := r.after(t, "")
	require.Equal(t, []string{ahead}, got)

	for n := range 3 {
		behind, ahead := r.ban(t, 1, fmt.Sprint("behind", n)), r.ban(t, 0, fmt.Sprint("ahead", n))
		got, last = r.after(t, last)
		require.ElementsMatch(t, []string{behind, ahead}, got, "round %d", n)
		if n == 1 { // as the end of the log is told to who begins there
			behind = r.ban(t, 1, "more")
			end, err := r.roll.LastEvent(t.Context())
			require.NoError(t, err)
			got, last = r.after(t, last)
			require.Equal(t, []string{behind}, got)
			require.Equal(t, end, last)
		}
	}
}

// TestEventsAreReadWhileRedisRefusesWrites has one event that nobody has read when
// Redis begins to refuse.
func TestEventsAreReadWhileRedisRefusesWrites(t *testing.T) {
	t.Parallel()
	for name, setting := range map[string][2]string{
		"min-replicas-to-write": {"1", "0"}, // NOREPLICAS
		"maxmemory":             {"1", "0"}, // OOM
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, 2, rollcall.Options{})
			user := r.ban(t, 0, "u")
			r.do(t, "CONFIG", "SET", name, setting[0])
			got, last := r.after(t, "")
			require.Equal(t, []string{user}, got)
			r.do(t, "CONFIG", "SET", name, setting[1])
			user = r.ban(t, 1, "u")
			got, _ = r.after(t, last)
			require.Equal(t, []string{user}, got)
		})
	}
}

// TestAReaderDoesNotWaitForAnotherOnePastItsTime has one reader ask Redis, which does not
// answer.
func TestAReaderDoesNotWaitForAnotherOnePastItsTime(t *testing.T) {
	t.Parallel()
	r := newRig(t, 2, rollcall.Options{})
	done, err := r.e.news.ask(t.Context())
	require.NoError(t, err)
	defer done()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err = r.roll.EventsAfter(ctx, "", 10)
	require.ErrorIs(t, err, rollcall.ErrUnavailable)
	_, err = r.roll.LastEvent(ctx)
	require.ErrorIs(t, err, rollcall.ErrUnavailable)
}

// TestAReaderAheadOfTheLogIsTold has a reader whose last event the store has lost, as
// after a failover or when an older copy was restored.
func TestAReaderAheadOfTheLogIsTold(t *testing.T) {
	t.Parallel()
	r := newRig(t, 2, rollcall.Options{})
	user := r.ban(t, 0, "u")
	got, last := r.after(t, "")
	require.Equal(t, []string{user}, got)
	at, ok := r.e.parseEventID(last)
	require.True(t, ok)
	for _, lost := range []place{{at.at + 1, 0}, {at.at, 1}, {at.at + time.Hour.Microseconds(), 1}} {
		_, err := r.roll.EventsAfter(t.Context(), r.e.eventID(lost), 10)
		require.ErrorIs(t, err, rollcall.ErrEventsGone, "%v", lost)
		_, err = r.roll.Tail(t.Context(), r.e.eventID(lost), 10)
		require.ErrorIs(t, err, rollcall.ErrEventsGone, "%v", lost)
	}
}

// TestAReaderWhoseEventIsLostIsTold has the store lose the newest event, as after a
// failover, and go on with others.
func TestAReaderWhoseEventIsLostIsTold(t *testing.T) {
	t.Parallel()
	r := newRig(t, 2, rollcall.Options{})
	first := r.ban(t, 0, "first")
	_, before := r.after(t, "")
	r.ban(t, 0, "lost")
	_, last := r.after(t, before)
	at, ok := r.e.parseEventID(last)
	require.True(t, ok)
	kept, ok := r.e.parseEventID(before)
	require.True(t, ok)

	// Somebody waits behind it.
	waited := make(chan error, 1)
	go func() {
		_, err := r.roll.Tail(t.Context(), last, 10)
		waited <- err
	}()
	require.Eventually(t, func() bool {
		r.e.news.mu.Lock()
		defer r.e.news.mu.Unlock()
		return r.e.news.waiting > 0
	}, time.Minute, time.Millisecond, "the reader waits")
	r.do(t, "XDEL", r.e.of(0, "log"), strconv.FormatInt(at.at, 10)+"-0")
	r.do(t, "HSET", r.e.states[0], "lastevent", strconv.FormatInt(kept.at, 10))
	select {
	case err := <-waited:
		require.ErrorIs(t, err, rollcall.ErrEventsGone)
	case <-time.After(time.Minute):
		require.FailNow(t, "the reader was told nothing")
	}

	// Its partition goes on past the place, and so does the other.
	r.ban(t, 1, "other")
	later := r.ban(t, 0, "later")
	_, err := r.roll.EventsAfter(t.Context(), last, 10)
	require.ErrorIs(t, err, rollcall.ErrEventsGone)
	_, err = r.roll.Tail(t.Context(), last, 10)
	require.ErrorIs(t, err, rollcall.ErrEventsGone)
	got, _ := r.after(t, before)
	require.Contains(t, got, later, "who has not had it goes on")

	// Who stands at an event that was redacted since, or trimmed, has lost nothing.
	require.NoError(t, r.roll.Erase(t.Context(), first))
	got, _ = r.after(t, before)
	require.Contains(t, got, later)
}

// TestAnEventThatIsRedactedWhileItIsReadComesOnce has the same event in the stream and
// among those that were redacted, as a reader may find it who reads both in turn.
func TestAnEventThatIsRedactedWhileItIsReadComesOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, rollcall.Options{})
	user := r.ban(t, 0, "u")
	_, last := r.after(t, "")
	at, ok := r.e.parseEventID(last)
	require.True(t, ok)
	require.NotEmpty(t, user)
	r.do(t, "EVAL", `
local blob = redis.call('XRANGE', KEYS[1], '-', '+')[1][2][2]
local kind, audience, t = struct.unpack('>BBI8', blob)
return redis.call('ZADD', KEYS[2], ARGV[1], ARGV[1] .. ':' .. struct.pack('>BBI8BBBI2B', kind, audience, t, 0, 0, 0, 0, 0))`,
		"2", r.e.of(0, "log"), r.e.of(0, "redacted"), strconv.FormatInt(at.at, 10))
	events, err := r.roll.EventsAfter(t.Context(), "", 10)
	require.NoError(t, err)
	require.Len(t, events, 1)
	require.Empty(t, events[0].User, "without its user")
}
