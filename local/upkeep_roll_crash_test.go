package local

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/rollcall/rollcall"
	"github.com/rollcall/rollcall/internal/testbudget"
)

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
		before, touched, forgot := p.presence.seenFlush, p.sessions.touchFlush, p.presence.forgotNotes.Clone()
		r.refusing(func() error { _, _, err := p.flush(); return err })
		r.Equal(before, p.presence.seenFlush)
		r.Equal(touched, p.sessions.touchFlush)
		r.True(forgot.Equals(p.presence.forgotNotes), "whose last-seen times are forgotten")
		r.NoError(r.eng.Flush(r.ctx))
		if i%6 == 5 {
			r.Equal(p.remembered(), r.afterCrash(7))
		}
	}
}
