package local

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/testbudget"
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
	seen, touched := p.presence.seenLog, p.sessions.touchLog
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
	p.eng.events.drop(first)
	p.presence.seenLog, p.sessions.touchLog = seen, touched
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
		before := p.presence.written
		r.NoError(r.eng.Flush(r.ctx))
		if p.presence.written < before {
			rolls++
		}
		b, q := r.deltas(p)
		r.LessOrEqual(b, len(users)+len(users)/rollPace+4*(beats+touches), "entries of beats")
		r.LessOrEqual(q, sessions+sessions/rollPace+4*touches, "entries of touches")
	}
	r.Greater(rolls, 2)
}

// memory is what a partition remembers of users and sessions.
func (p *partition) remembered() map[string]string {
	out := make(map[string]string)
	for n := range p.dir.Limit() {
		if last := p.presence.seen.Last(n); last != 0 {
			out[p.dir.ID(n)] = fmt.Sprint(last, p.presence.seen.Hidden(n))
		}
	}
	s := &p.sessions
	for pos, ok := s.order.Next(0); ok; pos, ok = s.order.Next(pos + 1) {
		slot := s.order.Slot(pos)
		out[s.id(slot).String()] = fmt.Sprint(p.dir.ID(s.user.Get(slot)), s.seen.Get(slot))
	}
	return out
}

// afterCrash returns what a partition would remember after a crash now.
func (r *rig) afterCrash(part uint8) map[string]string {
	fs := r.fs.CrashClone(vfs.CrashCloneCfg{})
	eng, err := Open("data", Options{fs: fs, ReserveBytes: -1, minDelta: r.delta})
	r.NoError(err)
	defer func() { r.NoError(eng.Close()) }()
	return eng.parts[part].remembered()
}

// rolling is a partition of several blocks in which a few users do all there is
// to do, while one roll follows the other.
type rolling struct {
	*rig
	rnd   *rand.Rand
	users []string
	in    []rollcall.LoggedIn
	fresh int
}

func newRolling(t *testing.T, seed uint64) *rolling {
	r := &rolling{rig: newRollRig(t), rnd: rand.New(rand.NewPCG(seed, 9))}
	all := r.neighbours(someBlocks)
	var held []rollcall.LoggedIn
	for _, u := range all[:touchLen+100] { // all at once, for as many slots
		held = append(held, r.login(u))
	}
	r.beatAll(all)
	r.NoError(r.eng.Flush(r.ctx))
	for i := range 12 {
		r.users = append(r.users, all[i*(someBlocks/12)])
	}
	for i, in := range held {
		if i%(touchLen/4) == 0 {
			r.in = append(r.in, in)
			r.users = append(r.users, in.Session.User)
		} else {
			r.logout(in)
		}
	}
	r.clock.Advance(10 * time.Second)
	r.beatAll(r.users)
	r.clear(5 * time.Second)
	r.NoError(r.eng.Flush(r.ctx))
	return r
}

func (r *rolling) clear(olderThan time.Duration) {
	_, err := r.roll.ClearPresence(r.ctx, olderThan)
	r.NoError(err)
}

func (r *rolling) some() string { return r.users[r.rnd.IntN(len(r.users))] }

// newcomer returns a user who has no number yet, and may get one used before.
func (r *rolling) newcomer() string {
	for {
		r.fresh++
		if u := fmt.Sprint("new", r.fresh); r.eng.partitionOf(u).index == 7 {
			r.users[r.rnd.IntN(len(r.users))] = u
			return u
		}
	}
}

// step does one thing.
func (r *rolling) step() {
	name := "Zoe"
	switch r.rnd.IntN(14) {
	case 0, 1, 2, 3:
		r.NoError(r.roll.Beat(r.ctx, r.some(), r.some(), r.some()))
	case 4:
		r.in = append(r.in, r.login(r.some()))
	case 5, 6:
		for range min(8, len(r.in)) {
			_, err := r.roll.Touch(r.ctx, rollcall.SessionRef{Token: r.in[r.rnd.IntN(len(r.in))].Token})
			r.True(err == nil || rollcall.CodeOf(err) == rollcall.CodeSessionEnded || rollcall.CodeOf(err) == rollcall.CodeNotFound, "%v", err)
		}
	case 7:
		if len(r.in) > 0 {
			i := r.rnd.IntN(len(r.in))
			r.logout(r.in[i])
			r.in = append(r.in[:i], r.in[i+1:]...)
		}
	case 8:
		r.NoError(r.roll.Erase(r.ctx, r.some()))
	case 9:
		r.clear(time.Duration(r.rnd.IntN(4)) * time.Second)
	case 10:
		_, err := r.roll.PutUser(r.ctx, r.newcomer(), rollcall.UserPatch{Name: &name})
		r.NoError(err)
	case 11:
		r.NoError(r.roll.Beat(r.ctx, r.newcomer()))
	case 12:
		r.importSeen(r.newcomer(), r.clock.Now().Add(-time.Duration(r.rnd.IntN(30))*time.Second))
	case 13:
		r.importSession(r.newcomer(), time.Duration(r.rnd.IntN(30))*time.Second)
	}
	if r.rnd.IntN(2) == 0 {
		r.clock.Advance(time.Duration(r.rnd.IntN(2000)) * time.Millisecond)
	}
}

// importSession brings a session that began a while ago, of a user who was
// forgotten where it comes from.
func (r *rig) importSession(user string, ago time.Duration) {
	began := r.clock.Now().Add(-ago).Truncate(time.Millisecond)
	s := rollcall.Session{
		ID: rollcall.NewSessionID(began, user, uint64(began.UnixNano())), User: user, Kind: rollcall.DefaultKind,
		LoginAt: began, SeenAt: began, ExpiresAt: began.Add(time.Hour),
	}
	token := rollcall.TokenKey{}
	binary.BigEndian.PutUint64(token[:], s.ID.Random())
	copy(token[8:], user)
	r.NoError(r.roll.Import(r.ctx, rollcall.UserSnapshot{User: user, Sessions: []rollcall.SessionSnapshot{{Session: s, Token: token, Idle: time.Hour}}}))
}

func TestACrashAfterAnyFlushOfARollLosesNothingAndRevivesNobody(t *testing.T) {
	stages, touchRolls := map[rollStage]int{}, 0 // in all rounds: the first has some of each
	for round := range testbudget.Rounds(t, testbudget.Budget{Least: 1, Most: 4, Time: time.Second}) {
		r := newRolling(t, uint64(round))
		p := r.eng.parts[7]
		for i := range 40 {
			for range 1 + r.rnd.IntN(3) {
				r.step()
			}
			r.NoError(r.eng.Flush(r.ctx))
			stages[p.presence.roll.stage]++
			if p.sessions.roll.stage != rollNone {
				touchRolls++
			}
			r.Equal(p.remembered(), r.afterCrash(7), "seed %d, flush %d", round, i)
		}
		r.restart()
	}
	require.Greater(t, stages[rollBlocks], 3)
	require.Positive(t, stages[rollNotes])
	require.Greater(t, touchRolls, 3)
}

func TestAFlushThatFailsInARollIsMadeUpForByTheNext(t *testing.T) {
	r := newRolling(t, 77)
	p := r.eng.parts[7]
	for i := range 60 {
		r.step()
		r.second()
		r.NoError(r.roll.Beat(r.ctx, r.some()))
		before, touched, forgot := p.presence.seenLog, p.sessions.touchLog, p.presence.forgot.Clone()
		r.refusing(func() error { _, _, err := p.flush(); return err })
		r.Equal(before, p.presence.seenLog)
		r.Equal(touched, p.sessions.touchLog)
		r.True(forgot.Equals(p.presence.forgot), "whose last-seen times are forgotten")
		r.NoError(r.eng.Flush(r.ctx))
		if i%6 == 5 {
			r.Equal(p.remembered(), r.afterCrash(7))
		}
	}
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
