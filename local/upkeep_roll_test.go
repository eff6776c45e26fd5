package local

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
)

// someBlocks is enough users, or sessions, of one partition for several blocks.
const someBlocks = 2*seenLen + 100

// newRollRig is a rig whose every flush is worth a roll, and whose logins do not
// wait for the disk.
func newRollRig(t *testing.T) *rig {
	r := newRig(t, 1)
	r.NoError(r.eng.Close())
	eng, err := Open("data", Options{fs: r.fs, ReserveBytes: -1, Durability: Interval, minDelta: r.delta})
	r.NoError(err)
	r.eng = eng
	r.configure()
	return r
}

// beatAll has users heard now, as many in a call as it may name.
func (r *rig) beatAll(users []string) {
	for from := 0; from < len(users); from += rollcall.MaxBeatUsers {
		r.NoError(r.roll.Beat(r.ctx, users[from:min(len(users), from+rollcall.MaxBeatUsers)]...))
	}
}

// nextFlush returns how many records of each table the next flush would set, or
// delete one by one, in a partition, and how many bytes they have.
func (r *rig) nextFlush(p *partition) (records map[byte]int, size int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen, touched := p.presence.seenFlush, p.sessions.touchFlush
	b := p.eng.store.newBatch()
	first, err := p.putHeard(b)
	r.NoError(err)
	records = make(map[byte]int)
	r.NoError(eachOperation(b, func(kind pebble.InternalKeyKind, k, _ []byte) error {
		if kind != pebble.InternalKeyKindRangeDelete {
			records[k[0]]++
		}
		return nil
	}))
	size = b.Len()
	p.eng.events.abandon(first)
	p.presence.seenFlush, p.sessions.touchFlush = seen, touched
	r.NoError(b.Close())
	return records, size
}

// deltas counts the entries of a partition's delta records in the store.
func (r *rig) deltas(p *partition) (beats, touches int) {
	r.NoError(p.scan(tabBeat, func(_, v []byte) error {
		for rd := (reader{b: v}); len(rd.b) > 0; beats++ {
			rd.uint()
		}
		return nil
	}))
	r.NoError(p.scan(tabTouch, func(_, v []byte) error {
		for rd := (reader{b: v}); len(rd.b) > 0; touches++ {
			rd.uint()
			rd.int()
		}
		return nil
	}))
	return beats, touches
}

func TestAFlushWritesAFixedNumberOfBlocksHoweverManyThereAre(t *testing.T) {
	for _, came := range []int{0, 1, seenLen, 1 << 24} {
		from, to := (&roll{next: 3}).share(came, seenLen, seenRollMost, 1<<12)
		require.Equal(t, uint32(3), from)
		require.Greater(t, to, from, "a roll goes on also when nothing comes")
		require.LessOrEqual(t, to-from, uint32(seenRollMost))
	}

	r := newRollRig(t)
	users := r.neighbours(someBlocks)
	p := r.eng.parts[7]
	var in []rollcall.LoggedIn
	for _, u := range users[:2*touchLen+1] {
		in = append(in, r.login(u))
	}
	r.beatAll(users)
	r.NoError(r.eng.Flush(r.ctx))
	r.second()
	r.beatAll(users[:1])
	r.NoError(r.eng.Flush(r.ctx)) // from here on nothing is written that came before
	blocks, touchBlocks := 0, 0
	for range 30 {
		r.second()
		for _, one := range in[:touchLen/8] {
			_, err := r.roll.Touch(r.ctx, rollcall.SessionRef{Token: one.Token})
			r.NoError(err)
		}
		in = append(in[touchLen/8:], in[:touchLen/8]...)
		r.beatAll(users[:seenLen/8])
		records, size := r.nextFlush(p)
		r.LessOrEqual(records[tabSeen], 1, "blocks of last-seen times: an eighth of one came")
		r.LessOrEqual(records[tabTouched], 1, "blocks of touches: an eighth of one came")
		r.LessOrEqual(records[tabForgot], noteStep)
		r.Less(size, 5*seenLen+13*touchLen+8*(seenLen+touchLen))
		blocks, touchBlocks = blocks+records[tabSeen], touchBlocks+records[tabTouched]
		r.NoError(r.eng.Flush(r.ctx))
	}
	r.GreaterOrEqual(blocks, 3, "a roll has written all blocks")
	r.GreaterOrEqual(touchBlocks, 3)
	r.restart()
}

func TestDeltasStayInBoundsUnderSteadyBeatsAndTouches(t *testing.T) {
	r := newRollRig(t)
	users := r.neighbours(someBlocks)
	p := r.eng.parts[7]
	const sessions = touchLen + 100
	in := make([]rollcall.LoggedIn, sessions)
	for i := range in {
		in[i] = r.login(users[i])
	}
	r.beatAll(users)
	rnd := rand.New(rand.NewPCG(1, 2))
	const beats, touches = 1000, 200
	rolls := 0
	for range 60 {
		r.second()
		some := make([]string, beats)
		for i := range some {
			some[i] = users[rnd.IntN(len(users))]
		}
		r.beatAll(some)
		for range touches {
			_, err := r.roll.Touch(r.ctx, rollcall.SessionRef{Token: in[rnd.IntN(sessions)].Token})
			r.NoError(err)
		}
		before := p.presence.deltaEntries
		r.NoError(r.eng.Flush(r.ctx))
		if p.presence.deltaEntries < before {
			rolls++
		}
		b, q := r.deltas(p)
		r.LessOrEqual(b, len(users)+len(users)/rollPace+4*(beats+touches), "entries of beats")
		r.LessOrEqual(q, sessions+sessions/rollPace+4*touches, "entries of touches")
	}
	r.Greater(rolls, 2)
}

func TestNotesOfWhoWasForgottenGoWithARoll(t *testing.T) {
	r := newRig(t, 1)
	users := r.neighbours(100)
	p := r.eng.parts[7]
	in := r.login(users[0])
	r.NoError(r.roll.Beat(r.ctx, users...))
	r.NoError(r.eng.Flush(r.ctx))
	r.second()
	_, err := r.roll.ClearPresence(r.ctx, 0)
	r.NoError(err)
	for range 2 * 6 {
		r.second()
		r.NoError(r.roll.Beat(r.ctx, users[99], users[98]))
		r.NoError(r.eng.Flush(r.ctx))
	}
	notes := func() (n int) {
		r.NoError(p.scan(tabForgot, func(_, _ []byte) error { n++; return nil }))
		return n
	}
	r.Equal(1, notes(), "a session speaks of one of them")
	r.restart()
	p = r.eng.parts[7]
	_, _, err = r.roll.LastSeen(r.ctx, users[0])
	r.ErrorIs(err, rollcall.ErrNotFound)
	r.logout(in)
	for range 2 * 6 {
		r.second()
		r.NoError(r.roll.Beat(r.ctx, users[99], users[98]))
		r.NoError(r.eng.Flush(r.ctx))
	}
	r.Zero(notes())
}

func TestWhoIsForgottenTwiceStaysSoAfterACrash(t *testing.T) {
	r := newRig(t, 0)
	users := r.neighbours(2)
	r.NoError(r.roll.Beat(r.ctx, users[0]))
	r.tick()
	forget := func() {
		r.second()
		_, err := r.roll.ClearPresence(r.ctx, 0)
		r.NoError(err)
	}
	forget()
	r.NoError(r.roll.Beat(r.ctx, users[0])) // its announcement waits
	forget()
	r.crash()
	_, _, err := r.roll.LastSeen(r.ctx, users[0])
	r.ErrorIs(err, rollcall.ErrNotFound)
	r.tick()
	r.restart()
	_, _, err = r.roll.LastSeen(r.ctx, users[0])
	r.ErrorIs(err, rollcall.ErrNotFound)
}

func TestAnImportedSessionBringsNoLastSeenTimeItsUserHadNot(t *testing.T) {
	r := newRig(t, 0)
	user := r.neighbours(1)[0]
	r.importSession(user, time.Minute)
	_, _, err := r.roll.LastSeen(r.ctx, user)
	r.ErrorIs(err, rollcall.ErrNotFound)
	r.crash()
	_, _, err = r.roll.LastSeen(r.ctx, user)
	r.ErrorIs(err, rollcall.ErrNotFound)
	r.NoError(r.roll.Beat(r.ctx, user))
	r.tick()
	r.crash()
	_, _, err = r.roll.LastSeen(r.ctx, user)
	r.NoError(err)
}

func TestAnImportedSessionHasNoTouchOfOneThatEnded(t *testing.T) {
	r := newRig(t, 0)
	users := r.neighbours(4)
	var in []rollcall.LoggedIn
	for _, u := range users[:2] {
		in = append(in, r.login(u))
	}
	r.second()
	for _, one := range in {
		_, err := r.roll.Touch(r.ctx, rollcall.SessionRef{Token: one.Token})
		r.NoError(err)
	}
	r.tick()
	for _, one := range in {
		r.logout(one)
	}
	r.importSession(users[2], time.Minute)
	r.restart() // its slots are as free as new ones
	r.importSession(users[3], time.Minute)
	before := r.eng.parts[7].remembered()
	r.restart()
	r.Equal(before, r.eng.parts[7].remembered())
}
