package local

import (
	"testing"
	"time"

	"github.com/rollcall/rollcall"
)

func (r *rig) importSeen(user string, at time.Time) {
	r.NoError(r.roll.Import(r.ctx, rollcall.UserSnapshot{User: user, LastSeen: at.Truncate(time.Second)}))
}

func TestAnImportAndACrashLoseNobodysLastSeenTime(t *testing.T) {
	r := newRig(t, 0)
	users := r.neighbours(2)
	then := r.clock.Now()
	r.NoError(r.roll.Beat(r.ctx, users[0]))
	r.clock.Advance(time.Hour)
	r.NoError(r.roll.Tick(r.ctx)) // long since durable
	r.clock.Advance(100 * time.Millisecond)
	r.NoError(r.roll.Beat(r.ctx, users[0])) // back, and not flushed yet
	r.importSeen(users[1], then)
	r.crash()
	last, _, err := r.roll.LastSeen(r.ctx, users[0])
	r.NoError(err)
	r.Equal(then.Add(time.Hour), last)
}

func TestAnImportAndACrashGiveNobodyTheLastSeenTimeOfAnother(t *testing.T) {
	r := newRig(t, 0)
	users := r.neighbours(12)
	r.NoError(r.roll.Tick(r.ctx))
	r.NoError(r.roll.Beat(r.ctx, users[0])) // has a number that no flush has stored
	r.importSeen(users[1], r.clock.Now())
	r.crash()
	name := "Zoe"
	for _, u := range users[2:] { // never seen, only named
		_, err := r.roll.PutUser(r.ctx, u, rollcall.UserPatch{Name: &name})
		r.NoError(err)
	}
	before, err := r.roll.Status(r.ctx, users[2:]...)
	r.NoError(err)
	r.restart()
	after, err := r.roll.Status(r.ctx, users[2:]...)
	r.NoError(err)
	r.Equal(before, after)
	for _, s := range after {
		r.Zero(s.LastSeen)
	}
}

func TestAnImportThatFailsLeavesItsUsersNoNumbers(t *testing.T) {
	r := newRig(t, 0)
	users := r.neighbours(4)
	r.login(users[0])
	r.NoError(r.roll.Beat(r.ctx, users[1])) // has a number that no flush has stored
	numbers := func() (n int) {
		for _, p := range r.eng.parts {
			n += p.dir.Len()
		}
		return n
	}
	before := numbers()
	coming := rollcall.UserSnapshot{
		User: users[2], LastSeen: r.clock.Now().Truncate(time.Second),
		Friends: []rollcall.Friend{{User: "elsewhere", Since: r.clock.Now()}, {User: users[3], Since: r.clock.Now()}},
	}
	r.refusing(func() error { return r.roll.Import(r.ctx, coming) })
	r.Equal(before, numbers(), "numbers of users of whom nothing is known")

	// They get them when they come, and the one who was here keeps theirs.
	r.NoError(r.roll.Import(r.ctx, coming))
	r.Equal(before+3, numbers())
	r.NoError(r.roll.Tick(r.ctx))
	r.restart()
	r.Equal(before+3, numbers())
}
