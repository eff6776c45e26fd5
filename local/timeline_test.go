package local

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/enginekit"
)

// besides returns users of the bucket of another one.
func (r *rig) besides(user string, n int) (out []string) {
	bucket, _ := lineOf(user)
	for i := 0; len(out) < n; i++ {
		other := fmt.Sprint("beside", i)
		if of, _ := lineOf(other); of == bucket {
			out = append(out, other)
		}
	}
	return out
}

// parts reads a timeline to its end, part by part.
func (r *rig) parts(user string, v rollcall.Viewer, limit int) (out []rollcall.TimelinePart) {
	q := rollcall.TimelineQuery{User: user, Viewer: v, Limit: limit}
	for range 1000 {
		part, err := r.eng.Timeline(r.ctx, q)
		r.NoError(err)
		if out = append(out, part); part.Next == "" {
			return out
		}
		q.Cursor = part.Next
	}
	r.Fail("the timeline does not end")
	return nil
}

// eventsOf puts the parts of a timeline together.
func eventsOf(parts []rollcall.TimelinePart) (out []rollcall.Event) {
	for _, p := range parts {
		out = append(out, p.Events...)
	}
	return out
}

func TestALookAtATimelineThatIsCutShortGoesOnAtNext(t *testing.T) {
	r := newRig(t, 0)
	others := r.besides("alice", 4)
	for i := range 40 {
		r.logout(r.login(others[i%3]))
		if i%10 == 0 {
			r.logout(r.login("alice"))
		}
		r.second()
	}
	r.NoError(r.eng.Flush(r.ctx))
	for _, user := range []string{"alice", others[0], others[3]} {
		r.eng.events.look = maxLineRecords
		whole := r.parts(user, rollcall.ViewerAdmin, 1000)
		r.Len(whole, 1)
		for _, look := range []int{1, 2, 7} {
			r.eng.events.look = look
			for _, limit := range []int{1, 3, 1000} {
				parts := r.parts(user, rollcall.ViewerAdmin, limit)
				r.Equal(whole[0].Events, eventsOf(parts), "%s, %d records a look, %d a page", user, look, limit)
				r.Greater(len(parts), 80/look, "no look reads more than its share")
			}
		}
	}
}

// TestACutLookTellsReadersNothingOfWhoIsHidden compares the whole walk of somebody of whom all is hidden
// with that of an unknown user of the same bucket.
func TestACutLookTellsReadersNothingOfWhoIsHidden(t *testing.T) {
	r := newRig(t, 0)
	r.eng.events.look = 3
	yes := true
	_, err := r.roll.PutUser(r.ctx, "ghost", rollcall.UserPatch{Invisible: &yes})
	r.NoError(err)
	beside := r.besides("ghost", 2)
	for range 10 {
		r.logout(r.login("ghost"))
		r.logout(r.login(beside[0]))
		r.second()
	}
	for _, limit := range []int{1, 5} {
		r.Equal(r.parts(beside[1], rollcall.ViewerPublic, limit), r.parts("ghost", rollcall.ViewerPublic, limit))
	}
	r.Len(eventsOf(r.parts("ghost", rollcall.ViewerAdmin, 5)), 20+1, "who is back within the grace was never offline")
}

func TestATimelineHasNoEventOfAnotherUserWithTheSameTag(t *testing.T) {
	r := newRig(t, 0)
	r.login("alice")
	r.login("bob")
	bucket, tag := lineOf("alice")
	b := r.eng.store.newBatch()
	for seq := range r.eng.events.newestSeq() + 1 {
		e := event{Event: rollcall.Event{Type: rollcall.SessionStarted, At: r.clock.Now()}}
		r.NoError(b.Set(lineKey(sessionFamily, bucket, seq), appendLineEntry(nil, 0, tag, &e), nil))
	}
	r.NoError(r.eng.store.write(b))
	for _, e := range eventsOf(r.parts("alice", rollcall.ViewerAdmin, 10)) {
		r.Equal("alice", e.User)
	}
}

// TestATimelineEndsAtAnErasureThatIsNotFinished has events that are not redacted yet.
func TestATimelineEndsAtAnErasureThatIsNotFinished(t *testing.T) {
	r := newRig(t, 0)
	r.logout(r.login("alice"))
	x := erasure{part: r.eng.partitionOf("alice").index, user: "alice", lastEvent: r.eng.events.newestSeq()}
	r.NoError(r.eng.store.put(x.key(), x.encode()))
	in := r.login("alice")
	r.NoError(r.eng.Flush(r.ctx))
	for _, limit := range []int{1, 10} {
		var ids []rollcall.SessionID
		for _, e := range eventsOf(r.parts("alice", rollcall.ViewerAdmin, limit)) {
			if !e.Session.IsZero() {
				ids = append(ids, e.Session)
			}
		}
		r.Equal([]rollcall.SessionID{in.Session.ID}, ids)
	}
}

// lines returns how many records the index has.
func (r *rig) lines() (n int) {
	for _, table := range lineTables {
		r.NoError(r.eng.store.scan(r.ctx, newKey(table, 1), func([]byte, []byte) error {
			n++
			return nil
		}))
	}
	return n
}

func TestTheIndexOfTimelinesGoesWithTheEvents(t *testing.T) {
	eng, roll, clock := openSmall(t, 1000)
	for i := range 4 {
		require.NoError(t, roll.Beat(t.Context(), numbers(2000*i, 2000*i+2000)...))
		_, err := roll.Ban(t.Context(), fmt.Sprint("banned", i), time.Hour, "", "")
		require.NoError(t, err)
		clock.Advance(time.Second)
		require.NoError(t, roll.Tick(t.Context()))
	}
	want, entries := 0, 0
	for family, table := range familyTables {
		require.NoError(t, eng.store.scan(t.Context(), newKey(table, 1), func(k, v []byte) error {
			events, err := decodeEvents(family, k, v)
			want += len(lineEntries(events))
			return err
		}))
	}
	for _, table := range lineTables {
		require.NoError(t, eng.store.scan(t.Context(), newKey(table, 1), func(_, v []byte) error {
			list, err := decodeLine(v)
			want, entries = want-1, entries+len(list)
			return err
		}))
	}
	require.Zero(t, want, "a record of the index for each bucket of a record of events, and no other")
	require.LessOrEqual(t, entries, 2000)
}

// TestAFlushOfManyIsAFewRecordsOfTheIndex holds what keeps beats cheap.
func TestAFlushOfManyIsAFewRecordsOfTheIndex(t *testing.T) {
	r := newRig(t, 0)
	users := r.neighbours(3000)
	r.NoError(r.roll.Beat(r.ctx, users...))
	r.NoError(r.eng.Flush(r.ctx))
	r.LessOrEqual(r.lines(), (3000/eventsPerRecord+1)*lineBuckets/partitions)
	last := users[2999]
	r.Len(eventsOf(r.parts(last, rollcall.ViewerAdmin, 10)), 1)
}

func TestAnErasureTakesTheUserOutOfTheIndex(t *testing.T) {
	r := newRig(t, 0)
	users := append(r.neighbours(200), "alice")
	r.NoError(r.roll.Beat(r.ctx, users...))
	r.logout(r.login("alice"))
	r.second()
	tagged := func() (n int) {
		bucket, tag := lineOf("alice")
		for family := range lineTables {
			r.NoError(r.eng.store.scan(r.ctx, lineKey(family, bucket, 0)[:3], func(_, v []byte) error {
				entries, err := decodeLine(v)
				for _, e := range entries {
					if e.tag == tag {
						n++
					}
				}
				return err
			}))
		}
		return n
	}
	r.Equal(3, tagged())
	r.NoError(r.roll.Erase(r.ctx, "alice"))
	r.Zero(tagged())
	r.restart() // which checks the store
	r.Len(eventsOf(r.parts(users[0], rollcall.ViewerAdmin, 10)), 1)
}

func TestCheckComparesTheIndexOfTimelinesWithTheEvents(t *testing.T) {
	for name, c := range map[string]struct {
		says   string
		damage func(b *pebble.Batch, k, v []byte) error
	}{
		"missing":      {"are missing in timelines", func(b *pebble.Batch, k, _ []byte) error { return b.Delete(k, nil) }},
		"other events": {"are not as there", func(b *pebble.Batch, k, v []byte) error { return b.Set(k, append(slices.Clone(v), v...), nil) }},
		"no events": {"leads to no event", func(b *pebble.Batch, k, v []byte) error {
			other := slices.Clone(k)
			binary.BigEndian.PutUint64(other[3:], 1<<40)
			return b.Set(other, v, nil)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, table := range lineTables {
				r := newRig(t, 0)
				r.logout(r.login("alice"))
				r.second()
				b := r.eng.store.newBatch()
				r.NoError(r.eng.store.scan(r.ctx, newKey(table, 1), func(k, v []byte) error { return c.damage(b, k, v) }))
				r.False(b.Empty())
				r.NoError(r.eng.store.write(b))
				r.NoError(r.eng.Close())
				o := Options{fs: r.fs, ReserveBytes: -1}
				report, err := Check("data", o, time.Time{})
				r.NoError(err)
				r.Contains(fmt.Sprint(report.Faults), c.says)

				repaired, err := Repair(r.ctx, "data", o, RepairOptions{Now: r.clock.Now()})
				r.NoError(err)
				r.False(repaired.Healthy)
				r.Empty(repaired.Losses)
				r.open()
				r.Len(eventsOf(r.parts("alice", rollcall.ViewerAdmin, 10)), 3)
			}
		})
	}
}

func TestAnEntryOfATimelineIsReadAsItWasWritten(t *testing.T) {
	e := event{Event: rollcall.Event{Type: rollcall.UserOffline, At: startOfTests()}, audience: enginekit.ForPublic}
	got, err := decodeLine(appendLineEntry(nil, 255, 0xfeedface, &e))
	require.NoError(t, err)
	require.Equal(t, []lineEntry{{255, 0xfeedface, rollcall.UserOffline, enginekit.ForPublic, uint32(startOfTests().Unix())}}, got)
	for _, bad := range [][]byte{nil, make([]byte, lineEntryLen-1), {0, 0, 0, 0, 0, 0xff, 0, 0, 0, 0}} {
		_, err := decodeLine(bad)
		require.ErrorIs(t, err, errDamaged)
	}
}
